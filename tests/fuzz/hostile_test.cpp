// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/hostile.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "runtime/agents/testing/perimeter_bench.hpp"

using namespace lockstep;
using namespace lockstep::testing;

namespace {

using Drive = void (*)(std::span<const std::uint8_t>);
using Random = std::mt19937_64;

void drive(Drive target, const std::string& input) {
  target({reinterpret_cast<const std::uint8_t*>(input.data()), input.size()});
}

std::string random_bytes(Random& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

/// Flips, cuts, repeats and overwrites, one to eight times.
std::string mutated(Random& random, std::string bytes) {
  for (std::uint64_t times = 1 + random() % 8; times != 0 && !bytes.empty(); --times) {
    const std::size_t at = random() % bytes.size();
    const std::size_t length = std::min<std::size_t>(1 + random() % 16, bytes.size() - at);
    switch (random() % 5) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
        break;
      case 1:
        bytes.erase(at, length);
        break;
      case 2:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 3:
        bytes.replace(at, length, std::string(length, random() % 2 == 0 ? '\xff' : '\0'));
        break;
      default:
        bytes.resize(at);
        break;
    }
  }
  return bytes;
}

std::string some_order(Random& random) {
  const std::vector<std::uint32_t> numbers(random() % 20, 7);
  const std::vector<std::string> names(random() % 5, "name");
  return payload_of<Order>(random(), std::int64_t{5}, std::string(random() % 30, 'm'), absent, absent, numbers,
                           Side::Sell, absent, absent, names, true, 0.5, std::uint8_t{3});
}

std::string some_native(Random& random) {
  std::string bytes;
  for (std::uint64_t request = 1; request <= 1 + random() % 6; ++request) {
    if (random() % 2 == 0)
      bytes += deposit_frame(request, random() % 8);
    else if (random() % 2 == 0)
      bytes += message_frame<Order>(wire::FrameKind::request, request, 1, some_order(random));
    else
      bytes += message_frame<GetBalance>(wire::FrameKind::query, request, 1, payload_of<GetBalance>(random()));
  }
  return bytes;
}

std::string some_resp(Random& random) {
  static const std::vector<std::string> lines{"PING\r\n",
                                              "*3\r\n$7\r\nDEPOSIT\r\n$1\r\n1\r\n$2\r\n10\r\n",
                                              "DEPOSIT 1 'x y' \"\\x41\"\r\n",
                                              "BIG 3000\r\n",
                                              "BIG 100\r\n",
                                              "*2\r\n$4\r\nECHO\r\n$5\r\na\r\nb\n\r\n",
                                              "CONFIG GET *\r\n",
                                              "*1\r\n$4\r\nINFO\r\n",
                                              "SELECT 3\r\n",
                                              "CLIENT GETNAME\r\n",
                                              "*0\r\n",
                                              "QUIT\r\n",
                                              "*-1\r\n",
                                              "HELLO 2\r\n",
                                              "DEPOSIT 2 7\r\n"};
  std::string bytes;
  for (std::uint64_t count = 1 + random() % 6; count != 0; --count) bytes += lines[random() % lines.size()];
  return bytes;
}

}  // namespace

TEST_CASE("random bytes harm nobody but their sender") {
  Random random(1);
  for (int i = 0; i != 300; ++i) {
    drive(drive_native, random_bytes(random, random() % 400));
    drive(drive_resp, random_bytes(random, random() % 400));
    drive(drive_verify, random_bytes(random, random() % 400));
  }
}

TEST_CASE("broken frames harm nobody but their sender, however they are cut") {
  Random random(2);
  for (int i = 0; i != 1'000; ++i) {
    const char control = static_cast<char>(random() | 1U);
    drive(drive_native, control + mutated(random, some_native(random)));
  }
}

TEST_CASE("broken RESP commands harm nobody but their sender, however they are cut") {
  Random random(3);
  for (int i = 0; i != 1'000; ++i) drive(drive_resp, static_cast<char>(random()) + mutated(random, some_resp(random)));
}

TEST_CASE("broken messages are refused, or read without leaving them") {
  Random random(4);
  for (int i = 0; i != 5'000; ++i) drive(drive_verify, mutated(random, some_order(random)));
}

TEST_CASE("lengths beyond all bounds take no memory and no time") {
  for (const char* const command : {"*2147483647\r\n", "*1\r\n$2147483647\r\n", "*9223372036854775807\r\n",
                                    "*1\r\n$9223372036854775807\r\n", "*65536\r\n", "$5\r\nhello\r\n"})
    drive(drive_resp, std::string(1, '\0') + command);
  for (const std::uint32_t length : {2049U, 0x7fffffffU, 0xffffffffU, 0xffffffe0U}) {
    std::string frame = deposit_frame(1);
    std::copy_n(reinterpret_cast<const char*>(&length), sizeof length, frame.begin());
    drive(drive_native, '\1' + frame);
  }
}

TEST_CASE("a client that sends much and waits for nothing is served at its limits") {
  std::string native(1, '\1');
  std::string resp(1, '\0');
  for (std::uint64_t request = 1; request <= 2'000; ++request) {
    native += deposit_frame(request);
    resp += "DEPOSIT 1 1\r\nPING\r\n";
  }
  drive(drive_native, native);
  drive(drive_resp, resp);
}
