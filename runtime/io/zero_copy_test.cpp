// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/zero_copy.hpp"

#include <doctest/doctest.h>

#include <cerrno>

using namespace lockstep::io;

TEST_CASE("whether zero-copy send works is told, and that it is not used") {
  const Capability works = judge_zero_copy_send(0);
  CHECK(works.good);
  CHECK(works.here == "works");
  CHECK(works.instead.find("plain sends") != std::string::npos);
  const Capability fails = judge_zero_copy_send(EOPNOTSUPP);
  CHECK(fails.good);  // nothing is missing: it would not be used
  CHECK(fails.here.starts_with("EOPNOTSUPP"));
}

TEST_CASE("zero-copy receive is told apart: no kernel for it, no right to ask, no interface, an interface") {
  ZeroCopyReceiveTrial trial;
  CHECK(judge_zero_copy_receive(trial).here == "unknown to this kernel (6.15 is the first)");
  trial.known = true;
  CHECK(judge_zero_copy_receive(trial).here == "no interface has it");
  trial.interfaces = {{"lo", EOPNOTSUPP}, {"eth0", EPERM}};
  CHECK(judge_zero_copy_receive(trial).here == "not known: asking needs CAP_NET_ADMIN");
  trial.interfaces = {{"lo", EOPNOTSUPP}, {"eth0", EOPNOTSUPP}};
  CHECK(judge_zero_copy_receive(trial).here == "no interface has it");
  trial.interfaces = {{"lo", EOPNOTSUPP}, {"eth0", ERANGE}, {"eth1", ERANGE}};
  CHECK(judge_zero_copy_receive(trial).here == "could be had on eth0, eth1");
  CHECK(judge_zero_copy_receive(trial).good);
}

TEST_CASE("trying zero-copy receive sets nothing up on any interface") {
  // An interface that gave a queue it does not have would say success.
  for (const auto& each : try_zero_copy_receive().interfaces) {
    CAPTURE(each.name);
    CHECK(each.error > 0);
  }
}

TEST_CASE("trying zero-copy send ends, with success or with an errno") {
  const int error = try_zero_copy_send();
  CAPTURE(error);
  CHECK((error >= 0 && error != ETIME));
}
