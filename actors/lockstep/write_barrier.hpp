// SPDX-License-Identifier: Apache-2.0
#pragma once

/// WriteBarrier: what is needed to take back the step in execution. A step is one handler, from one commit() or undo()
/// to the next. It keeps the old bytes of every range that the step overwrites, in one log that is never enlarged;
/// undo() replays it backwards and leaves every image as it was, allocator, high-water mark and freed bytes included.
/// An arena joins the step by itself at its first write.
///
///     log:  | enter A | old bytes, trailer | trailer | old bytes, trailer | ...      (growing upwards,
///                                                                                      read from the end)
///
/// The log's size is the write budget: a step that needs more ends in TrapError{write_budget}. What counts against it
/// follows from the handler's writes alone, so the budget must be the same on every replica (rules 6, 8).
///
/// One executor owns one barrier; only its thread touches it.

#include <cstddef>
#include <cstdint>
#include <span>

#include "lockstep/trap.hpp"

namespace lockstep {

class Arena;

class WriteBarrier {
 public:
  /// `log` must outlive the barrier, be aligned to 8, and hold at least `min_log_bytes` and less than 4 GiB.
  explicit WriteBarrier(std::span<std::byte> log);
  WriteBarrier(const WriteBarrier&) = delete;
  WriteBarrier& operator=(const WriteBarrier&) = delete;

  static constexpr std::size_t min_log_bytes = 4096;

  /// Ends the step and keeps its writes; large blocks that it freed are zeroed and become free now. A step in which a
  /// trap was raised may not be committed, even if the handler swallowed the exception.
  void commit();
  /// Ends the step as if it had never begun.
  void undo();

  /// The first trap that an arena raised in this step, or `none`. Freeing never throws (destructors call it): when the
  /// budget does not suffice for it, it shows only here, so the executor asks after every handler.
  [[nodiscard]] TrapKind raised() const { return raised_; }
  /// Bytes of the budget that the step has used.
  [[nodiscard]] std::size_t used_bytes() const { return used_; }
  [[nodiscard]] std::size_t budget_bytes() const { return log_.size(); }

 private:
  friend class Arena;

  enum class Kind : std::uint16_t {
    enter,  ///< an arena joins, or the log turns back to it: its counters, to be restored after all else of it
    write,  ///< old bytes of a range
    pop,    ///< a free block was taken: zero it and put it back
    push,   ///< a block was freed: take it back, restore its bytes
    later,  ///< a block will be freed at commit(): nothing to undo
  };
  struct Trailer {  // after its payload, which is padded to 8 bytes
    std::uint64_t offset;
    std::uint32_t bytes;
    Kind kind;
    std::uint16_t size_class;
  };
  struct Enter;
  struct Later;
  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    [[nodiscard]] bool holds(std::uintptr_t from, std::size_t bytes) const {
      return from >= begin && from < end && bytes <= end - from;
    }
  };

  /// Whether the old bytes of the range are known to be in the log already. Two ranges are remembered: the step's
  /// first, which is the actor's root object, and the last.
  [[nodiscard]] bool keeps(const void* address, std::size_t bytes) const {
    const auto from = reinterpret_cast<std::uintptr_t>(address);
    return first_.holds(from, bytes) || last_.holds(from, bytes);
  }
  void remember(const void* address, std::size_t bytes);

  /// Room for a payload of `bytes` and its trailer, which is filled in; null when the budget does not suffice.
  [[nodiscard]] std::byte* append(Kind kind, std::uint64_t offset, std::uint64_t bytes, std::uint32_t size_class);
  /// False when the budget does not suffice.
  [[nodiscard]] bool enter(Arena& arena);
  [[nodiscard]] bool free_later(Arena& arena, std::uint64_t offset, std::uint64_t dirty_bytes,
                                std::uint32_t size_class);
  [[noreturn]] void raise(TrapKind kind);
  void note(TrapKind kind);
  void end_step();

  std::span<std::byte> log_;
  std::size_t used_ = 0;
  Arena* arena_ = nullptr;  // whom the entries at the log's end belong to
  Range first_;
  Range last_;
  std::size_t last_enter_ = 0;  // end of the last entry of that kind: the head of a chain through the log
  std::size_t last_later_ = 0;
  TrapKind raised_ = TrapKind::none;
};

}  // namespace lockstep
