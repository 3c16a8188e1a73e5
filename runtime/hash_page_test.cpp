// SPDX-License-Identifier: Apache-2.0
#include "runtime/hash_page.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace lockstep;

namespace {

Checkpoint checkpoint(std::uint64_t batch, std::uint64_t root) {
  return {batch, batch * 10, -5, {root, 1}, {2, 2}, {batch, 3}};
}

}  // namespace

TEST_CASE("a hash page reads back as itself, and damage is refused") {
  const HashPage page{{{5, 6}, ~0ULL, {7, 8}}, {checkpoint(1, 7), checkpoint(4, ~0ULL)}};
  const auto read = parse_hash_page(print_hash_page(page));
  REQUIRE(read.has_value());
  CHECK(read->origin == page.origin);
  CHECK(read->checkpoints == page.checkpoints);
  const std::string origin =
      R"("cluster":"00000000000000000000000000000001","application":1,"genesis":"00000000000000000000000000000001",)";
  const auto whole = [&](const std::string& schema, const std::string& of, const std::string& checkpoints) {
    return fmt::format(R"({{"schema":"{}",{}"checkpoints":[{}]}})", schema, of, checkpoints);
  };
  CHECK(parse_hash_page(whole("lockstep.hash/2", origin, "")).has_value());
  for (const std::string& bad :
       {std::string(), std::string("{}"), std::string("[]"), whole("lockstep.hash/9", origin, ""),
        whole("lockstep.hash/2", "", ""), whole("lockstep.hash/2", origin, R"({"batch":1})"),
        whole("lockstep.hash/2", origin, R"({"batch":1,"seq":1,"time_ns":1,"root":"xyz","effects":"","chain":""})")})
    CHECK_FALSE(parse_hash_page(bad).has_value());
}
