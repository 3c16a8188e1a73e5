// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/hostile.hpp"

#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "runtime/agents/testing/bank_resp.hpp"
#include "runtime/agents/testing/perimeter_bench.hpp"

namespace lockstep::testing {
namespace {

/// One node for all inputs, with a well-behaved client of either kind. Small limits, so that they are met often.
class Victim {
 public:
  Victim() : bench_(options()) {
    LOCKSTEP_ASSERT(bench_.perimeter.listen({}, CodecKind::resp).has_value(), "a fake network can listen");
    native_ = bench_.greeted();
    resp_ = bench_.network.connect(1);
  }

  void attack(CodecKind codec, std::string_view bytes, std::size_t chunk_bytes) {
    FakeNetwork& network = bench_.network;
    const auto attacker = network.connect(codec == CodecKind::native ? 0 : 1);
    network.set_chunk_bytes(chunk_bytes);
    network.client_sends(attacker, bytes);
    settle();
    const std::string read = network.client_reads(attacker);
    if (codec == CodecKind::native)
      (void)frames_of(read);
    else
      LOCKSTEP_ASSERT(read.empty() || read.ends_with("\r\n"), "a RESP answer is cut");
    network.set_chunk_bytes(SIZE_MAX);
    network.client_closes(attacker);
    settle();
    LOCKSTEP_ASSERT(network.open_count() == 2, "an attacker's connection was not given up");
    check_others();
  }

 private:
  static PerimeterBench::Options options() {
    PerimeterBench::Options made;
    made.pool = {.slabs = 4, .max_batch_bytes = 8192, .executors = 1, .last_index = 0};
    made.perimeter.max_payload_bytes = 2048;
    made.perimeter.max_connections = 4;
    made.perimeter.max_output_bytes = 1U << 18;
    made.perimeter.codec.max_in_flight = 32;
    made.perimeter.resp = bank_resp_application();
    return made;
  }

  /// Turns until nothing happens any more.
  void settle() {
    for (int idle = 0; idle != 2;) {
      int done = bench_.turn();
      done += bench_.execute();  // checks every batch
      done += bench_.execute_queries();
      bench_.steady_ns += 1;
      idle = done == 0 ? idle + 1 : 0;
    }
  }

  void check_others() {
    ++requests_;
    const auto amount = static_cast<std::int64_t>(requests_);
    bench_.network.client_sends(native_, deposit_frame(requests_, 3, amount));
    bench_.network.client_sends(resp_, "DEPOSIT 3 " + std::to_string(amount) + "\r\n");
    settle();
    const auto answers = bench_.read(native_);
    LOCKSTEP_ASSERT(answers.size() == 1 && answers[0].header.kind == wire::FrameKind::reply &&
                        answers[0].header.request == requests_ &&
                        answers[0].payload == payload_of<Deposit>(std::uint64_t{3}, amount),
                    "a client beside the attacker got another answer");
    LOCKSTEP_ASSERT(bench_.network.client_reads(resp_) == ":" + std::to_string(amount) + "\r\n",
                    "a RESP client beside the attacker got another answer");
  }

  PerimeterBench bench_;
  io::ConnectionId native_{};
  io::ConnectionId resp_{};
  std::uint64_t requests_ = 0;
};

Victim& victim() {
  static const auto the_victim = std::make_unique<Victim>();
  return *the_victim;
}

std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Sound bytes with some overwritten: pairs of offset and value, so that a fuzzer need not find the protocol by itself.
std::string patched(std::string sound, std::span<const std::uint8_t> patches) {
  for (std::size_t i = 0; i + 1 < patches.size(); i += 2)
    sound[patches[i] % sound.size()] = static_cast<char>(patches[i + 1]);
  return sound;
}

std::size_t chunk_of(std::uint8_t control) {
  return control < 128 ? SIZE_MAX : 1 + std::size_t{3} * (control & 126U);
}

std::uint64_t sum_of(std::string_view text) {
  std::uint64_t sum = 0;
  for (const char c : text) sum += static_cast<std::uint8_t>(c);
  return sum;
}

std::uint64_t read_all(const Order& order) {
  std::uint64_t sum =
      order.id() + static_cast<std::uint64_t>(order.amount()) + order.small() + (order.urgent() ? 1 : 0);
  if (order.memo() != nullptr) sum += sum_of(order.memo()->string_view());
  if (order.legs() != nullptr)
    for (const Leg* leg : *order.legs()) sum += leg->account();
  if (order.levels() != nullptr)
    for (const Level* level : *order.levels()) sum += level->size();
  if (order.numbers() != nullptr)
    for (const std::uint32_t number : *order.numbers()) sum += number;
  if (order.best() != nullptr) sum += order.best()->size();
  if (order.first() != nullptr) sum += order.first()->account();
  if (order.names() != nullptr)
    for (const flatbuffers::String* name : *order.names()) sum += sum_of(name->string_view());
  return sum;
}

std::uint64_t depth_of(const Node& node) {
  std::uint64_t depth = 0;
  for (const Node* at = &node; at != nullptr; at = at->left() != nullptr ? at->left() : at->right()) ++depth;
  return depth;
}

}  // namespace

void drive_native(std::span<const std::uint8_t> input) {
  if (input.empty()) return;
  static const std::string sound =
      deposit_frame(1) +
      message_frame<GetBalance>(wire::FrameKind::query, 2, 1, payload_of<GetBalance>(std::uint64_t{7})) +
      deposit_frame(3, 2);
  std::string bytes = (input[0] & 1U) != 0 ? hello_frame() : std::string();
  bytes += (input[0] & 2U) != 0 ? patched(sound, input.subspan(1)) : text_of(input.subspan(1));
  victim().attack(CodecKind::native, bytes, chunk_of(input[0]));
}

void drive_resp(std::span<const std::uint8_t> input) {
  if (input.empty()) return;
  static const std::string sound =
      "*3\r\n$7\r\nDEPOSIT\r\n$1\r\n1\r\n$2\r\n10\r\nECHO \"a\\x41\" \r\n*2\r\n$3\r\nBIG\r\n$3\r\n300\r\nPING\r\n";
  const auto rest = input.subspan(1);
  victim().attack(CodecKind::resp, (input[0] & 2U) != 0 ? patched(sound, rest) : std::string(text_of(rest)),
                  chunk_of(input[0]));
}

void drive_verify(std::span<const std::uint8_t> input) {
  // Exactly as large as the input, so that a sanitizer sees any byte read beyond it.
  static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= 16);
  const auto aligned = std::make_unique_for_overwrite<std::byte[]>(input.size());
  if (!input.empty()) std::memcpy(aligned.get(), input.data(), input.size());
  const std::span<const std::byte> payload(aligned.get(), input.size());
  volatile std::uint64_t sink = 0;
  if (verify<Order>(payload)) sink = read_all(decode<Order>(payload.data()));
  if (verify<Node>(payload)) sink = depth_of(decode<Node>(payload.data()));
  if (verify<Bump>(payload)) sink = static_cast<std::uint64_t>(decode<Bump>(payload.data()).amount());
  (void)sink;
}

}  // namespace lockstep::testing
