// SPDX-License-Identifier: Apache-2.0
#include "replay/message_decoder.hpp"

#include <doctest/doctest.h>
#include <lockstep/actor.hpp>

#include <cstring>
#include <string_view>
#include <vector>

#include "replay/flatbuffers_json.hpp"
#include "test_messages_bfbs_generated.h"
#include "test_messages_generated.h"

using namespace lockstep;

namespace {

std::vector<std::byte> schema_block(std::span<const std::byte> bfbs) {
  const std::uint64_t length = bfbs.size();
  std::vector<std::byte> block(16 + ((bfbs.size() + 15) & ~std::size_t{15}));
  std::memcpy(block.data(), &length, sizeof length);
  std::memcpy(block.data() + 16, bfbs.data(), bfbs.size());
  return block;
}

std::span<const std::byte> test_schema() {
  return std::as_bytes(std::span(testing::OrderBinarySchema::data(), testing::OrderBinarySchema::size()));
}

}  // namespace

TEST_CASE("messages are printed through the schema that travels with them") {
  const auto decoder = MessageDecoder::from_schema(schema_block(test_schema()));
  REQUIRE_MESSAGE(decoder.has_value(), decoder.error().message);
  CHECK(decoder->name(message_id<testing::Deposit>) == "lockstep.testing.Deposit");
  CHECK(decoder->name(12345).empty());

  MessageBuilder builder(4096);
  const auto deposit = decoder->json(message_id<testing::Deposit>, builder.encode<testing::Deposit>(7U, -3));
  REQUIRE(deposit.has_value());
  CHECK(*deposit == R"({"account": 7,"amount": -3})");
  const auto level = decoder->json(message_id<testing::Level>, builder.encode<testing::Level>(101, 5U));
  REQUIRE(level.has_value());
  CHECK(*level == R"({"price": 101, "size": 5})");
}

TEST_CASE("a string that is not UTF-8 is printed whole, as base64, and a number that JSON lacks as a string") {
  const auto decoder = MessageDecoder::from_schema(schema_block(test_schema()));
  REQUIRE(decoder.has_value());
  MessageBuilder builder(4096);
  const auto printed = [&](std::string_view text) {
    const auto json = decoder->json(message_id<testing::Do>, builder.encode<testing::Do>(1U, 2U, 3U, text));
    REQUIRE_MESSAGE(json.has_value(), json.error().message);
    return json->substr(json->find("\"text\": ") + 8);
  };
  CHECK(printed("plain") == R"("plain"})");
  CHECK(printed("\\x41 \"\\") == R"("\\x41 \"\\"})");
  CHECK(printed("\xc3\xbc") == R"("\u00FC"})");
  CHECK(printed("\xff") == R"({"base64": "/w=="}})");
  CHECK(printed("\n\"\\\xff\x01") == R"({"base64": "CiJc/wE="}})");                    // behind escapes of every kind
  CHECK(printed("\xc3\xbc\xf0\x9f\x99\x82\x80") == R"({"base64": "w7zwn5mCgA=="}})");  // \u once, and as a pair

  CHECK(valid_json(R"({"a": nan,"b": [-inf, inf, 1e-05, -2.0],"c": true,"d": null,"e": "nan\"inf"})") ==
        R"({"a": "nan","b": ["-inf", "inf", 1e-05, -2.0],"c": true,"d": null,"e": "nan\"inf"})");
  for (const char* cut :
       {"\"", "\"\\", "\"\\x", "\"\\x4", "\"\\xff\\u", "\"\\xff\\u00", "\"\\xff\\ud83d\\u", "\"\\xff\\ud83d"})
    CHECK_FALSE(valid_json(cut).empty());
}

TEST_CASE("a payload that is not the message it claims to be is refused, not printed") {
  const auto decoder = MessageDecoder::from_schema(schema_block(test_schema()));
  REQUIRE(decoder.has_value());
  alignas(16) const std::byte garbage[32] = {std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0x7f}};
  CHECK_FALSE(decoder->json(message_id<testing::Deposit>, garbage).has_value());
  CHECK_FALSE(decoder->json(message_id<testing::Deposit>, {}).has_value());
  CHECK_FALSE(decoder->json(message_id<testing::Level>, std::span(garbage).first(3)).has_value());
  CHECK_FALSE(decoder->json(99, garbage).has_value());
}

TEST_CASE("a damaged schema is refused") {
  auto block = schema_block(test_schema());
  CHECK_FALSE(MessageDecoder::from_schema(std::span(block).first(40)).has_value());
  CHECK_FALSE(MessageDecoder::from_schema(std::span(block).first(8)).has_value());
  std::memset(block.data() + 16, 0xee, 64);
  CHECK_FALSE(MessageDecoder::from_schema(block).has_value());
}
