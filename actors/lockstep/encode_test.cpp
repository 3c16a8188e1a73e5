// SPDX-License-Identifier: Apache-2.0
#include "lockstep/encode.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.hpp"
#include "base/digest.hpp"
#include "test_messages_generated.h"

namespace lockstep {
namespace {

using namespace testing;

constexpr std::size_t max_bytes = 65536;

/// A message's bytes at an address aligned as in a batch.
struct Payload {
  explicit Payload(std::span<const std::byte> from) : size(from.size()) {
    LOCKSTEP_ASSERT(size <= sizeof bytes, "too long for a test");
    std::memcpy(bytes, from.data(), size);
  }
  [[nodiscard]] std::span<const std::byte> span() const { return {bytes, size}; }
  alignas(16) std::byte bytes[8192];
  std::size_t size;
};

Payload full_order(MessageBuilder& builder) {
  const std::vector<std::string> names{"first", "second"};
  const std::vector<Level> levels{{100, 1}, {101, 2}};
  const std::array<std::uint32_t, 3> numbers{1, 2, 3};
  const auto legs = [](flatbuffers::FlatBufferBuilder& fbb) {
    const std::array made{CreateLeg(fbb, 1, -1), CreateLeg(fbb, 2, -2)};
    return fbb.CreateVector(made.data(), made.size());
  };
  const auto first = [](flatbuffers::FlatBufferBuilder& fbb) { return CreateLeg(fbb, 3, -3); };
  return Payload(builder.encode<Order>(7u, -5, "memo", legs, levels, numbers, Side::Sell, levels[0], first, names, true,
                                       0.5, std::uint8_t{9}));
}

TEST_CASE("a table carries every kind of field") {
  MessageBuilder builder(max_bytes);
  const Payload payload = full_order(builder);
  REQUIRE(verify<Order>(payload.span()));
  const Order& order = decode<Order>(payload.bytes);
  CHECK(order.id() == 7);
  CHECK(order.amount() == -5);
  CHECK(order.memo()->string_view() == "memo");
  CHECK(order.legs()->size() == 2);
  CHECK(order.legs()->Get(1)->amount() == -2);
  CHECK(order.levels()->Get(1)->price() == 101);
  CHECK(order.numbers()->Get(2) == 3);
  CHECK(order.side() == Side::Sell);
  CHECK(order.best()->size() == 1);
  CHECK(order.first()->account() == 3);
  CHECK(order.names()->Get(1)->string_view() == "second");
  CHECK(order.urgent());
  CHECK(order.ratio() == 0.5);
  CHECK(order.small() == 9);
}

TEST_CASE("a received field is passed on as it is, and the bytes come out the same") {
  MessageBuilder builder(max_bytes);
  const Payload payload = full_order(builder);
  const Order& order = decode<Order>(payload.bytes);
  const auto legs = [](flatbuffers::FlatBufferBuilder& fbb) {
    const std::array made{CreateLeg(fbb, 1, -1), CreateLeg(fbb, 2, -2)};
    return fbb.CreateVector(made.data(), made.size());
  };
  const auto first = [](flatbuffers::FlatBufferBuilder& fbb) { return CreateLeg(fbb, 3, -3); };
  const Payload again(builder.encode<Order>(order.id(), order.amount(), order.memo(), legs, order.levels(),
                                            order.numbers(), order.side(), order.best(), first, order.names(),
                                            order.urgent(), order.ratio(), order.small()));
  REQUIRE(again.size == payload.size);
  CHECK(std::memcmp(again.bytes, payload.bytes, payload.size) == 0);
}

TEST_CASE("strings are built in field order, whatever the compiler does with arguments") {
  // The bytes that g++ and clang must both give: a builder fills its buffer from the end, so the first field lies last.
  MessageBuilder builder(max_bytes);
  const Payload payload(builder.encode<Do>(1u, 2u, 3u, "text"));
  CHECK(xxh3_64(payload.span()) == 5828911491869535753ULL);
  const Payload order = full_order(builder);
  const auto at = [&](std::string_view text) {
    return std::string_view(reinterpret_cast<const char*>(order.bytes), order.size).find(text);
  };
  CHECK(at("memo") > at("first"));
  CHECK(at("second") < at("first"));
}

TEST_CASE("a field that holds its default is written like any other") {
  MessageBuilder builder(max_bytes);
  const std::size_t zeros = builder.encode<Leg>(0u, 0).size();
  CHECK(builder.encode<Leg>(1u, 1).size() == zeros);
}

/// What FlatBufferBuilder itself makes of a message.
template <class M, class... Fields>
Payload built(Fields... fields) {
  flatbuffers::FlatBufferBuilder fbb;
  fbb.ForceDefaults(true);
  fbb.Finish(M::Traits::Create(fbb, fields...));
  return Payload(std::as_bytes(std::span(fbb.GetBufferPointer(), fbb.GetSize())));
}

/// What encode() and layout_of() make of it.
template <class M, class... Fields>
void check_same_bytes(MessageBuilder& builder, Fields... fields) {
  REQUIRE(has_fixed_size<M>);
  const Payload expected = built<M>(fields...);
  REQUIRE(verify<M>(expected.span()));
  const Payload encoded(builder.encode<M>(fields...));
  REQUIRE(encoded.size == expected.size);
  CHECK(std::memcmp(encoded.bytes, expected.bytes, expected.size) == 0);
  alignas(16) std::byte written[256];
  std::memset(written, 0xEE, sizeof written);
  builder.layout_of<M>().write(written, fields...);
  CHECK(std::memcmp(written, expected.bytes, expected.size) == 0);
  const std::size_t end = (expected.size + 15) & ~std::size_t{15};
  for (std::size_t at = expected.size; at < end; ++at) CHECK(written[at] == std::byte{0});
  CHECK(written[end] == std::byte{0xEE});
}

TEST_CASE("a table of scalars has the bytes that FlatBufferBuilder gives it") {
  MessageBuilder builder(max_bytes);
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0x8000'0000'0000'0001}}) {
    const auto amount = static_cast<std::int64_t>(value);
    check_same_bytes<Leg>(builder, value, amount);
    check_same_bytes<Accrue>(builder, static_cast<std::uint32_t>(value));
    check_same_bytes<Done>(builder, static_cast<std::uint32_t>(value), value, ~value);
    const auto small = static_cast<std::uint8_t>(value);
    for (const bool urgent : {false, true})
      check_same_bytes<Scalars>(builder, small, urgent, Side::Sell, static_cast<std::int16_t>(amount), 0.5F,
                                -1.0 * static_cast<double>(value), value, static_cast<std::int32_t>(amount));
  }
}

TEST_CASE("messages of fixed and of other sizes are made in turn, after one that was given up half-way too") {
  MessageBuilder builder(1024);
  const auto text = [&] { return Payload(builder.encode<Do>(1u, 2u, 3u, "text")); };
  const Payload first = text();
  check_same_bytes<Leg>(builder, std::uint64_t{1}, std::int64_t{2});
  CHECK_THROWS_AS(static_cast<void>(builder.encode<Do>(1u, 2u, 3u, std::string(100'000, 'x'))), TrapError);
  check_same_bytes<Alarm>(builder, std::uint64_t{7});  // whose layout is made here
  const Payload again = text();
  REQUIRE(again.size == first.size);
  CHECK(std::memcmp(again.bytes, first.bytes, first.size) == 0);
}

TEST_CASE("a table of scalars above the limit is refused") {
  MessageBuilder builder(16);
  CHECK_THROWS_AS(static_cast<void>(builder.encode<Leg>(1u, 1)), TrapError);
}

TEST_CASE("absent fields are left out") {
  MessageBuilder builder(max_bytes);
  const Level* const no_level = nullptr;
  const Payload payload(builder.encode<Order>(1u, 1, absent, absent, absent, absent, Side::Buy, no_level, absent,
                                              absent, false, 0.0, std::uint8_t{0}));
  REQUIRE(verify<Order>(payload.span()));
  CHECK(decode<Order>(payload.bytes).memo() == nullptr);
  CHECK(decode<Order>(payload.bytes).best() == nullptr);
}

TEST_CASE("a struct is its own bytes") {
  MessageBuilder builder(max_bytes);
  const Payload payload(builder.encode<Level>(-3, 8u));
  REQUIRE(verify<Level>(payload.span()));
  CHECK(payload.size == sizeof(Level));
  CHECK(decode<Level>(payload.bytes).price() == -3);
  CHECK_FALSE(verify<Level>(payload.span().first(payload.size - 1)));
}

TEST_CASE("a message above the limit is refused, and the next one is made as ever") {
  MessageBuilder builder(1024);
  const std::size_t bytes = builder.encode<Do>(1u, 2u, 3u, "text").size();
  for (const std::size_t length : {std::size_t{1024}, std::size_t{100'000}, std::size_t{10'000'000}}) {
    const std::string text(length, 'x');
    CHECK_THROWS_AS(static_cast<void>(builder.encode<Do>(1u, 2u, 3u, text)), TrapError);
    CHECK(builder.encode<Do>(1u, 2u, 3u, "text").size() == bytes);
  }
}

TEST_CASE("arguments that could lose bits or mix kinds are not accepted") {
  CHECK(encodable<Leg, std::uint64_t, std::int64_t>);
  CHECK(encodable<Leg, unsigned, int>);
  CHECK_FALSE(encodable<Leg, std::uint64_t>);
  CHECK_FALSE(encodable<Leg, std::uint64_t, double>);
  CHECK_FALSE(encodable<Leg, std::uint64_t, bool>);
  CHECK_FALSE(encodable<Accrue, std::uint64_t>);
  CHECK_FALSE(encodable<Leg, std::uint64_t, Side>);
}

TEST_CASE("tables that share children are refused before they cost time") {
  flatbuffers::FlatBufferBuilder fbb;
  auto node = CreateNode(fbb);
  for (int depth = 0; depth < 15; ++depth) node = CreateNode(fbb, node, node);
  fbb.Finish(node);
  const Payload bomb(std::as_bytes(std::span(fbb.GetBufferPointer(), fbb.GetSize())));
  CHECK_FALSE(verify<Node>(bomb.span()));
}

TEST_CASE("tables that nest too deep are refused") {
  const auto nested = [](unsigned depth) {
    flatbuffers::FlatBufferBuilder fbb;
    auto node = CreateNode(fbb);
    for (unsigned i = 1; i < depth; ++i) node = CreateNode(fbb, node);
    fbb.Finish(node);
    return Payload(std::as_bytes(std::span(fbb.GetBufferPointer(), fbb.GetSize())));
  };
  CHECK(verify<Node>(nested(max_message_depth).span()));
  CHECK_FALSE(verify<Node>(nested(max_message_depth + 1).span()));
}

TEST_CASE("every cut of a message is refused or reads in bounds") {
  MessageBuilder builder(max_bytes);
  const Payload payload = full_order(builder);
  for (std::size_t size = 0; size < payload.size; ++size) {
    // A copy of its own size, so that a sanitizer sees any read beyond it.
    const std::vector<std::byte> cut(payload.bytes, payload.bytes + size);
    if (!verify<Order>(cut)) continue;
    CHECK(size > payload.size - 8);  // only padding is gone
    CHECK(decode<Order>(cut.data()).memo()->string_view() == "memo");
  }
}

}  // namespace
}  // namespace lockstep
