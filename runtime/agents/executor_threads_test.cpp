// SPDX-License-Identifier: Apache-2.0
// Executors on threads of their own, as a node runs them, against one executor on one thread.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/agents/executor.hpp"
#include "runtime/agents/frames.hpp"
#include "runtime/agents/replica.hpp"
#include "runtime/agents/testing/session_workload.hpp"

namespace lockstep {
namespace {

using namespace testing;

/// Drains a ring; returns how many frames there were.
std::size_t drain(ByteRing& ring) {
  std::size_t count = 0;
  for (; !ring.peek().empty(); ++count) ring.release();
  return count;
}

struct Node {
  Node(std::uint32_t executors, const Genesis& genesis)
      : mail(executors, 2048), board(genesis.shards, executors, genesis_digest(genesis)) {
    for (std::uint32_t index = 0; index < executors; ++index) {
      replies.push_back(std::make_unique<ByteRing>(2048));
      hosts.push_back(std::make_unique<Executor>(Executor::Options{.application = &workload(),
                                                                   .genesis = genesis,
                                                                   .index = index,
                                                                   .executors = executors,
                                                                   .mail = &mail,
                                                                   .replies = {replies.back().get()},
                                                                   .board = &board}));
    }
  }

  /// Runs the whole history, each executor at its own pace, while this thread takes replies and checkpoints.
  void run(const MemoryHistory& history) {
    std::atomic<std::size_t> finished{0};
    std::vector<std::thread> threads;
    threads.reserve(hosts.size());
    for (const auto& host : hosts) {
      threads.emplace_back([&history, &finished, executor = host.get()] {
        for (std::size_t i = 0; i < history.size(); ++i) {
          while (!executor->step(history.batch(i))) std::this_thread::yield();
        }
        finished.fetch_add(1, std::memory_order_release);  // pairs with the load below
      });
    }
    while (finished.load(std::memory_order_acquire) < hosts.size()) {
      take();
      std::this_thread::yield();
    }
    for (std::thread& thread : threads) thread.join();
    take();
  }
  void take() {
    for (const auto& ring : replies) reply_count += drain(*ring);
    while (const auto checkpoint = board.poll()) checkpoints.push_back(*checkpoint);
  }

  MailRings mail;
  CheckpointBoard board;
  std::vector<std::unique_ptr<ByteRing>> replies;
  std::vector<std::unique_ptr<Executor>> hosts;
  std::size_t reply_count = 0;
  std::vector<Checkpoint> checkpoints;
};

/// The history on one executor on this thread, then on several, each on a thread of its own.
void check(const MemoryHistory& history) {
  ByteRing ring(2048);
  std::size_t reply_count = 0;
  Replica one(workload(), workload_genesis(), {.replies = &ring});
  for (std::size_t i = 0; i < history.size(); ++i) {
    one.run(history.batch(i), [&] { reply_count += drain(ring); });
    reply_count += drain(ring);
  }
  for (const std::uint32_t executors : {2U, 4U}) {
    CAPTURE(executors);
    Node node(executors, workload_genesis());
    node.run(history);
    CHECK(node.checkpoints == one.checkpoints());
    CHECK(node.reply_count == reply_count);
    std::vector<ShardDigests> shards(workload_genesis().shards);
    for (const auto& host : node.hosts) host->digest_shards(shards);
    const Checkpoint end =
        combine(*history.batch(history.size() - 1).header, genesis_digest(workload_genesis()), shards);
    CHECK(end == one.end());
  }
}

TEST_CASE("executors on threads of their own come to the same as one on one thread") {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    CAPTURE(seed);
    Workload load(seed);
    for (int i = 0; i < 60; ++i) load.random_batch();
    check(load.history());
  }
}

TEST_CASE("and so they do with durable sessions") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    SessionWorkload load(seed);
    for (int i = 0; i < 60; ++i) load.random_batch();
    check(load.history());
  }
}

}  // namespace
}  // namespace lockstep
