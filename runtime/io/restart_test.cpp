// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>
#include <sys/wait.h>

#include <csignal>

#include "runtime/io/test_support.hpp"

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::io::test;

TEST_CASE("a port is free again as soon as its reactor is gone, connections or not") {
  on_each_backend([](Backend backend) {
    std::uint16_t port = 0;
    for (int i = 0; i < 20; ++i) {
      const auto reactor = reactor_of(backend);
      const auto bound = reactor->network().listen({"127.0.0.1", port});
      REQUIRE(bound);
      port = bound->port;
      const Descriptor peer = connect_to(port);
      reactor->turn();
    }
  });
}

TEST_CASE("a server killed in its work can be started again on its port") {
  on_each_backend([](Backend backend) {
    std::uint16_t port = 0;
    for (int i = 0; i < 5; ++i) {
      int ready[2];
      REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ready) == 0);
      const Descriptor parent(ready[0]);
      const pid_t child = ::fork();
      REQUIRE(child >= 0);
      if (child == 0) {
        const auto reactor = make_reactor(backend);
        if (!reactor) ::_exit(1);
        const auto bound = (*reactor)->network().listen({"127.0.0.1", port});
        if (!bound) ::_exit(2);
        (*reactor)->turn();
        if (::write(ready[1], &bound->port, sizeof bound->port) != sizeof bound->port) ::_exit(3);
        for (;;) (*reactor)->wait(-1);
      }
      ::close(ready[1]);
      std::uint16_t bound = 0;
      CHECK(::read(parent.get(), &bound, sizeof bound) == sizeof bound);
      CHECK(bound != 0);
      CHECK((port == 0 || bound == port));
      port = bound;
      const Descriptor peer = connect_to(port);
      REQUIRE(::kill(child, SIGKILL) == 0);
      REQUIRE(::waitpid(child, nullptr, 0) == child);
    }
  });
}
