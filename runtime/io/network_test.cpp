// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/network.hpp"

#include <sys/socket.h>

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

}  // namespace

TEST_CASE("chunks of random sizes over several connections come back whole and in order") {
  on_each_backend([](Backend backend) {
    Server server(backend);
    Echo echo(server);
    constexpr int clients = 5;
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (int c = 0; c < clients; ++c) {
      threads.emplace_back([&, c] {
        const Descriptor socket = connect_to(server.port());
        std::mt19937 random(static_cast<unsigned>(c));
        const auto bytes = pattern(700'000, static_cast<std::uint64_t>(c));
        std::thread writer([&] {
          std::span<const std::byte> rest(bytes);
          while (!rest.empty()) {
            const std::size_t piece = std::min<std::size_t>(rest.size(), 1 + random() % 50'000);
            send_all(socket.get(), rest.first(piece));
            rest = rest.subspan(piece);
          }
        });
        if (receive_exactly(socket.get(), bytes.size()) == bytes) ++right;
        writer.join();
      });
    }
    server.until([&] { return server.closes == clients; });
    for (std::thread& thread : threads) thread.join();
    CHECK(right == clients);
    CHECK(server.accepted.size() == clients);
  });
}

TEST_CASE("listening on a port in use names the address and the remedy") {
  on_each_backend([](Backend backend) {
    Server first(backend);
    const auto second = reactor_of(backend);
    const auto refused = second->network().listen({"127.0.0.1", first.port()});
    REQUIRE(!refused);
    CHECK(refused.error().code == ErrorCode::busy);
    CHECK(refused.error().message.find("127.0.0.1:" + std::to_string(first.port())) != std::string::npos);
    CHECK(refused.error().message.find("EADDRINUSE") != std::string::npos);
    CHECK(!second->network().listen({"no such host", 1}));
  });
}
