// SPDX-License-Identifier: Apache-2.0
#include "journal/anchors.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {

Known known_of(const HardState& state, const std::optional<HashEntry>& durable_root) {
  Known known{.state = state,
              .anchors = {Anchor{state.snapshot_index, state.snapshot_chain, "the newest snapshot"},
                          Anchor{state.durable_index, state.durable_chain, "the hard state's durable mark"},
                          Anchor{0, {}, "the hash log's last root of a durable batch"}}};
  if (!durable_root) return known;
  known.anchors[2].index = durable_root->index;
  known.anchors[2].chain = durable_root->chain;
  if (durable_root->index <= known_durable(state)) return known;
  known.state.durable_index = durable_root->index;
  known.state.durable_chain = durable_root->chain;
  known.durable_source = "the hash log";
  return known;
}

Result<Known> look_at_known(Disk& disk, const std::string& directory, const HardState& state) {
  const auto root = last_durable_root(disk, directory, state.cluster_id, state.replica_id);
  if (!root) return std::unexpected(root.error());
  return known_of(state, *root);
}

std::uint64_t known_durable(const HardState& state) {
  return std::max(state.durable_index, state.snapshot_index);
}

void meet(std::span<Anchor> anchors, const HistoryPosition& position) {
  for (Anchor& anchor : anchors)
    if (anchor.index == position.index) anchor.met = position.chain;
}

std::vector<Finding> contradictions(std::span<const Anchor> anchors, const HardState& state, std::uint64_t first_index,
                                    const HistoryPosition& last, const std::string& directory) {
  std::vector<Finding> found;
  const auto add = [&](std::uint64_t index, std::string evidence) {
    found.push_back({directory, 0, 0, index, TailClass::corrupt, std::move(evidence)});
  };
  for (const Anchor& anchor : anchors) {
    if (anchor.index > last.index)
      add(last.index + 1,
          fmt::format("the history ends before it, and {} is of batch {}", anchor.source, anchor.index));
    if (anchor.index != 0 && anchor.met && *anchor.met != anchor.chain)
      add(anchor.index, fmt::format("its chain is {} here, and in {} {}: two histories were mixed",
                                    anchor.met->short_hex(), anchor.source, anchor.chain.short_hex()));
  }
  if (first_index > state.snapshot_index + 1)
    add(first_index, fmt::format("the history begins here, and the newest snapshot is of batch {}: what is between "
                                 "them is missing",
                                 state.snapshot_index));
  return found;
}

}  // namespace lockstep
