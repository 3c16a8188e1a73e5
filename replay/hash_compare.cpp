// SPDX-License-Identifier: Apache-2.0
#include "replay/hash_compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace lockstep {
namespace {

const Checkpoint* find_checkpoint(const HashSide& side, std::uint64_t batch) {
  const auto found = std::ranges::lower_bound(side.checkpoints, batch, {}, &Checkpoint::batch);
  return found != side.checkpoints.end() && found->batch == batch ? &*found : nullptr;
}

/// Batches that every answering side has a checkpoint for, ascending.
std::vector<std::uint64_t> common_batches(const std::vector<HashSide>& sides) {
  std::map<std::uint64_t, std::size_t> count;
  std::size_t answering = 0;
  for (const HashSide& side : sides) {
    if (side.error) continue;
    ++answering;
    for (const Checkpoint& checkpoint : side.checkpoints) ++count[checkpoint.batch];
  }
  std::vector<std::uint64_t> common;
  for (const auto& [batch, sides_with_it] : count)
    if (sides_with_it == answering) common.push_back(batch);
  return common;
}

bool all_equal_at(const std::vector<HashSide>& sides, std::uint64_t batch) {
  const Checkpoint* first = nullptr;
  for (const HashSide& side : sides) {
    if (side.error) continue;
    const Checkpoint* checkpoint = find_checkpoint(side, batch);
    if (first == nullptr) first = checkpoint;
    if (checkpoint == nullptr || *checkpoint != *first) return false;
  }
  return true;
}

/// Where checkpoints are taken is a function of the history. So one that a side has taken, and that another has passed
/// without taking it, shows that they part there: the first such batch up to `last`, or 0.
std::uint64_t first_unmatched_batch(const std::vector<HashSide>& sides, std::uint64_t last) {
  std::uint64_t first = 0;
  for (const HashSide& side : sides) {
    for (const Checkpoint& checkpoint : side.checkpoints) {
      const std::uint64_t batch = checkpoint.batch;
      if (batch > last || (first != 0 && batch >= first) || std::ranges::binary_search(side.closing, batch)) continue;
      const auto passed = [&](const HashSide& other) {
        return !other.error && !other.checkpoints.empty() && other.checkpoints.front().batch <= batch &&
               other.checkpoints.back().batch >= batch && find_checkpoint(other, batch) == nullptr;
      };
      if (std::ranges::any_of(sides, passed)) first = batch;
    }
  }
  return first;
}

/// What parts two histories, in words; empty: nothing that both sides say. A cluster draws its genesis, and another
/// program has another, so only the first of the three tells anything.
std::string difference(const HashOrigin& a, const HashOrigin& b) {
  if (a.cluster != b.cluster) return fmt::format("cluster {} and cluster {}", a.cluster.hex(), b.cluster.hex());
  if (a.application == 0 || b.application == 0) return {};
  if (a.application != b.application)
    return fmt::format(
        "one cluster, but another program, by its actors, messages or state layout (application {:016x} "
        "and {:016x})",
        a.application, b.application);
  if (a.genesis == b.genesis) return {};
  return fmt::format("one cluster, but another genesis: shards, limits, checkpoint interval or seed ({} and {})",
                     a.genesis.short_hex(), b.genesis.short_hex());
}

/// Why the sides are not to be compared; empty: they are.
std::string incompatibility(const std::vector<HashSide>& sides) {
  for (std::size_t i = 0; i < sides.size(); ++i) {
    for (std::size_t j = i + 1; j < sides.size(); ++j) {
      if (!sides[i].origin || !sides[j].origin) continue;
      const std::string what = difference(*sides[i].origin, *sides[j].origin);
      if (!what.empty()) return fmt::format("{} and {} are of two histories: {}", sides[i].name, sides[j].name, what);
    }
  }
  return {};
}

/// Numbers the groups of equal checkpoints, the largest first.
void group_sides(HashVerdict& verdict) {
  std::vector<std::pair<Checkpoint, std::size_t>> groups;  // a group's bits and how many sides have them
  for (const auto& checkpoint : verdict.at) {
    if (!checkpoint) continue;
    const auto known = std::ranges::find(groups, *checkpoint, &std::pair<Checkpoint, std::size_t>::first);
    if (known == groups.end()) {
      groups.emplace_back(*checkpoint, 1);
    } else {
      ++known->second;
    }
  }
  // By insertion, which keeps the order of equals (libstdc++'s stable_sort uses what C++23 deprecates).
  for (std::size_t i = 1; i < groups.size(); ++i)
    for (std::size_t j = i; j > 0 && groups[j].second > groups[j - 1].second; --j) std::swap(groups[j], groups[j - 1]);
  verdict.group.clear();
  for (const auto& checkpoint : verdict.at) {
    if (!checkpoint) continue;
    const auto known = std::ranges::find(groups, *checkpoint, &std::pair<Checkpoint, std::size_t>::first);
    verdict.group.push_back(static_cast<std::size_t>(known - groups.begin()));
  }
}

}  // namespace

HashVerdict compare_hashes(const std::vector<HashSide>& sides, std::optional<std::uint64_t> at_batch) {
  HashVerdict verdict;
  verdict.at.resize(sides.size());
  std::size_t answering = 0;
  for (const HashSide& side : sides) {
    if (!side.error) {
      ++answering;
    } else if (verdict.reason.empty()) {
      verdict.reason = fmt::format("{}: {}", side.name, side.error->message);
    }
  }
  const auto another = std::ranges::find_if(
      sides, [](const HashSide& side) { return side.error && side.error->code == ErrorCode::incompatible; });
  if (another != sides.end()) {
    verdict.kind = HashVerdict::Kind::incompatible;
    verdict.reason = fmt::format("{}: {}", another->name, another->error->message);
    return verdict;
  }
  if (std::string why = incompatibility(sides); !why.empty()) {
    verdict.kind = HashVerdict::Kind::incompatible;
    verdict.reason = std::move(why);
    return verdict;
  }
  if (sides.size() < 2) verdict.reason = "there is nothing to compare it with";
  if (answering == 0) return verdict;

  const std::vector<std::uint64_t> common = common_batches(sides);
  if (at_batch && !std::ranges::binary_search(common, *at_batch)) {
    verdict.reason = fmt::format("batch {} is not a checkpoint that all sides have", *at_batch);
    return verdict;
  }
  const std::uint64_t unmatched = first_unmatched_batch(sides, at_batch.value_or(UINT64_MAX));
  if (common.empty() && unmatched == 0) {
    verdict.reason = "the sides have no checkpoint in common yet";
    return verdict;
  }
  if (!common.empty()) verdict.batch = at_batch.value_or(common.back());
  for (std::size_t i = 0; i < sides.size(); ++i)
    if (const Checkpoint* checkpoint = sides[i].error ? nullptr : find_checkpoint(sides[i], verdict.batch))
      verdict.at[i] = *checkpoint;
  group_sides(verdict);

  // A chain cannot heal, so any common batch at which two sides differ is a divergence, later equality or not.
  for (const std::uint64_t batch : common) {
    if (batch > verdict.batch || (unmatched != 0 && batch > unmatched)) break;
    if (!all_equal_at(sides, batch)) {
      verdict.kind = HashVerdict::Kind::diverged;
      verdict.first_different_batch = batch;
      return verdict;
    }
    verdict.last_equal_batch = batch;
  }
  if (unmatched != 0) {
    verdict.kind = HashVerdict::Kind::diverged;
    verdict.first_different_batch = unmatched;
    return verdict;
  }
  for (const HashSide& side : sides)
    if (verdict.reason.empty() && !at_batch) verdict.reason = side.lost;
  verdict.kind = verdict.reason.empty() ? HashVerdict::Kind::equal : HashVerdict::Kind::incomplete;
  return verdict;
}

}  // namespace lockstep
