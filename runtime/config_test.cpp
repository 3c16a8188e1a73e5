// SPDX-License-Identifier: Apache-2.0
#include "runtime/config.hpp"

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("a dumped configuration reads back as itself") {
  NodeConfig config;
  config.data = "/var/lib/x \"quoted\"";
  config.durability = Durability::write;
  config.io = io::Backend::epoll;
  config.executors = 3;
  config.pin = true;
  config.genesis.seed = 77;
  NodeConfig read;
  const auto parsed = parse_config(dump_config(config), "dump", read);
  REQUIRE_MESSAGE(parsed.has_value(), parsed.error().message);
  CHECK(dump_config(read) == dump_config(config));
  CHECK(read.data == config.data);
  CHECK(read.genesis.seed == 77);
}

TEST_CASE("a wrong configuration is refused with line, key and what it may be") {
  const auto refusal = [](std::string_view text) {
    NodeConfig config;
    const auto parsed = parse_config(text, "node.toml", config);
    return parsed ? std::string("accepted") : parsed.error().message;
  };
  CHECK(refusal("[node]\n\ndurability = \"maybe\"\n") ==
        "node.toml:3: [node] durability must be one of \"fsync\", \"write\", \"none\"");
  CHECK(refusal("[batches]\nslabs = 1\n") == "node.toml:2: [batches] slabs must be an integer from 4 to 1024");
  CHECK(refusal("[batches]\nslabs = \"16\"\n").find("must be an integer") != std::string::npos);
  CHECK(refusal("[node]\nlissten = \"x\"\n").find("unknown key 'lissten' in [node]") != std::string::npos);
  CHECK(refusal("[nodes]\n").find("unknown section or key 'nodes'") != std::string::npos);
  CHECK(refusal("data = \"x\"\n").find("unknown section or key 'data'") != std::string::npos);
  CHECK(refusal("[node\n").starts_with("node.toml:1: "));
  CHECK(refusal("[threads]\npin = 1\n").find("true or false") != std::string::npos);
}

TEST_CASE("a flag's value is taken as it is, or refused with the flag and what it may be") {
  NodeConfig config;
  CHECK(set_config("threads.executors", "7", "--executors", config).has_value());
  CHECK(config.executors == 7);
  CHECK(set_config("node.data", "7\n[limits]", "--data", config).has_value());
  CHECK(config.data == "7\n[limits]");
  CHECK(set_config("threads.spin_us", "-1", "--spin-us", config).has_value());
  for (const char* wrong : {"65", "-1", "7\n[limits]", "0x7", "", "7 ", "07", "99999999999999999999"}) {
    const auto set = set_config("threads.executors", wrong, "--executors", config);
    REQUIRE_FALSE(set.has_value());
    CHECK(set.error().message.starts_with("--executors: must be an integer from 0 to 64, not '"));
  }
  CHECK_FALSE(set_config("node.durability", "maybe", "--durability", config).has_value());
  CHECK(config.executors == 7);
}

TEST_CASE("a configuration file that is not there, or is a directory, is named") {
  NodeConfig config;
  CHECK(load_config("/", config).error().message == "cannot read the configuration /: EISDIR (Is a directory)");
  const auto loaded = load_config("/nonexistent/node.toml", config);
  REQUIRE_FALSE(loaded.has_value());
  CHECK(loaded.error().message.find("/nonexistent/node.toml") != std::string::npos);
}

TEST_CASE("values that do not fit each other are refused by name") {
  NodeConfig config;
  CHECK(validate(config).error().message.find("--data") != std::string::npos);
  config.data = "d";
  CHECK(validate(config).has_value());
  config.max_frame_bytes = config.max_batch_bytes;
  CHECK(validate(config).error().message.find("max_frame_bytes") != std::string::npos);
  config.max_frame_bytes = 4096;
  config.batch_slabs = 12;
  CHECK(validate(config).error().message.find("power of two") != std::string::npos);
  config.batch_slabs = 16;
  config.max_batch_bytes = 100'000;
  CHECK(validate(config).error().message.find("4096") != std::string::npos);
  config.max_batch_bytes = 1 << 20;
  config.segment_bytes = (16 << 20) + 1;
  CHECK(validate(config).error().message.find("segment_bytes is 16777217") != std::string::npos);
  config.segment_bytes = 16 << 20;
  config.listen = "nonsense";
  CHECK(validate(config).error().message.find("'nonsense'") != std::string::npos);
  config.listen = "127.0.0.1:0";
  config.threads = "many";
  CHECK(validate(config).error().message.find("'many'") != std::string::npos);
}
