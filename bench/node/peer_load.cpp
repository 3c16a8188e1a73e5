// SPDX-License-Identifier: Apache-2.0
// Loads a server that redis-benchmark cannot speak to, in redis-benchmark's way: each connection sends a pipeline of
// requests, awaits all their answers, and sends the next. A closed loop, so the latency is that of the server under
// this many requests, not under a planned rate. Prints one line of JSON.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/histogram.hpp"
#include "bench/node/peer_protocols.hpp"
#include "bench/support/table.hpp"

namespace lockstep::bench {
namespace {

struct Options {
  std::string protocol;
  std::uint16_t port = 0;
  std::uint32_t connections = 50;
  std::uint32_t pipeline = 1;
  std::uint64_t requests = 10'000;
  double seconds = 60;
  std::string hgrm;
};

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "peer_load: {}\n", what);
  std::exit(1);
}

[[noreturn]] void give_up_on(const char* operation) {
  give_up(fmt::format("{} failed: {}", operation, std::strerror(errno)));
}

struct Connection {
  Descriptor socket;
  std::uint32_t number = 0;
  std::string output;  ///< not written yet
  std::string input;   ///< not understood yet
  bool greets = false;
  std::uint32_t awaited = 0;
  std::int64_t sent_ns = 0;
};

class Load {
 public:
  explicit Load(const Options& options)
      : options_(options), protocol_(make_peer_protocol(options.protocol)), poll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (protocol_ == nullptr) give_up(fmt::format("unknown protocol {}: nats or etcd", options.protocol));
    if (!poll_.is_open()) give_up_on("epoll_create1");
    connections_.resize(options_.connections);
    for (std::uint32_t i = 0; i < options_.connections; ++i) open(connections_[i], i);
  }

  void run() {
    while (greeted_ < connections_.size()) turn();
    started_ns_ = clock_.steady_ns();
    for (Connection& connection : connections_) send_next(connection);
    while (answered_ < options_.requests) turn();
    const double seconds = static_cast<double>(clock_.steady_ns() - started_ns_) / 1e9;
    const auto us = [&](double percent) { return static_cast<double>(latency_ns_.percentile(percent)) / 1000; };
    fmt::print(
        "{{\"requests\":{},\"rate\":{:.1f},\"p50\":{:.1f},\"p90\":{:.1f},\"p99\":{:.1f},\"p99.9\":{:.1f},\"max\":{:.1f}"
        "}}\n",
        answered_, static_cast<double>(answered_) / seconds, us(50), us(90), us(99), us(99.9), us(100));
    if (options_.hgrm.empty()) return;
    if (const auto written = write_file(options_.hgrm, latency_ns_.hgrm(1000)); !written)
      give_up(written.error().message);
  }

 private:
  static constexpr std::uint32_t keys = 100'000;

  void open(Connection& connection, std::uint32_t number) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(options_.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connection.number = number;
    connection.socket.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int fd = connection.socket.get();
    if (fd < 0) give_up_on("socket");
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) give_up_on("connect");
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLET, .data = {.u32 = number}};
    if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) give_up_on("epoll_ctl");
    connection.output = protocol_->hello(number);
    connection.greets = !connection.output.empty();
    greeted_ += connection.greets ? 0 : 1;
    write(connection);
  }

  void turn() {
    std::array<epoll_event, 64> events{};
    const int ready = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), 1000);
    if (ready < 0 && errno != EINTR) give_up_on("epoll_wait");
    if (static_cast<double>(clock_.steady_ns() - created_ns_) > options_.seconds * 1e9)
      give_up(fmt::format("{} of {} requests were answered in {} s", answered_, options_.requests, options_.seconds));
    for (int i = 0; i < ready; ++i) {
      Connection& connection = connections_[events[static_cast<std::size_t>(i)].data.u32];
      if (!connection.output.empty()) write(connection);
      read(connection);
    }
  }

  void send_next(Connection& connection) {
    const std::uint64_t left = options_.requests - issued_;
    connection.awaited = static_cast<std::uint32_t>(std::min<std::uint64_t>(options_.pipeline, left));
    for (std::uint32_t i = 0; i < connection.awaited; ++i) {
      random_ = random_ * 6364136223846793005U + 1442695040888963407U;
      protocol_->append_request(connection.output, connection.number,
                                static_cast<std::uint32_t>(random_ >> 33U) % keys);
    }
    issued_ += connection.awaited;
    connection.sent_ns = clock_.steady_ns();
    write(connection);
  }

  void write(Connection& connection) {
    while (!connection.output.empty()) {
      const ssize_t written = ::send(connection.socket.get(), connection.output.data(), connection.output.size(),
                                     MSG_NOSIGNAL | MSG_DONTWAIT);
      if (written < 0 && errno == EAGAIN) return;  // the edge that writing is possible again will come
      if (written < 0) give_up_on("send");
      connection.output.erase(0, static_cast<std::size_t>(written));
    }
  }

  void read(Connection& connection) {
    while (true) {
      const ssize_t got = ::recv(connection.socket.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
      if (got < 0 && errno == EAGAIN) return;
      if (got < 0) give_up_on("recv");
      if (got == 0) give_up("the server closed a connection");
      connection.input.append(buffer_.data(), static_cast<std::size_t>(got));
      understand(connection);
    }
  }

  void understand(Connection& connection) {
    std::size_t done = 0;
    while (done < connection.input.size()) {
      const Received received = protocol_->look_at(std::string_view(connection.input).substr(done), connection.output);
      if (received.kind == Received::Kind::part) break;
      done += received.bytes;
      if (received.kind == Received::Kind::answer) take_answer(connection);
    }
    connection.input.erase(0, done);
    if (!connection.output.empty()) write(connection);
    if (connection.awaited == 0 && started_ns_ != 0 && issued_ < options_.requests) send_next(connection);
  }

  void take_answer(Connection& connection) {
    if (connection.greets) {
      connection.greets = false;
      ++greeted_;
      return;
    }
    if (connection.awaited == 0) give_up("an answer came that nobody asked for");
    --connection.awaited;
    ++answered_;
    latency_ns_.add(static_cast<std::uint64_t>(clock_.steady_ns() - connection.sent_ns));
  }

  Options options_;
  SystemClock clock_;
  std::int64_t created_ns_ = clock_.steady_ns();
  std::unique_ptr<PeerProtocol> protocol_;
  Descriptor poll_;
  std::vector<Connection> connections_;
  std::array<char, 1U << 16U> buffer_{};
  std::size_t greeted_ = 0;
  std::int64_t started_ns_ = 0;
  std::uint64_t issued_ = 0;
  std::uint64_t answered_ = 0;
  std::uint64_t random_ = 1;
  Histogram latency_ns_;
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app("Stores values in a server on loopback as fast as it answers, and prints rate and latencies in us.");
  app.add_option("protocol", options.protocol, "nats or etcd")->required();
  app.add_option("--port", options.port, "Of the server")->required();
  app.add_option("--connections", options.connections, "At once")->check(CLI::Range(1, 10'000));
  app.add_option("--pipeline", options.pipeline, "Requests in flight on a connection")->check(CLI::Range(1, 1024));
  app.add_option("--requests", options.requests, "All together")->check(CLI::PositiveNumber);
  app.add_option("--seconds", options.seconds, "Give up after this long")->check(CLI::PositiveNumber);
  app.add_option("--hgrm", options.hgrm, "Write the distribution into this file")->type_name("FILE");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  return options;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  const auto load = std::make_unique<lockstep::bench::Load>(lockstep::bench::parse(argc, argv));
  load->run();
}
