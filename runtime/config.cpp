// SPDX-License-Identifier: Apache-2.0
#include "runtime/config.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <type_traits>

#include "base/assert.hpp"
#include "base/decimal.hpp"
#include "base/system_error.hpp"
#include "runtime/admin_server.hpp"

namespace lockstep {
namespace {

/// One key of the file: how to read it, how to print it, what it means. The table below is the whole vocabulary.
struct Key {
  const char* section;
  const char* name;
  const char* meaning;
  std::function<std::optional<std::string>(NodeConfig&, const toml::node&)> read;  ///< what it must be, when it is not
  std::function<std::string(const NodeConfig&)> print;
};

/// `field` gives the reference for a config, constant or not: [](auto& c) -> auto& { return c.x; }
template <class Field>
Key integer(const char* section, const char* name, Field field, std::int64_t lowest, std::int64_t highest,
            const char* meaning) {
  return {section, name, meaning,
          [=](NodeConfig& config, const toml::node& node) -> std::optional<std::string> {
            const auto value = node.value_exact<std::int64_t>();
            if (!value || *value < lowest || *value > highest)
              return fmt::format("an integer from {} to {}", lowest, highest);
            auto& target = field(config);
            target = static_cast<std::remove_reference_t<decltype(target)>>(*value);
            return std::nullopt;
          },
          [=](const NodeConfig& config) { return fmt::format("{}", field(config)); }};
}

Key text(const char* section, const char* name, std::string NodeConfig::* field, const char* meaning) {
  return {section, name, meaning,
          [=](NodeConfig& config, const toml::node& node) -> std::optional<std::string> {
            const auto value = node.value_exact<std::string>();
            if (!value) return "a string";
            config.*field = *value;
            return std::nullopt;
          },
          [=](const NodeConfig& config) {
            std::ostringstream quoted;
            quoted << toml::value<std::string>(config.*field);
            return std::move(quoted).str();
          }};
}

template <class Enum>
Key choice(const char* section, const char* name, Enum NodeConfig::* field,
           const std::vector<std::pair<std::string, Enum>>& values, const char* meaning) {
  std::string names;
  for (const auto& [value, ignored] : values) names += (names.empty() ? "\"" : ", \"") + value + "\"";
  return {section, name, meaning,
          [=](NodeConfig& config, const toml::node& node) -> std::optional<std::string> {
            const auto wanted = node.value_exact<std::string>();
            for (const auto& [value, meant] : values)
              if (wanted && *wanted == value) return config.*field = meant, std::nullopt;
            return "one of " + names;
          },
          [=](const NodeConfig& config) {
            for (const auto& [value, meant] : values)
              if (config.*field == meant) return fmt::format("\"{}\"", value);
            return std::string("\"\"");
          }};
}

Key flag(const char* section, const char* name, bool NodeConfig::* field, const char* meaning) {
  return {section, name, meaning,
          [=](NodeConfig& config, const toml::node& node) -> std::optional<std::string> {
            const auto value = node.value_exact<bool>();
            if (!value) return "true or false";
            config.*field = *value;
            return std::nullopt;
          },
          [=](const NodeConfig& config) { return std::string(config.*field ? "true" : "false"); }};
}

const std::vector<Key>& vocabulary() {
  constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
  static const std::vector<Key> keys = {
      text("node", "data", &NodeConfig::data, "data directory: journal, hard state, hash log"),
      text("node", "listen", &NodeConfig::listen, "address of the native protocol"),
      text("node", "resp", &NodeConfig::resp, "address of the RESP2 protocol; empty: not served"),
      text("node", "admin", &NodeConfig::admin,
           "address of /metrics, /status, /hash, on loopback; port 0: the kernel chooses"),
      choice("node", "durability", &NodeConfig::durability,
             {{"fsync", Durability::fsync}, {"write", Durability::write}, {"none", Durability::none}},
             "what must hold before a reply leaves: synced, written, or neither"),
      choice("node", "io", &NodeConfig::io,
             {{"auto", io::Backend::automatic}, {"uring", io::Backend::uring}, {"epoll", io::Backend::epoll}},
             "how sockets and disk are driven"),
      integer(
          "node", "shutdown_timeout_ms", [](auto& c) -> auto& { return c.shutdown_timeout_ms; }, 100, 600'000,
          "from SIGTERM until the process is gone"),
      integer(
          "threads", "executors", [](auto& c) -> auto& { return c.executors; }, 0, 64,
          "actor cores; 0: what the machine has left"),
      integer(
          "threads", "perimeters", [](auto& c) -> auto& { return c.perimeters; }, 1, 64,
          "cores that face clients; the first is also the sequencer's"),
      text("threads", "layout", &NodeConfig::threads, "auto, one (all agents on one thread), dedicated"),
      integer(
          "threads", "spin_us", [](auto& c) -> auto& { return c.spin_us; }, -1, 1'000'000,
          "polling without work before sleeping; -1: by the machine"),
      flag("threads", "pin", &NodeConfig::pin, "pin each thread to a CPU of its own"),
      integer(
          "threads", "handler_timeout_ms", [](auto& c) -> auto& { return c.handler_timeout_ms; }, 0, 86'400'000,
          "a handler that takes longer ends the process, as a crash would; 0: never"),
      integer(
          "limits", "max_connections", [](auto& c) -> auto& { return c.max_connections; }, 1, 1'000'000,
          "beyond it, a new one is closed"),
      integer(
          "limits", "max_frame_bytes", [](auto& c) -> auto& { return c.max_frame_bytes; }, 256, 8 << 20,
          "of one request"),
      integer(
          "limits", "output_limit_bytes", [](auto& c) -> auto& { return c.output_limit_bytes; }, 64 << 10, 1 << 30,
          "unread replies before a client is cut off"),
      integer(
          "limits", "frame_timeout_ms", [](auto& c) -> auto& { return c.frame_timeout_ms; }, 100, 86'400'000,
          "for the rest of a frame that has begun, and for a new client's hello; then it is closed"),
      integer(
          "batches", "slabs", [](auto& c) -> auto& { return c.batch_slabs; }, 4, 1024, "batches in memory at once"),
      integer(
          "batches", "max_bytes", [](auto& c) -> auto& { return c.max_batch_bytes; }, 16 << 10, 8 << 20,
          "of one batch"),
      integer(
          "batches", "seal_depth", [](auto& c) -> auto& { return c.seal_depth; }, 1, 64,
          "sealed batches awaiting commit before the open one waits for more records"),
      integer(
          "journal", "segment_bytes", [](auto& c) -> auto& { return c.segment_bytes; }, 16 << 20, 1 << 30,
          "of one segment file"),
      integer(
          "journal", "inflight", [](auto& c) -> auto& { return c.journal_inflight; }, 1, 64,
          "blocks being written at once"),
      text("log", "actor_file", &NodeConfig::actor_log,
           "file for the lines that actors write with cx.log(); empty: they go nowhere"),
      integer(
          "snapshots", "every_bytes", [](auto& c) -> auto& { return c.snapshot_every_bytes; }, 0, any,
          "of journal between two snapshots of the state; 0: only when asked"),
      integer(
          "snapshots", "keep", [](auto& c) -> auto& { return c.snapshots_kept; }, 2, 64,
          "snapshots; the journal always reaches back to the last but one"),
      integer(
          "snapshots", "quota_bytes", [](auto& c) -> auto& { return c.snapshot_quota_bytes; }, 1 << 20, 1LL << 40,
          "memory for pages that change while one is taken"),
      integer(
          "snapshots", "journal_bytes", [](auto& c) -> auto& { return c.journal_kept_bytes; }, 0, any,
          "of journal kept for replay, beyond what snapshots need"),
      integer(
          "snapshots", "journal_hours", [](auto& c) -> auto& { return c.journal_kept_hours; }, 0, 1'000'000,
          "stamped time of that journal; 0: any"),
      integer(
          "genesis", "shards", [](auto& c) -> auto& { return c.genesis.shards; }, 1, 4096, "decides order, for ever"),
      integer(
          "genesis", "max_rounds", [](auto& c) -> auto& { return c.genesis.max_rounds; }, 1, 4096,
          "rounds of actor-to-actor messages in one batch; the rest is carried over"),
      integer(
          "genesis", "checkpoint_interval", [](auto& c) -> auto& { return c.genesis.checkpoint_interval; }, 1, 1 << 30,
          "sequence numbers between state roots"),
      integer(
          "genesis", "seed", [](auto& c) -> auto& { return c.genesis.seed; }, 0, any, "of random(); 0 draws one"),
  };
  return keys;
}

const Key* find_key(std::string_view section, std::string_view name) {
  for (const Key& key : vocabulary())
    if (section == key.section && name == key.name) return &key;
  return nullptr;
}

bool is_section(std::string_view section) {
  for (const Key& key : vocabulary())
    if (section == key.section) return true;
  return false;
}

std::unexpected<Error> refuse(const std::string& name, const toml::source_region& at, std::string_view what) {
  return fail(ErrorCode::usage, fmt::format("{}:{}: {}", name, at.begin.line, what));
}

}  // namespace

std::string_view durability_name(Durability durability) {
  switch (durability) {
    case Durability::fsync:
      return "fsync";
    case Durability::write:
      return "write";
    case Durability::none:
      return "none";
  }
  return "?";
}

Result<void> parse_config(std::string_view toml_text, const std::string& name, NodeConfig& config) {
  toml::table parsed;
  try {
    parsed = toml::parse(toml_text);
  } catch (const toml::parse_error& error) {
    return refuse(name, error.source(), error.description());
  }
  for (const auto& [section, content] : parsed) {
    const toml::table* table = content.as_table();
    if (table == nullptr || !is_section(section.str()))
      return refuse(name, content.source(),
                    fmt::format("unknown section or key '{}'; --dump-config prints all there are", section.str()));
    for (const auto& [entry, value] : *table) {
      const Key* key = find_key(section.str(), entry.str());
      if (key == nullptr)
        return refuse(
            name, value.source(),
            fmt::format("unknown key '{}' in [{}]; --dump-config prints all there are", entry.str(), section.str()));
      if (const auto wanted = key->read(config, value))
        return refuse(name, value.source(), fmt::format("[{}] {} must be {}", section.str(), entry.str(), *wanted));
    }
  }
  return {};
}

Result<void> set_config(std::string_view key, const std::string& text, std::string_view flag, NodeConfig& config) {
  const auto dot = key.find('.');
  const Key* const known = find_key(key.substr(0, dot), key.substr(dot + 1));
  LOCKSTEP_ASSERT(known != nullptr, "a flag sets a key that no configuration has");
  auto wanted = known->read(config, toml::value<std::string>(text));
  if (const auto number = parse_decimal<std::int64_t>(text); wanted && number)
    wanted = known->read(config, toml::value<std::int64_t>(*number));
  if (wanted) return fail(ErrorCode::usage, fmt::format("{}: must be {}, not '{}'", flag, *wanted, text));
  return {};
}

Result<void> load_config(const std::string& path, NodeConfig& config) {
  const auto refuse = [&](int error) {
    return fail(ErrorCode::usage, fmt::format("cannot read the configuration {}: {}", path, errno_text(error)));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  if (file == nullptr) return refuse(errno);
  std::string content;
  for (char part[4096]; const std::size_t bytes = std::fread(part, 1, sizeof part, file.get());)
    content.append(part, bytes);
  if (std::ferror(file.get()) != 0) return refuse(errno);  // a directory
  return parse_config(content, path, config);
}

Result<void> validate(const NodeConfig& config) {
  constexpr std::uint32_t record_header_bytes = 64;
  const auto refuse = [](std::string text) { return fail(ErrorCode::usage, std::move(text)); };
  if (config.data.empty()) return refuse("no data directory; name one with --data DIR");
  if (const auto listen = parse_endpoint(config.listen); !listen) return std::unexpected(listen.error());
  if (!config.resp.empty())
    if (const auto resp = parse_endpoint(config.resp); !resp) return std::unexpected(resp.error());
  if (!config.admin.empty()) {
    const auto admin = parse_endpoint(config.admin);
    if (!admin) return std::unexpected(admin.error());
    if (!is_loopback(*admin))
      return refuse(
          fmt::format("the admin address {} is not on loopback: whoever reaches it may look and order without "
                      "being asked who he is; use 127.0.0.1:PORT, and come from elsewhere through ssh -L or "
                      "a reverse proxy that asks",
                      config.admin));
  }
  if (!std::has_single_bit(config.batch_slabs))
    return refuse(fmt::format("[batches] slabs is {}; it must be a power of two", config.batch_slabs));
  if (config.max_batch_bytes % 4096 != 0)
    return refuse(fmt::format("[batches] max_bytes is {}; it must be a multiple of 4096", config.max_batch_bytes));
  if (config.max_frame_bytes + record_header_bytes > config.max_batch_bytes)
    return refuse(fmt::format("[limits] max_frame_bytes {} and its header do not fit [batches] max_bytes {}",
                              config.max_frame_bytes, config.max_batch_bytes));
  if (config.segment_bytes % 4096 != 0)
    return refuse(fmt::format("[journal] segment_bytes is {}; it must be a multiple of 4096", config.segment_bytes));
  if (config.threads != "auto" && config.threads != "one" && config.threads != "dedicated")
    return refuse(fmt::format("[threads] layout '{}' is none of auto, one, dedicated", config.threads));
  if (config.threads == "one" && config.perimeters != 1)
    return refuse("[threads] layout \"one\" has one perimeter; leave perimeters at 1, or choose dedicated");
  return {};
}

std::string dump_config(const NodeConfig& config) {
  std::string out;
  std::string_view section;
  for (const Key& key : vocabulary()) {
    if (section != key.section) {
      section = key.section;
      out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", section);
    }
    out += fmt::format("{:<44}  # {}\n", fmt::format("{} = {}", key.name, key.print(config)), key.meaning);
  }
  return out;
}

}  // namespace lockstep
