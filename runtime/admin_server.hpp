// SPDX-License-Identifier: Apache-2.0
#pragma once

/// AdminServer: the node's one HTTP address for operators, on loopback: GET /metrics (Prometheus text),
/// /status, /hash and /snapshot (JSON); a POST of /snapshot asks for a snapshot. It runs on threads of its own, off the
/// message path, and only reads what the handlers hand out. Requests are bounded in size and time, one a
/// connection, and silent connections do not keep others waiting; a parameter is 400 but for /metrics, anything else
/// 404.

#include <functional>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "runtime/io/network.hpp"

namespace lockstep {

/// Called on the server's threads; each must be safe beside the running node.
struct AdminHandlers {
  std::function<std::string()> metrics;
  std::function<std::string()> status;
  std::function<std::string()> hash;
  std::function<std::string(bool ask)> snapshot;  ///< `ask`: for a snapshot, before answering
};

class AdminServer {
 public:
  /// Binds and starts to serve. Port 0 lets the kernel choose.
  [[nodiscard]] static Result<std::unique_ptr<AdminServer>> start(const io::Endpoint& at, AdminHandlers handlers);
  ~AdminServer();
  [[nodiscard]] const io::Endpoint& endpoint() const { return endpoint_; }

 private:
  struct Server;
  AdminServer();
  std::unique_ptr<Server> server_;
  io::Endpoint endpoint_;
};

/// One GET of an admin address, body in the result; errors name the address. `timeout_ms` bounds connect and read each.
[[nodiscard]] Result<std::string> admin_get(const io::Endpoint& at, const std::string& path, int timeout_ms);

/// As admin_get, a POST without a body.
[[nodiscard]] Result<std::string> admin_post(const io::Endpoint& at, const std::string& path, int timeout_ms);

/// "HOST:PORT" or ":PORT" (127.0.0.1); errors say what an address looks like.
[[nodiscard]] Result<io::Endpoint> parse_endpoint(const std::string& text);

/// Whether only this host reaches it: 127.0.0.0/8, ::1 or localhost.
[[nodiscard]] bool is_loopback(const io::Endpoint& at);

}  // namespace lockstep
