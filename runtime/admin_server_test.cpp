// SPDX-License-Identifier: Apache-2.0
#include "runtime/admin_server.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "runtime/metrics.hpp"

using namespace lockstep;

TEST_CASE("the admin address serves its pages and nothing else") {
  auto server = AdminServer::start({}, {.metrics = [] { return std::string("m"); },
                                        .status = [] { return std::string("{}"); },
                                        .hash = [] { return std::string("[]"); },
                                        .snapshot = [](bool ask) { return std::string(ask ? "asked" : "looked"); }});
  REQUIRE(server.has_value());
  CHECK(admin_get((*server)->endpoint(), "/metrics", 2000).value() == "m");
  CHECK(admin_get((*server)->endpoint(), "/status", 2000).value() == "{}");
  CHECK(admin_get((*server)->endpoint(), "/hash", 2000).value() == "[]");
  CHECK(admin_get((*server)->endpoint(), "/snapshot", 2000).value() == "looked");
  CHECK(admin_post((*server)->endpoint(), "/snapshot", 2000).value() == "asked");
  const auto other = admin_get((*server)->endpoint(), "/etc/passwd", 2000);
  REQUIRE_FALSE(other.has_value());
  CHECK(other.error().message.find("404") != std::string::npos);
  CHECK(admin_get((*server)->endpoint(), "/metrics?module=node", 2000).has_value());
  const auto parameter = admin_get((*server)->endpoint(), "/hash?at=5", 2000);
  REQUIRE_FALSE(parameter.has_value());
  CHECK(parameter.error().message.find("400") != std::string::npos);
}

namespace {

/// A connection that has sent `sent`, and keeps quiet.
int quiet_client(const io::Endpoint& to, const std::string& sent) {
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(to.port);
  REQUIRE(::connect(client, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
  REQUIRE(::send(client, sent.data(), sent.size(), 0) == static_cast<ssize_t>(sent.size()));
  return client;
}

}  // namespace

TEST_CASE("connections that keep quiet do not make others wait") {
  const auto page = [] { return std::string("x"); };
  auto server = AdminServer::start({}, {page, page, page, [](bool) { return std::string(); }});
  REQUIRE(server.has_value());
  std::string sent;
  SUBCASE("without a request") {}
  SUBCASE("in the middle of a request") {
    sent = "GET /sta";
  }
  SUBCASE("behind a whole one") {
    sent = "GET /status HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n";
  }
  std::vector<int> quiet;
  for (int i = 0; i < 20; ++i) quiet.push_back(quiet_client((*server)->endpoint(), sent));
  const auto begun = std::chrono::steady_clock::now();
  const auto answer = admin_get((*server)->endpoint(), "/status", 5000);
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::milliseconds(1500));  // less than one of them is given
  CHECK(answer.value_or("") == "x");
  for (const int client : quiet) ::close(client);
}

TEST_CASE("an admin server ends at once, whoever keeps a connection to it and sends nothing") {
  const auto page = [] { return std::string("x"); };
  auto server = AdminServer::start({}, {page, page, page, [](bool) { return std::string(); }});
  REQUIRE(server.has_value());
  std::string sent;
  SUBCASE("not even a request") {}
  SUBCASE("but the half of a request") {
    sent = "GET /sta";
  }
  SUBCASE("behind a whole one") {
    sent = "GET /status HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n";
  }
  const int client = quiet_client((*server)->endpoint(), sent);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it has been accepted, and is waited for
  const auto begun = std::chrono::steady_clock::now();
  server->reset();
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::milliseconds(1000));  // httplib's own: 1.5 to 5 s
  ::close(client);
}

TEST_CASE("an admin address in use is refused by name") {
  const auto page = [] { return std::string(); };
  const auto first = AdminServer::start({}, {page, page, page, [](bool) { return std::string(); }});
  REQUIRE(first.has_value());
  const auto second = AdminServer::start((*first)->endpoint(), {page, page, page, [](bool) { return std::string(); }});
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().code == ErrorCode::busy);
  CHECK(second.error().message.find((*first)->endpoint().text()) != std::string::npos);
}

TEST_CASE("an address where nobody answers is incomplete, not equal to anything") {
  const auto nobody = admin_get({"127.0.0.1", 1}, "/status", 500);
  REQUIRE_FALSE(nobody.has_value());
  CHECK(nobody.error().code == ErrorCode::incomplete);
  CHECK(nobody.error().message.find("127.0.0.1:1") != std::string::npos);
}

TEST_CASE("addresses are HOST:PORT, and a bad one is refused with what one looks like") {
  CHECK(parse_endpoint("127.0.0.1:7070")->port == 7070);
  CHECK(parse_endpoint(":0")->host == "127.0.0.1");
  CHECK(parse_endpoint("[::1]:80")->host == "::1");
  for (const char* address : {"[::1]:80", "127.0.0.1:80", "example.org:80"})
    CHECK(parse_endpoint(address)->text() == address);
  for (const char* bad : {"", "7070", "host:", "host:70700", "host:7x", "a b:1", "/tmp:1", "host:010", "host:00"}) {
    const auto refused = parse_endpoint(bad);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().message.find("HOST:PORT") != std::string::npos);
  }
}

TEST_CASE("a port that is none is refused as one, and what is loopback is known") {
  CHECK(parse_endpoint("127.0.0.1:65535")->port == 65535);
  for (const char* bad : {"127.0.0.1:65536", "127.0.0.1:99999", ":99999999999999999999"}) {
    const auto refused = parse_endpoint(bad);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().message.find("port must be 0..65535") != std::string::npos);
  }
  for (const char* here : {"127.0.0.1", "127.1.2.3", "::1", "localhost"}) CHECK(is_loopback({here, 1}));
  for (const char* there : {"0.0.0.0", "10.0.0.1", "127.evil.example", "::", "example.org", "128.0.0.1"})
    CHECK_FALSE(is_loopback({there, 1}));
}

TEST_CASE("samples become Prometheus text") {
  const std::string text =
      prometheus_text({{Sample::Kind::counter, "lockstep_records_total", "Records stamped.", 3, {}},
                       {Sample::Kind::gauge, "lockstep_agent_busy", "x", 1, {{"agent", "a"}}},
                       {Sample::Kind::gauge, "lockstep_agent_busy", "x", 2, {{"agent", "b"}}}});
  CHECK(text.find("# TYPE lockstep_records_total counter\nlockstep_records_total 3") != std::string::npos);
  CHECK(text.find("lockstep_agent_busy{agent=\"b\"} 2") != std::string::npos);
}
