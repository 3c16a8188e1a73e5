// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <lockstep/test_kit.hpp>

#include "shelf.hpp"

TEST_CASE("a shelf gives what it holds and no more") {
  lockstep::TestKit<shelf::Shelf> kit;
  const auto shelf = lockstep::ref<shelf::Shelf>(7);
  kit.send<shelf::Add>(shelf, 42U, 5U);
  kit.expect<shelf::Stock>([](const shelf::Stock& s) { CHECK(s.count() == 5); });
  kit.send<shelf::Take>(shelf, 42U, 9U);
  kit.expect<shelf::Short>([](const shelf::Short& s) { CHECK(s.count() == 5); });
  kit.query<shelf::HowMany>(shelf, 42U);
  kit.expect<shelf::Stock>([](const shelf::Stock& s) { CHECK(s.count() == 5); });
}  // the kit runs it all again, on three executors, and compares the bits
