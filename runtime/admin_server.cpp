// SPDX-License-Identifier: Apache-2.0
#include "runtime/admin_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/decimal.hpp"
#include "runtime/bounded_http_server.hpp"

namespace lockstep {

struct AdminServer::Server {
  BoundedHttpServer http;
  std::thread thread;
};

AdminServer::AdminServer() : server_(std::make_unique<Server>()) {}

Result<std::unique_ptr<AdminServer>> AdminServer::start(const io::Endpoint& at, AdminHandlers handlers) {
  std::unique_ptr<AdminServer> admin(new AdminServer);
  BoundedHttpServer& http = admin->server_->http;
  http.set_payload_max_length(4096);
  // httplib's default adds SO_REUSEPORT, by which two nodes would silently share one admin address.
  http.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  // Ignored, a parameter would look like one that was heeded and found nothing; but a scraper may send whatever it
  // sends to all.
  http.set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
    if (request.params.empty() || request.path == "/metrics") return httplib::Server::HandlerResponse::Unhandled;
    response.status = 400;
    response.set_content(
        fmt::format("{} takes no parameter, and was given '{}'\n", request.path, request.params.begin()->first),
        "text/plain");
    return httplib::Server::HandlerResponse::Handled;
  });
  const auto serve = [&http](const char* path, const char* type, std::function<std::string()> body) {
    http.Get(path, [type, body = std::move(body)](const httplib::Request&, httplib::Response& response) {
      response.set_content(body(), type);
    });
  };
  serve("/metrics", "text/plain; version=0.0.4", std::move(handlers.metrics));
  serve("/status", "application/json", std::move(handlers.status));
  serve("/hash", "application/json", std::move(handlers.hash));
  serve("/snapshot", "application/json", [snapshot = handlers.snapshot] { return snapshot(false); });
  http.Post("/snapshot",
            [snapshot = std::move(handlers.snapshot)](const httplib::Request&, httplib::Response& response) {
              response.set_content(snapshot(true), "application/json");
            });

  int port = at.port;
  if (port == 0) {
    port = http.bind_to_any_port(at.host);
  } else if (!http.bind_to_port(at.host, port)) {
    port = -1;
  }
  if (port < 0)
    return fail(ErrorCode::busy, fmt::format("admin: cannot listen on {}: the address is in use or not this host's; "
                                             "choose another with --admin HOST:PORT",
                                             at.text()));
  admin->endpoint_ = {at.host, static_cast<std::uint16_t>(port)};
  admin->server_->thread = std::thread([&http] { http.listen_after_bind(); });
  while (!http.is_running()) std::this_thread::yield();  // stop() is lost on a server that does not run yet
  return admin;
}

AdminServer::~AdminServer() {
  server_->http.stop_now();
  if (server_->thread.joinable()) server_->thread.join();
}

namespace {

template <class Ask>
Result<std::string> ask_admin(const io::Endpoint& at, const std::string& path, int timeout_ms, Ask ask) {
  httplib::Client client(at.host, at.port);
  client.set_connection_timeout(std::chrono::milliseconds(timeout_ms));
  client.set_read_timeout(std::chrono::milliseconds(timeout_ms));
  const httplib::Result reply = ask(client);
  const auto refuse = [&](const std::string& what) {
    return fail(ErrorCode::incomplete, fmt::format("{}: {}", at.text(), what));
  };
  if (reply.error() == httplib::Error::Connection || reply.error() == httplib::Error::ConnectionTimeout)
    return refuse("no connection; is a node running there, and is this its admin address?");
  if (!reply)
    return refuse(fmt::format("no page {} within {} ms ({}); is this its admin address?", path, timeout_ms,
                              httplib::to_string(reply.error())));
  if (reply->status != 200)
    return refuse(fmt::format("{}: HTTP status {}; is this a lockstep admin address?", path, reply->status));
  return reply->body;
}

}  // namespace

Result<std::string> admin_get(const io::Endpoint& at, const std::string& path, int timeout_ms) {
  return ask_admin(at, path, timeout_ms, [&](httplib::Client& client) { return client.Get(path); });
}

Result<std::string> admin_post(const io::Endpoint& at, const std::string& path, int timeout_ms) {
  return ask_admin(at, path, timeout_ms, [&](httplib::Client& client) { return client.Post(path); });
}

Result<io::Endpoint> parse_endpoint(const std::string& text) {
  const auto colon = text.rfind(':');
  const auto refuse = [&] {
    return fail(ErrorCode::usage, fmt::format("'{}' is not an address; write HOST:PORT, as in 127.0.0.1:7070", text));
  };
  if (colon == std::string::npos) return refuse();
  const auto digits = text.substr(colon + 1);
  const auto port = parse_decimal<std::uint16_t>(digits);
  if (!port && !digits.empty() && digits.front() != '0' && digits.find_first_not_of("0123456789") == std::string::npos)
    return fail(ErrorCode::usage,
                fmt::format("'{}': the port must be 0..65535; write HOST:PORT, as in 127.0.0.1:7070", text));
  if (!port) return refuse();
  std::string host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.find_first_of(" /\\") != std::string::npos) return refuse();
  return io::Endpoint{host.empty() ? "127.0.0.1" : host, *port};
}

bool is_loopback(const io::Endpoint& at) {
  if (at.host == "localhost" || at.host == "::1") return true;
  in_addr address{};
  return inet_pton(AF_INET, at.host.c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24U) == 127;
}

}  // namespace lockstep
