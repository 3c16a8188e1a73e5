// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What both Network backends do with plain system calls: making a listening socket. Cold path. Any thread.

#include "base/descriptor.hpp"
#include "runtime/io/network.hpp"

namespace lockstep::io {

struct ListeningSocket {
  Descriptor socket;
  Endpoint bound;  ///< the port the kernel chose when 0 was asked for
};

/// A TCP socket that listens at `at` (an address or a name), with SO_REUSEADDR, and TCP_NODELAY for what it accepts.
/// A port in use is tried for one second. The socket blocks: io_uring would otherwise answer EAGAIN instead of
/// waiting.
[[nodiscard]] Result<ListeningSocket> open_listener(const Endpoint& at);

/// The errors of accept that end one connection attempt and say nothing about the next. Any other (no descriptor, no
/// memory) makes a listener rest for a while: it would only be met again at once.
[[nodiscard]] bool is_accept_retryable(int error);

inline constexpr std::int64_t accept_pause_ns = 100'000'000;

}  // namespace lockstep::io
