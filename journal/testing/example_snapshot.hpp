// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ExampleSnapshot: a small state of a few shards and arenas, seeded, for tests of snapshots that need no actors: the
/// images are random bytes, which is all that a snapshot's file knows of them.

#include <random>
#include <vector>

#include "journal/snapshot_writer.hpp"

namespace lockstep {

struct ExampleSnapshot {
  struct Arena {
    std::uint64_t actor_key = 0;
    std::uint64_t image_bytes = 0;
    std::vector<std::byte> pages;  ///< whole pages, zero behind the image
  };
  std::vector<std::vector<Arena>> shards;
  SnapshotHeader header;

  /// Images of these lengths, shard by shard.
  ExampleSnapshot(const HistoryPosition& at, const ClusterId& cluster,
                  const std::vector<std::vector<std::uint64_t>>& lengths, std::uint64_t seed = 1) {
    std::mt19937_64 random(seed);
    StateDigest state;
    std::vector<Digest> effects;
    for (const auto& shard : lengths) {
      shards.emplace_back();
      effects.push_back(effects_of(shards.size() - 1));
      for (const std::uint64_t bytes : shard) {
        Arena arena{shards.back().size(), bytes, std::vector<std::byte>(round_up_to_block(bytes))};
        for (std::uint64_t i = 0; i < bytes; ++i) arena.pages[i] = static_cast<std::byte>(random());
        state.begin_arena(bytes);
        state.add_pages(arena.pages);
        static_cast<void>(state.end_arena());
        shards.back().push_back(std::move(arena));
      }
      state.end_shard();
    }
    header.cluster_id = cluster;
    header.index = at.index;
    header.seq = at.seq;
    header.time_ns = at.time_ns;
    header.chain = at.chain;
    header.genesis_bytes = 5;
    for (std::uint8_t i = 0; i < 5; ++i) header.genesis[i] = static_cast<std::uint8_t>(i + 1);
    header.root = state_root(xxh3_128(std::as_bytes(std::span(header.genesis)).first(5)), state.shards());
    header.effects = effects_root(effects);
  }

  [[nodiscard]] static Digest effects_of(std::size_t shard) { return {shard + 100, shard + 200}; }

  /// All that a node does to make it, but for the hard state.
  [[nodiscard]] Result<void> write(Disk& disk, const std::string& directory) const {
    auto writer = SnapshotWriter::create(disk, directory, header.index);
    if (!writer) return std::unexpected(writer.error());
    for (std::size_t number = 0; number < shards.size(); ++number) {
      writer->begin_shard(effects_of(number));
      for (const Arena& arena : shards[number]) {
        writer->begin_arena(arena.actor_key == 0 ? 0 : 7, arena.actor_key, arena.image_bytes);
        if (auto added = writer->add_pages(arena.pages); !added) return added;
      }
    }
    if (auto sealed = writer->seal(header); !sealed) return sealed;
    for (bool done = false; !done;) {
      const auto step = writer->verify();
      if (!step) return std::unexpected(step.error());
      done = *step;
    }
    return writer->publish();
  }
};

}  // namespace lockstep
