// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/genesis.hpp"

#include <doctest/doctest.h>

namespace lockstep {
namespace {

TEST_CASE("a genesis reads back as it was written, and equal values give equal bytes") {
  Genesis genesis;
  genesis.application = 7;
  genesis.shards = 3;
  genesis.session_expiry_ns = 5;
  const std::vector<std::byte> payload = encode(genesis);
  const Result<Genesis> read = decode_genesis(payload);
  REQUIRE(read);
  CHECK(*read == genesis);
  CHECK(encode(*read) == payload);
  CHECK(genesis_digest(*read) == genesis_digest(genesis));
}

TEST_CASE("every field is part of the digest") {
  const Digest digest = genesis_digest(Genesis{});
  Genesis other;
  other.max_rounds += 1;
  CHECK(genesis_digest(other) != digest);
  other = {};
  other.shard_mail_bytes += 1;
  CHECK(genesis_digest(other) != digest);
}

TEST_CASE("values out of range are refused by name") {
  Genesis genesis;
  genesis.shards = 0;
  REQUIRE_FALSE(validate(genesis));
  CHECK(validate(genesis).error().message == "genesis: shards is 0, but must be 1 to 4096");
  genesis = {};
  genesis.handler_effect_bytes = genesis.message_bytes;
  CHECK_FALSE(validate(genesis));
  CHECK_FALSE(decode_genesis(encode(genesis)));
}

TEST_CASE("bytes that are no genesis are refused") {
  std::vector<std::byte> payload = encode(Genesis{});
  payload.resize(payload.size() / 2);
  CHECK_FALSE(decode_genesis(payload));
  CHECK_FALSE(decode_genesis({}));
}

}  // namespace
}  // namespace lockstep
