// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Anchors: what is known of a history from outside its log: the batch of the newest snapshot, and one that was durable
/// when the hard state was stored. A log that ends before them has lost data, however sound it looks; one with another
/// chain there is another history. Pure functions.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "journal/batch.hpp"
#include "journal/hard_state.hpp"
#include "journal/verdict.hpp"

namespace lockstep {

struct Anchor {
  std::uint64_t index = 0;  ///< 0: none
  Digest chain;
  std::string_view source;
  std::optional<Digest> met = std::nullopt;  ///< the log's chain at `index`
};

[[nodiscard]] std::array<Anchor, 2> anchors_of(const HardState& state);

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
