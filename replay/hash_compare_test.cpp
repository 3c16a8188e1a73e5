// SPDX-License-Identifier: Apache-2.0
#include "replay/hash_compare.hpp"

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

Checkpoint at(std::uint64_t batch, std::uint64_t root) {
  return {batch, batch * 10, 5, {root, 1}, {2, 2}, {batch, 3}};
}
HashSide side(std::string name, std::vector<Checkpoint> checkpoints) {
  return {std::move(name), std::move(checkpoints), {}, {}};
}
HashSide silent(std::string name) {
  return {std::move(name), {}, {}, Error{ErrorCode::incomplete, "no answer in 2 ms"}};
}

HashSide of(HashSide side, const HashOrigin& origin) {
  side.origin = origin;
  return side;
}

}  // namespace

TEST_CASE("one side, or none, is never equal") {
  CHECK(compare_hashes({side("a", {at(1, 7)})}, {}).kind == HashVerdict::Kind::incomplete);
  CHECK(compare_hashes({side("a", {at(1, 7)})}, 1).kind == HashVerdict::Kind::incomplete);
  CHECK(compare_hashes({}, {}).kind == HashVerdict::Kind::incomplete);
}

TEST_CASE("sides of two histories are incompatible, and what parts them is named, whatever their roots say") {
  const HashOrigin one{{1, 2}, 3, {4, 5}};
  const auto verdict_of = [&](const HashOrigin& other, std::uint64_t root) {
    return compare_hashes({of(side("a", {at(1, 7)}), one), silent("b"), of(side("c", {at(1, root)}), other)}, {});
  };
  for (const std::uint64_t root : {std::uint64_t{7}, std::uint64_t{8}}) {
    CHECK(verdict_of({{9, 2}, 3, {4, 5}}, root).kind == HashVerdict::Kind::incompatible);
    CHECK(verdict_of({{9, 2}, 3, {4, 5}}, root).reason.contains("a and c are of two histories: cluster"));
    CHECK(verdict_of({{1, 2}, 9, {9, 5}}, root).kind == HashVerdict::Kind::incompatible);
    CHECK(verdict_of({{1, 2}, 9, {9, 5}}, root).reason.contains("program"));
    CHECK(verdict_of({{1, 2}, 3, {9, 5}}, root).kind == HashVerdict::Kind::incompatible);
    CHECK(verdict_of({{1, 2}, 3, {9, 5}}, root).reason.contains("genesis"));
  }
  CHECK(compare_hashes({of(side("a", {at(1, 7)}), one), of(silent("b"), {{9, 2}, 0, {}})}, {}).kind ==
        HashVerdict::Kind::incompatible);
}

TEST_CASE("sides of one history are compared, also with one that does not know its genesis yet") {
  const HashOrigin one{{1, 2}, 3, {4, 5}};
  const auto a = of(side("a", {at(1, 7)}), one);
  CHECK(compare_hashes({a, of(side("b", {at(1, 7)}), one)}, {}).kind == HashVerdict::Kind::equal);
  CHECK(compare_hashes({a, of(side("b", {at(1, 8)}), one)}, {}).kind == HashVerdict::Kind::diverged);
  CHECK(compare_hashes({a, of(silent("b"), {{1, 2}, 0, {}})}, {}).kind == HashVerdict::Kind::incomplete);
}

TEST_CASE("sides that agree at the last batch both have are equal, whoever is ahead") {
  const auto verdict = compare_hashes({side("a", {at(1, 7), at(2, 8), at(3, 9)}), side("b", {at(1, 7), at(2, 8)})}, {});
  CHECK(verdict.kind == HashVerdict::Kind::equal);
  CHECK(verdict.batch == 2);
}

TEST_CASE("a difference is located between two checkpoints, and the majority is group 0") {
  const auto verdict =
      compare_hashes({side("a", {at(1, 7), at(2, 99), at(3, 98)}), side("b", {at(1, 7), at(2, 8), at(3, 9)}),
                      side("c", {at(1, 7), at(2, 8), at(3, 9)})},
                     {});
  CHECK(verdict.kind == HashVerdict::Kind::diverged);
  CHECK(verdict.last_equal_batch == 1);
  CHECK(verdict.first_different_batch == 2);
  CHECK(verdict.group == std::vector<std::size_t>{1, 0, 0});
}

TEST_CASE("a state that healed is still a divergence") {
  const auto verdict = compare_hashes({side("a", {at(1, 5), at(2, 8)}), side("b", {at(1, 6), at(2, 8)})}, {});
  CHECK(verdict.kind == HashVerdict::Kind::diverged);
  CHECK(verdict.first_different_batch == 1);
}

TEST_CASE("a side that lost a part of what it recorded makes the verdict incomplete, unless it differs") {
  HashSide damaged = side("b", {at(1, 7)});
  damaged.lost = "b/hashlog: its last 128 bytes are damaged";
  const auto verdict = compare_hashes({side("a", {at(1, 7), at(2, 8)}), damaged}, {});
  CHECK(verdict.kind == HashVerdict::Kind::incomplete);
  CHECK(verdict.reason == damaged.lost);
  CHECK(verdict.batch == 1);
  CHECK(compare_hashes({side("a", {at(1, 7), at(2, 8)}), damaged}, 1).kind == HashVerdict::Kind::equal);
  CHECK(compare_hashes({side("a", {at(1, 6), at(2, 8)}), damaged}, {}).kind == HashVerdict::Kind::diverged);
}

TEST_CASE("a side that does not answer makes the verdict incomplete, never equal") {
  const auto verdict = compare_hashes({side("a", {at(1, 7)}), side("b", {at(1, 7)}), silent("c")}, {});
  CHECK(verdict.kind == HashVerdict::Kind::incomplete);
  CHECK(verdict.reason == "c: no answer in 2 ms");
  CHECK(verdict.batch == 1);
  CHECK(compare_hashes({silent("c")}, {}).kind == HashVerdict::Kind::incomplete);
}

TEST_CASE("a difference among those that answer is a divergence even if another is silent") {
  const auto verdict = compare_hashes({side("a", {at(1, 7)}), side("b", {at(1, 8)}), silent("c")}, {});
  CHECK(verdict.kind == HashVerdict::Kind::diverged);
}

TEST_CASE("without a checkpoint in common nothing is equal") {
  CHECK(compare_hashes({side("a", {at(1, 7)}), side("b", {at(2, 7)})}, {}).kind == HashVerdict::Kind::incomplete);
  CHECK(compare_hashes({side("a", {}), side("b", {})}, {}).kind == HashVerdict::Kind::incomplete);
  CHECK(compare_hashes({side("a", {at(1, 7)}), side("b", {at(1, 7)})}, 5).kind == HashVerdict::Kind::incomplete);
}

TEST_CASE(
    "a checkpoint that another side has passed without taking it is a divergence, though nothing common differs") {
  const auto verdict =
      compare_hashes({side("a", {at(1, 7), at(4, 8), at(9, 9)}), side("b", {at(1, 7), at(5, 8), at(9, 9)})}, {});
  CHECK(verdict.kind == HashVerdict::Kind::diverged);
  CHECK(verdict.last_equal_batch == 1);
  CHECK(verdict.first_different_batch == 4);
  CHECK(compare_hashes({side("a", {at(2, 7), at(4, 8)}), side("b", {at(1, 7), at(5, 8)})}, {}).kind ==
        HashVerdict::Kind::diverged);
}

TEST_CASE("where a node was stopped, and how far a node's memory reaches back, parts nobody") {
  HashSide stopped = side("stopped", {at(1, 7), at(3, 8), at(4, 9)});
  stopped.closing = {3};
  CHECK(compare_hashes({stopped, side("b", {at(1, 7), at(4, 9)})}, {}).kind == HashVerdict::Kind::equal);
  CHECK(compare_hashes({side("short", {at(3, 8), at(4, 9)}), side("long", {at(1, 7), at(3, 8), at(4, 9)})}, {}).kind ==
        HashVerdict::Kind::equal);
}
