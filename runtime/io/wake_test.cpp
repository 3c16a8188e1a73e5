// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "runtime/io/test_support.hpp"
#include "runtime/io/waker.hpp"

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::io::test;

TEST_CASE("a wake from another thread ends a wait without limit") {
  on_each_backend([](Backend backend) {
    const auto reactor = reactor_of(backend);
    reactor->turn();
    std::thread other([&] { reactor->wake(); });
    reactor->wait(-1);
    other.join();
    CHECK(reactor->counters().sleeps <= 1);
  });
}
