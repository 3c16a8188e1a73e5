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
/// follows from the handler's writes alone, so the budget must be the same on every replica.
///
/// One executor owns one barrier; only its thread touches it.

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include "lockstep/trap.hpp"

namespace lockstep {

class Arena;

/// Keeps pages as they were at some moment: it is told of a page's first change since its mark was last cleared.
class PageObserver {
 public:
  /// `page`, of the arena whose image starts at `image`, is about to change. Called within a step; may not write to
  /// arenas.
  virtual void before_change(const std::byte* image, const std::byte* page) = 0;

 protected:
  ~PageObserver() = default;
};

class WriteBarrier {
 public:
  /// `log` must outlive the barrier, be aligned to 16, and hold at least `min_log_bytes`, less than 4 GiB.
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
  [[nodiscard]] std::size_t used_bytes() const { return static_cast<std::size_t>(top_ - begin_); }
  /// Who is told of pages before they change; null: nobody. Between steps.
  void set_observer(PageObserver* observer) { observer_ = observer; }
  [[nodiscard]] std::size_t budget_bytes() const { return static_cast<std::size_t>(end_ - begin_); }

 private:
  friend class Arena;
  friend class FinalStep;

  enum class Kind : std::uint16_t {
    enter,  ///< an arena joins, or the log turns back to it: its counters, to be restored after all else of it
    write,  ///< old bytes of a range
    pop,    ///< a free block was taken: zero it and put it back
    push,   ///< a block was freed: take it back, restore its bytes
    later,  ///< a block will be freed at commit(): nothing to undo
  };
  struct Trailer {          // all in 16-byte units
    std::uint32_t at;       ///< where in the image
    std::uint32_t payload;  ///< length of what precedes the trailer in the log
    std::uint32_t dirty;    ///< what of a block may have been written since it was taken
    Kind kind;
    std::uint16_t size_class;
  };
  static_assert(sizeof(Trailer) == 16);
  struct Enter {
    Arena* previous;  ///< whom the entries before this one belong to
    Enter* previous_enter;
    std::uint64_t high_water_bytes;
    std::uint64_t allocated_bytes;
    std::uint64_t blocks;
  };
  struct Later;
  struct Range {
    std::uintptr_t begin = 0;
    std::size_t size = 0;
    /// One comparison, so that a range elsewhere costs no misprediction whichever side it is on.
    [[nodiscard]] bool holds(std::uintptr_t from, std::size_t bytes) const {
      return from - begin < size && bytes <= size - (from - begin);
    }
  };

  /// Whether the old bytes of the range are known to be in the log already. Two ranges are remembered: the step's
  /// first, which is the actor's root object, and the last.
  [[nodiscard]] bool keeps(const void* address, std::size_t bytes) const {
    const auto from = reinterpret_cast<std::uintptr_t>(address);
    return first_.holds(from, bytes) || last_.holds(from, bytes);
  }
  void remember(const void* address, std::size_t bytes) { last_ = {reinterpret_cast<std::uintptr_t>(address), bytes}; }

  /// Room for the trailer's payload, before the trailer; null when the budget does not suffice.
  [[nodiscard]] std::byte* append(const Trailer& trailer) {
    const std::size_t payload_bytes = std::size_t{trailer.payload} << 4;
    if (static_cast<std::size_t>(end_ - top_) < payload_bytes + sizeof trailer) return nullptr;
    std::byte* const payload = top_;
    new (payload + payload_bytes) Trailer(trailer);
    top_ = payload + payload_bytes + sizeof trailer;
    return payload;
  }
  /// False when the budget does not suffice.
  [[nodiscard]] bool enter(Arena& arena);
  [[nodiscard]] bool free_later(Arena& arena, Trailer block);
  [[noreturn]] void raise(TrapKind kind);
  void note(TrapKind kind);
  void end_step();

  std::byte* top_;          // of the log in use
  Arena* arena_ = nullptr;  // whom the entries at the top belong to
  Range first_;
  Range last_;
  Enter* last_enter_ = nullptr;  // heads of chains through the log
  Later* last_later_ = nullptr;
  TrapKind raised_ = TrapKind::none;
  PageObserver* observer_ = nullptr;
  std::byte* begin_;
  std::byte* end_;
};

}  // namespace lockstep
