// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Anchors: what is known of a history from outside its log: the batch of the newest snapshot, one that was durable
/// when the hard state was stored, and one that was durable when its root was recorded in the hash log. A log that ends
/// before them has lost data, however sound it looks; one with another chain there is another history. Pure functions,
/// but for the one that reads the hash log.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "journal/batch.hpp"
#include "journal/disk.hpp"
#include "journal/hard_state.hpp"
#include "journal/hash_log.hpp"
#include "journal/verdict.hpp"

namespace lockstep {

struct Anchor {
  std::uint64_t index = 0;  ///< 0: none
  Digest chain;
  std::string_view source;
  std::optional<Digest> met = std::nullopt;  ///< the log's chain at `index`
};

/// By what a log is judged.
struct Known {
  HardState state;  ///< its durable mark raised to the hash log's, where that is further
  std::array<Anchor, 3> anchors;
  std::string_view durable_source = "the hard state";  ///< who knows known_durable(state), for a finding
};
[[nodiscard]] Known known_of(const HardState& state, const std::optional<HashEntry>& durable_root);
/// With the root that the directory's hash log has. On a live journal, look before the log is read.
[[nodiscard]] Result<Known> look_at_known(Disk& disk, const std::string& directory, const HardState& state);

/// A batch that was surely durable: all that a snapshot holds was.
[[nodiscard]] std::uint64_t known_durable(const HardState& state);

/// Notes the chain at a position the log passes.
void meet(std::span<Anchor> anchors, const HistoryPosition& position);

/// What contradicts a log that holds the batches from `first_index` to `last`, all of it sound in itself and passed
/// with meet(); also a beginning that no snapshot reaches.
[[nodiscard]] std::vector<Finding> contradictions(std::span<const Anchor> anchors, const HardState& state,
                                                  std::uint64_t first_index, const HistoryPosition& last,
                                                  const std::string& directory);

}  // namespace lockstep
