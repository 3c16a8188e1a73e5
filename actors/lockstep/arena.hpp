// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Arena: the one place an actor's state lies: a contiguous image that is the same bytes at every address, in every
/// process, with every compiler. Links are counted from the image's start in 16-byte units, never addresses. Memory is
/// zeroed when allocated and when freed, and free lists live in the image, so its bytes are a function of the actor's
/// history alone (rules 13, 14).
///
/// Every write to the image is announced by before_write(), the write barrier: it keeps the old bytes, so that a
/// trapped handler can be undone, and marks the 4 KiB pages, for hashing and snapshots. Containers call it; users do
/// not.
///
/// Belongs to the executor that owns the actor's shard. Limits: 4096 bytes to 64 GiB of capacity.

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

/// A place in an arena: 16-byte units from the image's start; 0 is null (the image's own header is there).
struct Link {
  std::uint32_t units = 0;
  friend bool operator==(const Link&, const Link&) = default;
  [[nodiscard]] bool is_null() const { return units == 0; }
};

class WriteBarrier;  // old bytes and page marks of the handler in execution

class Arena {
 public:
  /// The arena of the handler that this thread is running; containers find their memory through it.
  [[nodiscard]] static Arena& current();

  /// Zeroed memory of at least `bytes`, aligned to 16. Throws TrapError{arena_exhausted} at the declared capacity.
  [[nodiscard]] Link allocate(std::uint32_t bytes);
  /// Gives memory back and zeroes it. `bytes` is what allocate() was asked for.
  void free(Link link, std::uint32_t bytes);

  [[nodiscard]] std::byte* at(Link link);
  /// The link of an address inside the image that is a multiple of 16 from its start.
  [[nodiscard]] Link link_to(const void* address) const;

  /// Must precede each write to [address, address + bytes). Outside the image (a container on the stack) it does
  /// nothing.
  void before_write(void* address, std::size_t bytes);

  /// The image's bytes up to its high-water mark: what is hashed, snapshotted and compared.
  [[nodiscard]] std::span<const std::byte> image() const;
};

}  // namespace lockstep
