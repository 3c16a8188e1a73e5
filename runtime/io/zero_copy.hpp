// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Whether this host can send and receive without copying (SEND_ZC, RECV_ZC): two rows of `lockstep doctor`. lockstep
/// uses neither; docs/performance.md says why, with figures, and what would change that. Trying is apart from judging,
/// so that any outcome can be judged in a test. Cold path. Any thread.

#include <string>
#include <vector>

#include "runtime/io/io_caps.hpp"

namespace lockstep::io {

/// Sends once over loopback and waits for the notification that the memory may be used again. 0 or an errno.
[[nodiscard]] int try_zero_copy_send();

struct ZeroCopyReceiveTrial {
  struct Interface {
    std::string name;
    int error = 0;  ///< what asking gave: ERANGE where it could be had, else why not
  };
  bool known = false;  ///< to the kernel: Linux 6.15 or newer
  std::vector<Interface> interfaces;
};
/// Asks each interface for a queue that it does not have: the refusal tells whether it could give one, and nothing is
/// set up. Needs CAP_NET_ADMIN, without which each says EPERM.
[[nodiscard]] ZeroCopyReceiveTrial try_zero_copy_receive();

[[nodiscard]] Capability judge_zero_copy_send(int error);
[[nodiscard]] Capability judge_zero_copy_receive(const ZeroCopyReceiveTrial& trial);

}  // namespace lockstep::io
