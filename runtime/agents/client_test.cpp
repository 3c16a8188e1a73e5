// SPDX-License-Identifier: Apache-2.0
#include "lockstep/client.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "runtime/agents/testing/served_bench.hpp"

using namespace lockstep;
using namespace lockstep::testing;
using Kind = ClientError::Kind;

namespace {

Client connected(const ServedBench& node, std::chrono::milliseconds request_timeout = std::chrono::seconds(20)) {
  auto client = Client::connect({.port = node.port(), .request_timeout = request_timeout});
  REQUIRE(client.has_value());
  return std::move(*client);
}

/// A loopback listener of which nobody accepts.
struct DeafListener {
  DeafListener() : descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(descriptor, 1) == 0);
    socklen_t size = sizeof address;
    ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
  }
  ~DeafListener() { ::close(descriptor); }
  int descriptor;
  std::uint16_t port = 0;
};

}  // namespace

TEST_CASE("a request comes back as the message it was answered with") {
  for (const io::Backend backend : {io::Backend::epoll, io::Backend::automatic}) {
    ServedBench node({}, backend);
    Client client = connected(node);
    const auto answer = client.request<Deposit>(ref<Teller>(7), std::uint64_t{7}, std::int64_t{250});
    REQUIRE(answer.has_value());
    REQUIRE(answer->as<Deposit>() != nullptr);
    CHECK(answer->as<Deposit>()->amount() == 250);
    CHECK(answer->as<Withdraw>() == nullptr);
    CHECK(client.node().session != 0);
    CHECK(client.in_flight() == 0);
  }
}

TEST_CASE("a struct message and a query go the same way") {
  ServedBench node;
  Client client = connected(node);
  const auto bumped = client.request<Bump>(ref<Teller>(1), std::int64_t{-3});
  REQUIRE(bumped.has_value());
  CHECK(bumped->as<Bump>()->amount() == -3);
  const auto asked = client.request<GetBalance>(ref<Teller>(1), std::uint64_t{44});
  REQUIRE(asked.has_value());
  CHECK(asked->as<GetBalance>()->account() == 44);
}

TEST_CASE("many requests may be in flight and be collected in any order") {
  ServedBench node;
  Client client = connected(node);
  std::vector<std::uint64_t> numbers;
  for (std::int64_t i = 0; i != 20'000; ++i) {
    const auto number = client.send<Deposit>(ref<Teller>(1), std::uint64_t{1}, i);
    REQUIRE(number.has_value());
    numbers.push_back(*number);
  }
  for (std::size_t i = numbers.size(); i-- != 10'000;) {
    const auto answer = client.collect(numbers[i]);
    REQUIRE(answer.has_value());
    CHECK(answer->as<Deposit>()->amount() == static_cast<std::int64_t>(i));
  }
  std::size_t rest = 0;
  for (; client.in_flight() != 0; ++rest) REQUIRE(client.collect_any().has_value());
  CHECK(rest == 10'000);
}

TEST_CASE("what the node refuses is an error with its code, and the connection goes on") {
  ServedBench node;
  Client client = connected(node);
  const auto number = client.send_encoded(wire::FrameKind::request, ref<Teller>(1).address(), 12345, {});
  REQUIRE(number.has_value());
  const auto refused = client.collect(*number);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == Kind::refused);
  CHECK(refused.error().code == wire::WireError::unknown_type);
  CHECK(refused.error().message.find("receives") != std::string::npos);
  CHECK(client.request<Deposit>(ref<Teller>(1), std::uint64_t{1}, std::int64_t{1}).has_value());
}

TEST_CASE("a message beyond the node's limit is not sent") {
  ServedBench node;
  Client client = connected(node);
  const std::vector<std::byte> large(client.node().max_payload_bytes + 1);
  const auto sent = client.send_encoded(wire::FrameKind::request, ref<Teller>(1).address(), message_id<Deposit>, large);
  REQUIRE_FALSE(sent.has_value());
  CHECK(sent.error().kind == Kind::misuse);
  CHECK(client.in_flight() == 0);
}

TEST_CASE("a number that is not in flight cannot be collected") {
  ServedBench node;
  Client client = connected(node);
  CHECK(client.collect(99).error().kind == Kind::misuse);
  CHECK(client.collect_any().error().kind == Kind::misuse);
}

TEST_CASE("an answer that does not come in time is a timeout, and the next request is answered") {
  ServedBench node;
  Client client = connected(node, std::chrono::milliseconds(50));
  node.set_silent(true);
  const auto late = client.request<Bump>(ref<Teller>(1), std::int64_t{1});
  REQUIRE_FALSE(late.has_value());
  CHECK(late.error().kind == Kind::timeout);
  node.set_silent(false);
  Client patient = connected(node);
  CHECK(patient.request<Bump>(ref<Teller>(1), std::int64_t{2}).has_value());
}

TEST_CASE("a node that stops closes its clients, and calls that find no other in time say so") {
  ServedBench node;
  Client client = connected(node, std::chrono::milliseconds(300));
  node.stop();
  ClientError error;
  for (;;) {
    const auto answer = client.request<Bump>(ref<Teller>(1), std::int64_t{1});
    if (answer) continue;
    error = answer.error();
    break;
  }
  CHECK(error.kind == Kind::closed);
  CHECK(client.request<Bump>(ref<Teller>(1), std::int64_t{1}).error().kind == Kind::closed);
}

TEST_CASE("what times out stays in flight and can be collected later") {
  ServedBench node;
  Client client = connected(node, std::chrono::milliseconds(50));
  node.set_silent(true);
  const auto number = client.send<Bump>(ref<Teller>(1), std::int64_t{7});
  REQUIRE(number.has_value());
  CHECK(client.collect(*number).error().kind == Kind::timeout);
  CHECK(client.in_flight() == 1);
  node.set_silent(false);
  auto answer = client.collect(*number);
  for (int i = 0; i < 100 && !answer; ++i) answer = client.collect(*number);
  REQUIRE(answer.has_value());
  CHECK(answer->as<Bump>()->amount() == 7);
}

TEST_CASE("a node that has forgotten the session leaves open requests unknown, and the next go on in a new one") {
  auto node = std::make_unique<ServedBench>();
  const std::uint16_t port = node->port();
  Client client = connected(*node);
  REQUIRE(client.request<Bump>(ref<Teller>(1), std::int64_t{1}).has_value());
  node->set_silent(true);
  const auto open = client.send<Bump>(ref<Teller>(1), std::int64_t{2});
  REQUIRE(open.has_value());
  REQUIRE(client.flush().has_value());
  node.reset();
  node = std::make_unique<ServedBench>(NodeBench::Options{}, io::Backend::epoll, port);
  CHECK(client.collect(*open).error().kind == Kind::unknown);
  const auto next = client.request<Bump>(ref<Teller>(1), std::int64_t{3});
  REQUIRE(next.has_value());
  CHECK(next->as<Bump>()->amount() == 3);
}

TEST_CASE("nobody at an address, and somebody who says nothing, are both unreachable, in time") {
  std::uint16_t free_port = 0;
  {
    free_port = DeafListener().port;
  }
  const auto nobody = Client::connect({.port = free_port});
  REQUIRE_FALSE(nobody.has_value());
  CHECK(nobody.error().kind == Kind::unreachable);
  CHECK(nobody.error().message.find(std::to_string(free_port)) != std::string::npos);

  const DeafListener silent;
  const auto unanswered = Client::connect({.port = silent.port, .connect_timeout = std::chrono::milliseconds(50)});
  REQUIRE_FALSE(unanswered.has_value());
  CHECK(unanswered.error().kind == Kind::unreachable);
}
