// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What liburing 2.3 (Debian 12) does not give: the one file that knows which version is installed. It is
/// raw register calls that the 2.3 library declares but does not export, or lacks. Include this, and never
/// <linux/io_uring.h>, whose io_uring_buf_ring is laid out differently in C++.

#include <liburing.h>

#include <cstddef>

namespace lockstep::io::abi {

// The kernel reads the tail at byte 14 of the first entry; a header that moved it would corrupt the ring silently.
static_assert(offsetof(io_uring_buf_ring, tail) == 14 && sizeof(io_uring_buf) == 16);
static_assert(sizeof(io_uring_cqe) == 16 && sizeof(io_uring_sqe) == 64);

/// Enables a ring made with IORING_SETUP_R_DISABLED; the calling thread becomes its single issuer. 0 or -errno.
/// io_uring_enable_rings() is in 2.3's header but not in its library.
inline int enable_rings(const io_uring& ring) {
  return io_uring_register(static_cast<unsigned>(ring.ring_fd), IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
}

/// Makes io_uring_queue_exit() leave the registered ring descriptor alone. Its index belongs to the thread that
/// registered it; from another thread the call would unregister that thread's own ring.
inline void forget_registered_descriptor(io_uring& ring) {
  constexpr unsigned registered = 1;  // INT_FLAG_REG_RING of liburing's lib.h
  ring.int_flags = static_cast<decltype(ring.int_flags)>(ring.int_flags & ~registered);
}

}  // namespace lockstep::io::abi
