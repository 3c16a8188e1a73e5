// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/host_report.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "runtime/io/proc_files.hpp"

using namespace lockstep::io;

TEST_CASE("the report of the host has a value in every row, and a way out in every bad one") {
  const auto rows = probe_host("no/such/directory/yet");
  CHECK(rows.size() >= 10);
  for (const Capability& row : rows) {
    CAPTURE(row.feature);
    CHECK(!row.here.empty());
    CHECK((row.good || (!row.instead.empty() && !row.remedy.empty())));
    MESSAGE(row.feature << " | " << row.here << " | " << row.instead << " | " << row.remedy);
  }
  const auto names_disk = [](const Capability& row) { return row.feature.find("O_DIRECT") != std::string::npos; };
  CHECK(std::ranges::any_of(rows, names_disk));
  const auto says_missing = [](const Capability& row) {
    return row.here == "not there" && row.remedy.find("no/such/directory/yet does not exist") != std::string::npos;
  };
  CHECK(std::ranges::any_of(rows, says_missing));
  CHECK_FALSE(std::ranges::any_of(probe_host("."), says_missing));
}

TEST_CASE("facts from /proc are read by name, and what is not there is nothing") {
  CHECK(status_field("Pid").value() > 0);
  CHECK(!status_field("NoSuchField"));
  CHECK(!number_in("/proc/self/no_such_file"));
  CHECK(!number_in("/proc/self/status"));
}
