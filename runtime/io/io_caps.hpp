// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What of io_uring this host gives, found by trying it: a kernel version says little (vendors backport, sandboxes
/// forbid). Cold path: at start and for `lockstep doctor`. Any thread.

#include <string>
#include <vector>

#include "base/error.hpp"

namespace lockstep::io {

/// One line of `lockstep doctor`.
struct Capability {
  std::string feature;
  bool good = false;    ///< as lockstep would have it
  std::string here;     ///< "yes", a value, or the errno
  std::string instead;  ///< what lockstep uses instead; empty when good
  std::string remedy;   ///< what to change; empty when there is nothing to
};

/// Why io_uring_setup gave `error`, and what to do: ErrorCode::unsupported where the host forbids or lacks it (EPERM,
/// ENOSYS, EINVAL on every step of the ladder), so that another backend may stand in; any other code is a shortage
/// that would hit another backend too.
[[nodiscard]] Error ring_unavailable(int error);

/// The same text from given facts, for tests: `io_uring_disabled` < 0 when there is no such sysctl, `seccomp` the mode
/// of /proc/self/status.
struct RingSurroundings {
  std::string kernel;
  int io_uring_disabled = -1;
  int seccomp = 0;
};
[[nodiscard]] Error ring_unavailable(int error, const RingSurroundings& around);

/// Tries what the network path needs on a socket pair: a multishot receive that picks from a buffer ring twice.
[[nodiscard]] Result<void> try_multishot_receive();

/// One line per feature of io_uring that lockstep uses.
[[nodiscard]] std::vector<Capability> probe_io_uring();

}  // namespace lockstep::io
