// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/network.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <random>
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
  threads.reserve(static_cast<std::size_t>(clients));
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

}  // namespace

TEST_CASE("chunks of random sizes over several connections come back whole and in order") {
  on_each_backend([](Backend backend) {
    Server server(backend);
    CHECK(echo_clients(server, 5, 200'000, 50'000) == 5);
    CHECK(server.accepted.size() == 5);
    for (const auto& [id, error] : server.closed_error) CHECK(error == 0);
  });
}

TEST_CASE("four small buffers serve many eager connections") {
  on_each_backend([](Backend backend) {
    Server server(backend, {.receive_buffers = 4, .receive_buffer_bytes = 256});
    CHECK(echo_clients(server, 4, 15'000, 4'000) == 4);
  });
}

TEST_CASE("a consumer that turns more often than it polls runs short of buffers and loses nothing") {
  on_each_backend([](Backend backend) {
    Server server(backend, {.receive_buffers = 4, .receive_buffer_bytes = 256});
    const Descriptor socket = connect_to(server.port());
    const ConnectionId id = server.accept();
    const auto bytes = pattern(40'000, 1);
    std::thread writer([&] { send_all(socket.get(), bytes); });
    while (server.reactor().counters().buffer_shortages == 0) server.reactor().turn();
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
  CHECK(echo_clients(server, 4, 30'000, 5'000) == 4);
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
