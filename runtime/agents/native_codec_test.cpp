// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/native_codec.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <string>

using namespace lockstep;

namespace {

template <class T>
std::string hex_of(const T& object) {
  std::string hex;
  for (const std::byte byte : std::as_bytes(std::span(&object, 1))) {
    constexpr const char* digits = "0123456789abcdef";
    hex += digits[std::to_integer<unsigned>(byte) >> 4];
    hex += digits[std::to_integer<unsigned>(byte) & 15];
  }
  return hex;
}

}  // namespace

TEST_CASE("frames have the bytes that clients in other languages were written against") {
  wire::FrameHeader header;
  header.length = 0x01020304;
  header.kind = wire::FrameKind::request;
  header.ack_distance = 0x0506;
  header.request = 0x1112131415161718;
  header.message_type = 0x21222324;
  header.actor_type = 0x25262728;
  header.key = 0x3132333435363738;
  CHECK(hex_of(header) ==
        "04030201"
        "03"
        "00"
        "0605"
        "1817161514131211"
        "24232221"
        "28272625"
        "3837363534333231");
}

TEST_CASE("hello and its answer begin with the bytes LOCKSTEP and have room to resume a session") {
  wire::Hello hello;
  hello.capabilities = wire::capability_queries;
  hello.resume_session = 0x0102030405060708;
  CHECK(hex_of(hello) ==
        "4c4f434b53544550"
        "0100"
        "0100"
        "01000000"
        "0807060504030201"
        "0000000000000000"
        "0000000000000000");
  wire::HelloOk ok;
  ok.session = 0x10203;
  ok.max_payload_bytes = 65536;
  ok.max_in_flight = 4096;
  ok.reply_window = 1024;
  ok.session_expiry_ms = 60'000;
  CHECK(hex_of(ok) ==
        "4c4f434b53544550"
        "0100"
        "0000"
        "00000000"
        "0302010000000000"
        "0000000000000000"
        "0000000000000000"
        "00000100"
        "00100000"
        "00040000"
        "60ea0000");
  CHECK(hex_of(wire::ErrorBody{wire::WireError::trapped, 7}) == "0800000007000000");
}
