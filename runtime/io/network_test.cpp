// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/network.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <random>
#include <set>
#include <thread>

#include "runtime/io/test_support.hpp"

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::io::test;

namespace {

/// Sends back what comes, one send at a time per connection, in the order it came.
struct Echo {
  explicit Echo(Server& s) : server(s) {
    server.on_event = [this](const NetworkEvent& event) {
      Stream& stream = streams[event.connection];
      if (event.kind == NetworkEventKind::received) {
        stream.waiting.insert(stream.waiting.end(), event.data.begin(), event.data.end());
      } else if (event.kind == NetworkEventKind::sent) {
        stream.sending.clear();
      } else if (event.kind == NetworkEventKind::closed) {
        streams.erase(event.connection);
        return;
      }
      if (!stream.sending.empty() || stream.waiting.empty()) return;
      stream.sending.swap(stream.waiting);
      server.send(event.connection, stream.sending);
    };
  }

  struct Stream {
    std::vector<std::byte> waiting, sending;
  };
  Server& server;
  std::map<ConnectionId, Stream> streams;
};

/// Clients in threads of their own, each sending `bytes` in random pieces and reading them back. Returns how many got
/// back what they sent.
int echo_clients(Server& server, int clients, std::size_t bytes, std::size_t largest_piece) {
  Echo echo(server);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int c = 0; c < clients; ++c) {
    threads.emplace_back([&, c] {
      const Descriptor socket = connect_to(server.port());
      const auto sent = pattern(bytes, static_cast<std::uint64_t>(c));
      std::thread writer([&] {
        std::mt19937 random(static_cast<unsigned>(c));
        for (std::span<const std::byte> rest(sent); !rest.empty();) {
          const std::size_t piece = std::min<std::size_t>(rest.size(), 1 + random() % largest_piece);
          send_all(socket.get(), rest.first(piece));
          rest = rest.subspan(piece);
        }
      });
      if (receive_exactly(socket.get(), sent.size()) == sent) ++right;
      writer.join();
    });
  }
  server.until([&] { return server.closes == static_cast<std::size_t>(clients); });
  for (std::thread& thread : threads) thread.join();
  return right;
}

std::size_t received_bytes(const Server& server) {
  std::size_t total = 0;
  for (const auto& [id, bytes] : server.received) total += bytes.size();
  return total;
}

void reset_connection(Descriptor& socket) {
  const linger at_once{1, 0};
  REQUIRE(::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
  socket.reset();
}

}  // namespace

TEST_CASE("chunks of random sizes over several connections come back whole and in order") {
  on_each_backend([](Backend backend) {
    Server server(backend);
    CHECK(echo_clients(server, 5, 300'000, 50'000) == 5);
    CHECK(server.accepted.size() == 5);
    for (const auto& [id, error] : server.closed_error) CHECK(error == 0);
  });
}

TEST_CASE("four small buffers serve many eager connections, though all run short of buffers") {
  on_each_backend([](Backend backend) {
    Server server(backend, {.receive_buffers = 4, .receive_buffer_bytes = 256});
    CHECK(echo_clients(server, 6, 60'000, 4'000) == 6);
    CHECK(server.reactor().counters().buffer_shortages > 0);
  });
}

TEST_CASE("a consumer that turns more often than it polls loses nothing") {
  on_each_backend([](Backend backend) {
    Server server(backend, {.receive_buffers = 4, .receive_buffer_bytes = 256});
    const Descriptor socket = connect_to(server.port());
    const ConnectionId id = server.accept();
    const auto bytes = pattern(40'000, 1);
    std::thread writer([&] { send_all(socket.get(), bytes); });
    server.until([&] {
      for (int i = 0; i < 5; ++i) server.reactor().turn();
      return server.received[id].size() == bytes.size();
    });
    writer.join();
    CHECK(server.received[id] == bytes);
  });
}

TEST_CASE("a completion queue much too small still loses no byte of any connection") {
  // It overflows, and the kernel ends multishot receives in completions that carry data and no MORE.
  if (!make_reactor(Backend::uring)) return;
  Server server(Backend::uring, {.receive_buffer_bytes = 64, .submission_entries = 4, .completion_entries = 8});
  CHECK(echo_clients(server, 8, 100'000, 5'000) == 8);
  const ReactorCounters counters = server.reactor().counters();
  CHECK(counters.queue_overflows > 0);
  CHECK(counters.receives_rearmed > counters.buffer_shortages);
}

TEST_CASE("a paused connection delivers nothing, its peer comes to a stop, and no byte is lost") {
  on_each_backend([](Backend backend) {
    Server server(backend);
    const Descriptor socket = connect_to(server.port());
    const ConnectionId id = server.accept();
    const auto bytes = pattern(12 << 20, 2);
    std::atomic<std::size_t> sent{0};
    std::thread writer([&] {
      for (std::span<const std::byte> rest(bytes); !rest.empty();) {
        const std::size_t piece = std::min<std::size_t>(rest.size(), 64 << 10);
        send_all(socket.get(), rest.first(piece));
        rest = rest.subspan(piece);
        sent += piece;
      }
    });
    server.until([&] { return received_bytes(server) > 0; });
    server.network().pause(id);
    const std::size_t before = received_bytes(server);
    server.settle(50);
    CHECK(received_bytes(server) == before);
    CHECK(sent < bytes.size());
    server.network().resume(id);
    server.until([&] { return received_bytes(server) == bytes.size(); });
    writer.join();
    CHECK(server.received[id] == bytes);
  });
}

TEST_CASE("pausing and resuming at random keeps the stream whole") {
  on_each_backend([](Backend backend) {
    Server server(backend, {.receive_buffers = 16, .receive_buffer_bytes = 1024});
    const Descriptor socket = connect_to(server.port());
    const ConnectionId id = server.accept();
    const auto bytes = pattern(256 << 10, 3);
    std::thread writer([&] { send_all(socket.get(), bytes); });
    std::mt19937 random(4);
    bool paused = false;
    server.until([&] {
      if (random() % 2 == 0) server.reactor().turn();  // gathered before the pause, delivered after the resume
      const std::size_t before = server.received[id].size();
      if (random() % 3 == 0) {
        paused ? server.network().resume(id) : server.network().pause(id);
        paused = !paused;
      }
      if (paused) {
        server.step();
        CHECK(server.received[id].size() == before);
      }
      return server.received[id].size() == bytes.size();
    });
    writer.join();
    CHECK(server.received[id] == bytes);
  });
}

TEST_CASE("the end of a stream waits behind the bytes that a pause holds back") {
  on_each_backend([](Backend backend) {
    Server server(backend);
    Descriptor socket = connect_to(server.port());
    const ConnectionId id = server.accept();
    const auto bytes = pattern(1000, 5);
    send_all(socket.get(), bytes);
    while (server.reactor().turn() == 0) server.reactor().wait(10'000'000);
    server.network().pause(id);
    socket.reset();
    server.settle(20);
    CHECK(server.received[id].empty());
    CHECK(server.closes == 0);
    server.network().resume(id);
    server.until([&] { return server.closes == 1; });
    CHECK(server.received[id] == bytes);
    CHECK(server.closed_error[id] == 0);
  });
}

TEST_CASE("a large send to a slow reader is reported once, when all of it is gone") {
  on_each_backend([](Backend backend) {
    Server server(backend);
    const Descriptor socket = connect_to(server.port());
    const ConnectionId id = server.accept();
    const auto bytes = pattern(8 << 20, 6);
    server.send(id, bytes);
    server.settle(20);
    CHECK(server.sent[id] == 0);
    std::vector<std::byte> got;
    std::thread reader([&] { got = receive_exactly(socket.get(), bytes.size()); });
    server.until([&] { return server.sent[id] == 1; });
    reader.join();
    CHECK(got == bytes);
    server.settle(5);
    CHECK(server.sent[id] == 1);
  });
}

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
  on_each_backend([](Backend backend) {
    Server first(backend);
    const auto second = reactor_of(backend);
    const auto refused = second->network().listen({"127.0.0.1", first.port()});
    REQUIRE(!refused);
    CHECK(refused.error().code == ErrorCode::busy);
    CHECK(refused.error().message.find("127.0.0.1:" + std::to_string(first.port())) != std::string::npos);
    CHECK(refused.error().message.find("EADDRINUSE") != std::string::npos);
    const auto elsewhere = second->network().listen({"203.0.113.7", 0});
    REQUIRE(!elsewhere);
    CHECK(elsewhere.error().code == ErrorCode::usage);
    CHECK(!second->network().listen({"no such host", 1}));
    CHECK(second->network().listen({"::1", 0}).has_value());
  });
}
