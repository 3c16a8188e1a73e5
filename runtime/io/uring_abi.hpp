// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What liburing 2.3 (Debian 12) does not give: the one file that knows which version is installed. It is
/// raw register calls that the 2.3 library declares but does not export, or lacks, and layouts of newer kernels.
/// Include this, and never <linux/io_uring.h>, whose io_uring_buf_ring is laid out differently in C++.

#include <liburing.h>

#include <cstddef>
#include <cstdint>

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

/// Zero-copy receive, Linux 6.15 (include/uapi/linux/io_uring.h).
inline constexpr int op_recv_zc = 58;
inline constexpr unsigned register_zcrx_ifq = 32;
inline constexpr std::uint32_t region_is_user_memory = 1;
struct RegionDescription {
  std::uint64_t user_address, bytes;
  std::uint32_t flags, id;
  std::uint64_t mmap_offset, reserved[4];
};
struct ZeroCopyArea {
  std::uint64_t address, bytes, token;
  std::uint32_t flags, dmabuf_descriptor;
  std::uint64_t reserved[2];
};
struct ZeroCopyInterfaceQueue {
  std::uint32_t interface_index, queue_index, refill_entries, flags;
  std::uint64_t area, region;  // addresses of the two above
  std::uint32_t head_offset, tail_offset, entries_offset, reserved;
  std::uint64_t reserved_offsets[2];
  std::uint32_t id, buffer_bytes;
  std::uint64_t reserved_end[3];
};
static_assert(sizeof(RegionDescription) == 64 && sizeof(ZeroCopyArea) == 48 && sizeof(ZeroCopyInterfaceQueue) == 96);

}  // namespace lockstep::io::abi
