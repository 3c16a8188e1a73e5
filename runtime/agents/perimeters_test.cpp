// SPDX-License-Identifier: Apache-2.0
// Several perimeters, each on a thread of its own, before one sequencer.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "lockstep/client.hpp"
#include "runtime/agents/frames.hpp"
#include "runtime/agents/perimeter.hpp"
#include "runtime/agents/sequencer.hpp"
#include "runtime/agents/testing/bank_application.hpp"
#include "runtime/io/reactor.hpp"

using namespace lockstep;
using namespace lockstep::testing;

namespace {

/// One perimeter with its reactor, its thread and its rings.
struct Side {
  Side(std::uint8_t index, std::atomic<bool>& end)
      : reactor(io::make_reactor(io::Backend::epoll).value()),
        records(1U << 18),
        answers(1U << 18),
        perimeter(reactor->network(), bank_application(), routes(records), options(index)),
        port(perimeter.listen({}, CodecKind::native).value().port) {
    perimeter.add_answers(answers);
    thread = std::thread([this, &end] {
      SystemClock clock;
      while (!end.load(std::memory_order_relaxed)) {
        const int seen = reactor->turn();
        if (seen + perimeter.do_work({clock.real_ns(), clock.steady_ns()}) == 0) reactor->wait(200'000);
      }
    });
  }
  static Intake::Routes routes(ByteRing& records) {
    Intake::Routes made;
    made.records = &records;
    return made;
  }
  static Perimeter::Options options(std::uint8_t index) {
    Perimeter::Options made;
    made.index = index;
    return made;
  }

  std::unique_ptr<io::Reactor> reactor;
  ByteRing records;
  ByteRing answers;
  Perimeter perimeter;
  std::uint16_t port;
  std::thread thread;
};

/// The sequencer's thread, which also plays journal and executor: it checks each batch and echoes its records.
class EchoNode {
 public:
  EchoNode()
      : pool_({.slabs = 4, .max_batch_bytes = 16384U * 8, .executors = 1, .last_index = 0}),
        sequencer_(pool_, {}, {.seal_depth = 2, .schema_id = 1}) {
    for (std::uint8_t i = 0; i != sides.size(); ++i) {
      sides[i] = std::make_unique<Side>(i, end_);
      sequencer_.add_inbound(sides[i]->records);
    }
    thread_ = std::thread([this] { run(); });
  }
  ~EchoNode() {
    end_.store(true, std::memory_order_relaxed);
    for (auto& side : sides) side->thread.join();
    thread_.join();
  }

  std::array<std::unique_ptr<Side>, 2> sides;
  /// After the clients are done.
  [[nodiscard]] std::uint64_t records() const { return records_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t defects() const { return defects_.load(std::memory_order_relaxed); }

 private:
  void run() {
    SystemClock clock;
    std::uint64_t executed = 0;
    while (!end_.load(std::memory_order_relaxed)) {
      if (sequencer_.do_work({clock.real_ns(), clock.steady_ns()}) == 0 && executed == pool_.sealed())
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      for (; executed != pool_.sealed(); ++executed) echo(pool_.view(executed + 1));
      pool_.written().publish(executed);
      pool_.committed().publish(executed);
      pool_.executed(0).publish(executed);
      for (auto& side : sides) side->answers.publish();
    }
  }
  void echo(const BatchView& batch) {
    if (batch_defect(batch)) defects_.fetch_add(1, std::memory_order_relaxed);
    RecordCursor cursor(batch.payload);
    while (const auto record = cursor.next()) {
      const RecordHeader& header = *record->header;
      if (header.kind == RecordKind::message) {
        push({.route = routes_.at(header.session),
              .request = header.request,
              .message_type = header.message_type,
              .length = header.length},
             record->payload);
        records_.fetch_add(1, std::memory_order_release);
        continue;
      }
      const bool opens = header.kind == RecordKind::session_open;
      routes_[opens ? header.seq : header.session] = header.request;
      push({.route = header.request,
            .request = header.seq,
            .outcome = Outcome::session,
            .detail = static_cast<std::uint32_t>(opens ? SessionEvent::opened : SessionEvent::closed)},
           {});
    }
  }
  void push(const ReplyFrame& reply, std::span<const std::byte> payload) {
    ByteRing& ring = sides[perimeter_of(reply.route)]->answers;
    std::span<std::byte> frame = ring.claim(sizeof reply + payload.size());
    while (frame.empty()) {
      ring.publish();
      std::this_thread::yield();
      frame = ring.claim(sizeof reply + payload.size());
    }
    std::memcpy(frame.data(), &reply, sizeof reply);
    if (!payload.empty()) std::memcpy(frame.data() + sizeof reply, payload.data(), payload.size());
  }

  BatchPool pool_;
  Sequencer sequencer_;
  std::atomic<bool> end_{false};
  std::atomic<std::uint64_t> records_{0};
  std::atomic<std::uint64_t> defects_{0};
  std::map<std::uint64_t, std::uint64_t> routes_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("perimeters on threads of their own share one order, and each client gets its own answers") {
  constexpr std::int64_t requests = 3'000;
  EchoNode node;
  std::atomic<int> wrong{0};
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i != 4; ++i) {
    clients.emplace_back([&, i] {
      auto client = Client::connect({.port = node.sides[i % 2]->port});
      if (!client) {
        ++wrong;
        return;
      }
      std::vector<std::uint64_t> numbers;
      for (std::int64_t n = 0; n != requests; ++n) {
        const auto number = client->send<Bump>(ref<Teller>(i), n * 10 + static_cast<std::int64_t>(i));
        if (number)
          numbers.push_back(*number);
        else
          ++wrong;
      }
      for (std::size_t n = 0; n != numbers.size(); ++n) {
        const auto answer = client->collect(numbers[n]);
        const Bump* const bump = answer ? answer->as<Bump>() : nullptr;
        if (bump == nullptr || bump->amount() != static_cast<std::int64_t>(n * 10 + i)) ++wrong;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  CHECK(wrong == 0);
  CHECK(node.defects() == 0);
  CHECK(node.records() == 4 * requests);
}
