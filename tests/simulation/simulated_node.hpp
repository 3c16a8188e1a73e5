// SPDX-License-Identifier: Apache-2.0
#pragma once

/// SimulatedNode: a whole node, perimeter to journal to executors, on the calling thread, over a disk in memory, a
/// network that is the test, and a clock that moves when told to. Everything that happens is a function of the seed.

#include <lockstep/actor.hpp>
#include <lockstep/resp.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "journal/testing/memory_disk.hpp"
#include "runtime/agents/testing/fake_network.hpp"
#include "runtime/node.hpp"

namespace lockstep::testing {

/// A reactor whose I/O belongs to the test and outlives it.
class SimulatedReactor final : public io::Reactor {
 public:
  SimulatedReactor(FakeNetwork& network, MemoryDisk& disk) : network_(network), disk_(disk) {}
  io::Network& network() override { return network_; }
  Disk& disk() override { return disk_; }
  int turn() override { return 0; }
  void wait(std::int64_t) override {}
  void wake() override {}
  [[nodiscard]] std::string_view backend() const override { return "simulated"; }

 private:
  FakeNetwork& network_;
  MemoryDisk& disk_;
};

class SimulatedNode {
 public:
  static constexpr std::uint32_t resp_listener = 1;

  /// `resp` null: only native clients, on listener 0.
  SimulatedNode(const Application& application, const resp::Application* resp, MemoryDisk disk, ManualClock& clock,
                std::uint32_t executors, std::uint64_t snapshot_every_bytes = 0,
                Durability durability = Durability::fsync)
      : disk_(std::move(disk)) {
    disk_.shuffle_completions();
    NodeConfig config;
    config.data = "/node";
    if (resp != nullptr) config.resp = "127.0.0.1:0";
    config.admin = "";
    config.durability = durability;
    config.executors = executors;
    config.threads = "one";
    config.handler_timeout_ms = 0;  // simulated time says nothing of how long a handler takes
    config.segment_bytes = 16 << 20;
    config.max_batch_bytes = 64 << 10;
    config.max_frame_bytes = 32 << 10;
    config.batch_slabs = 8;
    config.snapshot_every_bytes = snapshot_every_bytes;
    config.snapshot_quota_bytes = 1 << 20;
    config.journal_kept_bytes = 0;
    config.genesis = {.shards = 8, .max_rounds = 64, .checkpoint_interval = 64, .seed = 5};
    const auto reactor = [this]() -> Result<std::unique_ptr<io::Reactor>> {
      return std::make_unique<SimulatedReactor>(network_, disk_);
    };
    auto opened = Node::open(application, resp, config, clock, reactor);
    if (opened) {
      node_ = std::move(*opened);
    } else {
      refusal_ = opened.error().message;
    }
  }

  /// Why the node did not open; empty when it did.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  [[nodiscard]] Node& node() { return *node_; }
  [[nodiscard]] FakeNetwork& network() { return network_; }
  [[nodiscard]] MemoryDisk& disk() { return disk_; }

  /// Turns until nothing happens any more, or the node has failed.
  void settle(ManualClock& clock) {
    for (int idle = 0; idle < 20 && !node_->failed();) {
      idle = node_->turn() > 0 ? 0 : idle + 1;
      clock.advance(20'000);
    }
  }

 private:
  FakeNetwork network_;
  MemoryDisk disk_;
  std::unique_ptr<Node> node_;
  std::string refusal_;
};

}  // namespace lockstep::testing
