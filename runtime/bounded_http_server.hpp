// SPDX-License-Identifier: Apache-2.0
#pragma once

/// BoundedHttpServer: httplib's server for an address that many may come to. One request a connection, two seconds for
/// it and its answer however slowly they drip, and a thread for each connection, up to 64: those that send nothing hold
/// nobody up. httplib's own waits for a silent connection until its time is up, and its stop() for that: 5 s in which a
/// node would not end. stop_now() may be called from any thread.

#include <httplib.h>

#include <mutex>
#include <set>

namespace lockstep {

class BoundedHttpServer final : public httplib::Server {
 public:
  BoundedHttpServer();
  /// Shuts the connections down that are being served, and ends listening.
  void stop_now();

 private:
  bool process_and_close_socket(socket_t socket) override;

  std::mutex mutex_;
  std::set<socket_t> open_;  ///< being served
  bool stopping_ = false;
};

}  // namespace lockstep
