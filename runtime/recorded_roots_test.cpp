// SPDX-License-Identifier: Apache-2.0
#include "runtime/recorded_roots.hpp"

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

Checkpoint at(std::uint64_t batch, std::uint64_t root) {
  return {batch, batch * 10, 5, {root, 1}, {2, 2}, {batch, 3}};
}
HashEntry entry(std::uint64_t batch, std::uint64_t root, HashKind kind = HashKind::checkpoint) {
  HashEntry made;
  made.kind = kind;
  made.index = batch;
  made.state_root = {root, 1};
  made.effects = {2, 2};
  made.chain = {batch, 3};
  return made;
}
RecordedRoots recorded(std::vector<HashEntry> entries) {
  HashLogContent content;
  content.entries = std::move(entries);
  return RecordedRoots(std::move(content));
}

}  // namespace

TEST_CASE("a run that comes to what was recorded is equal, past the entries that stops left") {
  RecordedRoots roots =
      recorded({entry(2, 7), entry(3, 70, HashKind::closing), entry(5, 8), entry(6, 9, HashKind::closing)});
  CHECK(roots.compare(at(2, 7)).has_value());
  CHECK(roots.compare(at(5, 8)).has_value());
  CHECK(roots.compare_end(at(6, 9)).has_value());
  CHECK(roots.compared() == 3);
  CHECK(roots.not_recorded() == 0);
}

TEST_CASE("another root, effect or chain at a batch is a divergence that names the last equal one") {
  RecordedRoots roots = recorded({entry(2, 7), entry(5, 8)});
  CHECK(roots.compare(at(2, 7)).has_value());
  const auto differs = roots.compare(at(5, 80));
  REQUIRE_FALSE(differs.has_value());
  CHECK(differs.error().code == ErrorCode::diverged);
  CHECK(differs.error().message.find("last equal checkpoint is batch 2") != std::string::npos);
  CHECK_FALSE(recorded({entry(6, 9, HashKind::closing)}).compare_end(at(6, 90)).has_value());
}

TEST_CASE("a recorded checkpoint that is not taken now is a divergence") {
  RecordedRoots roots = recorded({entry(2, 7), entry(4, 8)});
  CHECK(roots.compare(at(2, 7)).has_value());
  CHECK_FALSE(roots.compare(at(5, 8)).has_value());
  RecordedRoots ended = recorded({entry(2, 7), entry(4, 8)});
  CHECK(ended.compare(at(2, 7)).has_value());
  CHECK_FALSE(ended.compare_end(at(5, 8)).has_value());
}

TEST_CASE("a checkpoint that the recorded run passed over is a divergence, one behind the log's end is not") {
  RecordedRoots roots = recorded({entry(2, 7), entry(5, 8)});
  CHECK_FALSE(roots.compare(at(1, 7)).has_value());
  RecordedRoots lost = recorded({entry(2, 7)});
  CHECK(lost.compare(at(2, 7)).has_value());
  CHECK(lost.compare(at(4, 8)).has_value());
  CHECK(lost.compare_end(at(5, 8)).has_value());
  CHECK(lost.compared() == 1);
  CHECK(lost.not_recorded() == 1);
}
