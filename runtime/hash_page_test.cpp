// SPDX-License-Identifier: Apache-2.0
#include "runtime/hash_page.hpp"

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

Checkpoint checkpoint(std::uint64_t batch, std::uint64_t root) {
  return {batch, batch * 10, -5, {root, 1}, {2, 2}, {batch, 3}};
}

}  // namespace

TEST_CASE("a hash page reads back as itself, and damage is refused") {
  const std::vector<Checkpoint> checkpoints{checkpoint(1, 7), checkpoint(4, ~0ULL)};
  const auto read = parse_hash_page(hash_page(checkpoints));
  REQUIRE(read.has_value());
  CHECK(*read == checkpoints);
  for (
      const char* bad :
      {"", "{}", "[]", R"({"schema":"lockstep.hash/9","checkpoints":[]})",
       R"({"schema":"lockstep.hash/1","checkpoints":[{"batch":1}]})",
       R"({"schema":"lockstep.hash/1","checkpoints":[{"batch":1,"seq":1,"time_ns":1,"root":"xyz","effects":"","chain":""}]})"})
    CHECK_FALSE(parse_hash_page(bad).has_value());
}
