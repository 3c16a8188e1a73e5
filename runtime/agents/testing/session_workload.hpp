// SPDX-License-Identifier: Apache-2.0
#pragma once

/// SessionWorkload: random histories of clients with durable sessions who do all that lost answers and connections make
/// a client do: they send requests again, in any order, late, over other connections, after their session is closed;
/// they acknowledge, resume, say goodbye, expire. Equal seeds give equal histories. It remembers what it sent, so that
/// a test can hold answers against it.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/agents/testing/workload.hpp"

namespace lockstep::testing {

class SessionWorkload {
 public:
  struct Request {
    Op op = Op::answer;
    std::uint64_t worker = 0;
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    int copies = 0;  ///< stamped
  };
  struct Client {
    std::uint64_t session = 0;
    std::uint64_t route = 0;
    std::uint64_t ack_below = 1;
    std::map<std::uint64_t, Request> requests;
    std::uint64_t secret_of = 0;  ///< the connection whose secret it has: its first
    bool open = true;
  };

  explicit SessionWorkload(std::uint64_t seed) : load_(seed) {}

  [[nodiscard]] const MemoryHistory& history() { return load_.history(); }
  [[nodiscard]] const std::vector<Client>& clients() const { return clients_; }

  /// A batch of it; a tick now and then.
  BatchView random_batch() {
    load_.advance(static_cast<std::int64_t>(load_.below(50)));
    if (load_.below(8) == 0) return load_.seal();
    for (std::uint64_t i = load_.below(24); i > 0; --i) {
      load_.advance(static_cast<std::int64_t>(load_.below(5)));
      step();
    }
    return load_.seal();
  }
  /// Ticks, in which what was carried comes to its end.
  BatchView tick() { return load_.seal(); }

 private:
  static constexpr std::uint64_t window = 12;

  std::uint64_t new_route() { return session_number(1, 0, ++connections_); }

  void step() {
    if (clients_.size() < 3 || load_.below(40) == 0) {
      Client& client = clients_.emplace_back();
      client.route = new_route();
      client.session = load_.open_session(secret(client.route), client.route);
      client.secret_of = client.route;
      return;
    }
    Client& client = clients_[load_.below(clients_.size())];
    switch (load_.below(30)) {
      case 0:
        client.route = new_route();
        load_.open_session(secret(client.secret_of), client.route, client.session);
        return;
      case 1:  // with a wrong secret: nothing happens
        load_.open_session(secret(client.secret_of) + 1, new_route(), client.session);
        return;
      case 2:
        if (load_.below(3) != 0) return;
        load_.close_session(client.session, load_.below(2) == 0 ? client.route : 0);
        client.open = false;
        return;
      case 3:  // a goodbye from where the session no longer is
        load_.close_session(client.session, new_route());
        return;
      default:
        return ask(client);
    }
  }

  void ask(Client& client) {
    const std::uint64_t number = client.ack_below + load_.below(window);
    const auto [found, is_new] = client.requests.try_emplace(number);
    Request& request = found->second;
    if (is_new) {
      request.op = static_cast<Op>(load_.below(static_cast<std::uint64_t>(Op::count)));
      request.worker = load_.below(Workload::workers);
      request.a = request.op == Op::reply_long ? load_.below(400)
                  : request.op == Op::alarm    ? load_.below(200)
                                               : load_.below(9);
      request.b = load_.below(Workload::workers);
    }
    ++request.copies;
    load_.add_request(client.session, number, static_cast<std::uint32_t>(number - client.ack_below), request.op,
                      request.worker, request.a, request.b);
    if (load_.below(4) == 0) client.ack_below += load_.below(4);
  }

  static std::uint64_t secret(std::uint64_t route) { return route * 31; }

  Workload load_;
  std::vector<Client> clients_;
  std::uint32_t connections_ = 0;
};

}  // namespace lockstep::testing
