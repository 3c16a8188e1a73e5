// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/region.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>

using lockstep::PageKind;
using lockstep::Region;

TEST_CASE("an allocated region is zeroed, writable, and as large as asked at least") {
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{3} << 20}) {
    auto region = Region::allocate(bytes, "a test");
    REQUIRE(region.has_value());
    CHECK(region->size() >= bytes);
    CHECK(region->data()[bytes - 1] == std::byte{0});
    region->data()[bytes - 1] = std::byte{1};
    if (region->pages() != PageKind::plain) CHECK(reinterpret_cast<std::uintptr_t>(region->data()) % (2U << 20U) == 0);
  }
}

TEST_CASE("a reserved region may be larger than the host's memory and is committed on touch") {
  auto region = Region::reserve(std::size_t{1} << 40, "a test");
  REQUIRE(region.has_value());
  region->data()[region->size() - 1] = std::byte{1};
  CHECK(region->data()[0] == std::byte{0});
}

TEST_CASE("more address space than there is gives an error with the remedy") {
  const auto region = Region::reserve(std::size_t{1} << 62, "a test");
  REQUIRE_FALSE(region.has_value());
  CHECK(region.error().code == lockstep::ErrorCode::full);
  CHECK(region.error().message.find("a test") != std::string::npos);
}

TEST_CASE("a moved region is given back once") {
  auto first = Region::allocate(4096, "a test");
  REQUIRE(first.has_value());
  Region second = std::move(*first);
  CHECK(first->data() == nullptr);
  Region third;
  third = std::move(second);
  third.data()[0] = std::byte{1};
  CHECK(third.bytes().size() >= 4096);
}
