// SPDX-License-Identifier: Apache-2.0
// The life of connections and listeners: limits, ends and races between ends. The streams in between: network_test.cpp.
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <set>
#include <thread>

#include "base/clock.hpp"
#include "runtime/io/test_support.hpp"

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::io::test;

TEST_CASE("a peer that goes away while a send is in flight ends the connection once, and reports no `sent`") {
  on_each_backend([](Backend backend) {
    Server server(backend);
    Descriptor socket = connect_to(server.port());
    const ConnectionId id = server.accept();
    const auto bytes = pattern(8 << 20, 7);
    server.send(id, bytes);
    server.settle(5);
    reset_connection(socket);
    server.until([&] { return server.closes == 1; });
    server.settle(5);
    CHECK(server.closes == 1);
    CHECK(server.sent[id] == 0);
  });
}

TEST_CASE("close() while a send is in flight and the peer writes: `closed` and nothing else follows") {
  on_each_backend([](Backend backend) {
    Server server(backend);
    const std::size_t descriptors = open_descriptors();
    {
      const Descriptor socket = connect_to(server.port());
      const ConnectionId id = server.accept();
      std::atomic<bool> stop{false};
      std::thread writer([&] {
        const auto chunk = pattern(1000, 8);
        while (!stop && ::send(socket.get(), chunk.data(), chunk.size(), MSG_NOSIGNAL) > 0) {
        }
      });
      server.until([&] { return received_bytes(server) > 10'000; });
      const auto bytes = pattern(8 << 20, 9);
      server.send(id, bytes);
      server.reactor().turn();
      const std::size_t before = received_bytes(server);
      server.network().close(id);
      server.network().close(id);
      server.until([&] { return server.closes == 1; });
      CHECK(received_bytes(server) == before);
      CHECK(server.sent[id] == 0);
      CHECK(server.closed_error[id] == 0);
      stop = true;
      ::shutdown(socket.get(), SHUT_RDWR);
      writer.join();
    }
    CHECK(open_descriptors() == descriptors);
  });
}

TEST_CASE("an id is never used again, and calls with a dead one do nothing") {
  on_each_backend([](Backend backend) {
    Server server(backend);
    std::set<ConnectionId> ids;
    std::set<std::uint32_t> slots;
    const auto bytes = pattern(10, 10);
    for (std::size_t i = 0; i < 100; ++i) {
      Descriptor socket = connect_to(server.port());
      const ConnectionId id = server.accept();
      ids.insert(id);
      slots.insert(static_cast<std::uint32_t>(id));
      // Both sides close at once, every other time.
      if (i % 2 == 0) server.network().close(id);
      socket.reset();
      server.until([&] { return server.closes == i + 1; });
      server.network().pause(id);
      server.network().resume(id);
      server.send(id, bytes);
      server.network().close(id);
    }
    server.settle(5);
    CHECK(ids.size() == 100);
    CHECK(slots.size() < 10);
    CHECK(server.closes == 100);
    CHECK(!ids.contains(ConnectionId::none));
    server.network().close(ConnectionId::none);
    server.network().close(ConnectionId{std::uint64_t{1} << 32 | 4'000'000});
  });
}

TEST_CASE("a connection beyond the limit is closed at once, and a freed place is given again") {
  on_each_backend([](Backend backend) {
    Server server(backend, {.max_connections = 2});
    Descriptor first = connect_to(server.port());
    const Descriptor second = connect_to(server.port());
    [[maybe_unused]] const ConnectionId kept = server.accept();
    [[maybe_unused]] const ConnectionId other = server.accept();
    const Descriptor third = connect_to(server.port());
    server.until([&] { return server.reactor().counters().refused_connections == 1; });
    CHECK(receive_exactly(third.get(), 1).empty());
    first.reset();
    server.until([&] { return server.closes == 1; });
    const Descriptor fourth = connect_to(server.port());
    server.accept();
    CHECK(server.accepted.size() == 3);
  });
}

TEST_CASE("without a free descriptor the listener rests instead of spinning, and then goes on") {
  on_each_backend([](Backend backend) {
    Server server(backend);
    const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    connect_socket(socket.get(), server.port());
    // UBSan checks a type at its first use, by opening a pipe: have that behind us.
    Server(backend).step();
    [[maybe_unused]] const std::int64_t now_ns = SystemClock().steady_ns();
    // No number below this one is free. io_uring takes the limit at the time the accept is submitted, so before a turn.
    LowerLimit limit(RLIMIT_NOFILE, static_cast<rlim_t>(Descriptor(::dup(socket.get())).get()));
    server.until([&] { return server.reactor().counters().accept_pauses == 1; });
    const auto since = std::chrono::steady_clock::now();
    for (int i = 0; i < 20; ++i) server.step();
    // However long these steps took: a rest of 100 ms lies between two attempts.
    const auto rests = (std::chrono::steady_clock::now() - since) / std::chrono::milliseconds(100);
    CHECK(server.reactor().counters().accept_pauses <= 2 + static_cast<std::uint64_t>(rests));
    CHECK(server.reactor().counters().completions == server.reactor().counters().accept_pauses);
    CHECK(server.accepted.empty());
    limit.restore();
    server.accept();
  });
}

TEST_CASE("stop_listening() turns new peers away and leaves the others alone") {
  on_each_backend([](Backend backend) {
    Server server(backend);
    const std::size_t descriptors = open_descriptors();
    const Descriptor socket = connect_to(server.port());
    const ConnectionId id = server.accept();
    server.network().stop_listening();
    server.network().stop_listening();
    server.settle(5);
    CHECK(open_descriptors() == descriptors + 1);  // two for the connection, one less for the listener
    const Descriptor late(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    CHECK(!try_connect(late.get(), server.port()));
    send_all(socket.get(), pattern(10, 11));
    server.until([&] { return server.received[id].size() == 10; });
    CHECK(server.accepted.size() == 1);
  });
}

TEST_CASE("an event says through which listener a connection came") {
  on_each_backend([](Backend backend) {
    Server server(backend);
    const auto second = server.network().listen({});
    REQUIRE(second);
    std::vector<std::uint32_t> listeners;
    server.on_event = [&](const NetworkEvent& event) { listeners.push_back(event.listener); };
    const Descriptor a = connect_to(second->port);
    server.accept();
    const Descriptor b = connect_to(server.port());
    server.accept();
    CHECK(listeners == std::vector<std::uint32_t>{1, 0});
  });
}

TEST_CASE("an idle server sleeps through its waits, even with a connection that is paused and was reset") {
  on_each_backend([](Backend backend) {
    Server server(backend);
    const Descriptor idle = connect_to(server.port());
    server.accept();
    Descriptor broken = connect_to(server.port());
    const ConnectionId id = server.accept();
    server.network().pause(id);
    server.settle(5);
    reset_connection(broken);
    server.settle(5);
    const ReactorCounters before = server.reactor().counters();
    for (int i = 0; i < 3; ++i) {
      server.reactor().wait(5'000'000);
      CHECK(server.reactor().turn() == 0);
    }
    const ReactorCounters after = server.reactor().counters();
    CHECK(after.sleeps - before.sleeps == 3);
    CHECK(after.enters - before.enters <= 6);
    server.network().resume(id);
    server.until([&] { return server.closes == 1; });
    CHECK(server.closed_error[id] == ECONNRESET);
  });
}

TEST_CASE("a reactor that is destroyed in the midst of its work leaves no descriptor behind") {
  on_each_backend([](Backend backend) {
    const std::size_t descriptors = open_descriptors();
    const auto bytes = pattern(8 << 20, 12);
    {
      std::vector<Descriptor> peers;
      Server server(backend);
      for (int i = 0; i < 5; ++i) {
        peers.push_back(connect_to(server.port()));
        server.send(server.accept(), bytes);
      }
      server.settle(2);
    }
    // The kernel ends a closed ring's requests behind the scenes; their sockets are no descriptors any more.
    CHECK(open_descriptors() == descriptors);
  });
}

TEST_CASE("listening where one cannot names the address and the remedy") {
  const auto reactor = reactor_of(Backend::epoll);
  Network& network = reactor->network();
  const auto elsewhere = network.listen({"203.0.113.7", 0});
  REQUIRE(!elsewhere);
  CHECK(elsewhere.error().code == ErrorCode::usage);
  CHECK(elsewhere.error().message.find("203.0.113.7:0: EADDRNOTAVAIL") != std::string::npos);
  // Longer than a name may be, so that no resolver is asked.
  CHECK(!network.listen({std::string(300, 'x'), 1}));
  const auto six = network.listen({"::1", 0});
  CHECK((six.has_value() || six.error().message.find("::1") != std::string::npos));  // some containers have no IPv6

  const auto first = network.listen({});
  REQUIRE(first);
  const auto refused = network.listen(*first);
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::busy);
  CHECK(refused.error().message.find(first->text() + ": EADDRINUSE") != std::string::npos);
}
