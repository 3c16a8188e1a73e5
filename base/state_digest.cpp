// SPDX-License-Identifier: Apache-2.0
#include "base/state_digest.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace lockstep {

Digest state_root(const Digest& genesis, std::span<const Digest> shards) {
  std::vector<Digest> all{genesis};
  all.insert(all.end(), shards.begin(), shards.end());
  return xxh3_128(std::as_bytes(std::span(all)));
}

Digest effects_root(std::span<const Digest> shards) {
  return xxh3_128(std::as_bytes(shards));
}

void TreeDigest::add(Digest leaf) {
  push(0, leaf);
}

void TreeDigest::push(std::size_t level, Digest digest) {
  if (level == levels_.size()) levels_.emplace_back();
  Level& at = levels_[level];
  if (at.used == tree_fanout) {
    at.used = 0;
    push(level + 1, tree_node(at.digests, static_cast<unsigned>(level + 1)));
  }
  Level& now = levels_[level];  // the push above may have moved them
  now.digests[now.used++] = digest;
  ++now.total;
}

Digest TreeDigest::finish() {
  Digest root;
  for (std::size_t level = 0; level < levels_.size(); ++level) {
    if (levels_[level].total == 1) {
      root = levels_[level].digests[0];
      break;
    }
    const std::span<const Digest> rest(levels_[level].digests.data(), levels_[level].used);
    if (!rest.empty()) push(level + 1, tree_node(rest, static_cast<unsigned>(level + 1)));
  }
  for (Level& level : levels_) level.used = 0, level.total = 0;
  return root;
}

void StateDigest::add_pages(std::span<const std::byte> pages) {
  while (!pages.empty()) {
    LOCKSTEP_ASSERT(left_ > 0, "an arena was given more pages than its image has");
    const std::uint64_t bytes = std::min<std::uint64_t>(state_page_bytes, left_);
    pages_.add(xxh3_128(pages.first(bytes)));
    left_ -= bytes;
    pages = pages.subspan(state_page_bytes);
  }
}

Digest StateDigest::end_arena() {
  LOCKSTEP_ASSERT(left_ == 0, "an arena's digest was asked for before its last page");
  const Digest root = pages_.finish();
  arenas_.add(root);
  return root;
}

}  // namespace lockstep
