// SPDX-License-Identifier: Apache-2.0
#pragma once

/// MemoryFile: what a read sees of a file, what is surely on the medium, and the changes in between. Until a sync
/// covers it, each 512-byte piece of a write, and each change of size, may or may not outlive a power cut: those are
/// the questions a cut leaves open, numbered in order, and whoever asks for the outcome answers each of them.
///
/// After a failed sync, what it covered is decided at once: some pieces are on the medium and the rest will never be,
/// however often a later sync succeeds. Past the page cache a read tells so; through it, a read goes on showing what
/// is gone. One thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <vector>

namespace lockstep {

inline constexpr std::size_t device_piece_bytes = 512;

/// Says of question n whether the piece survived.
using Survival = std::function<bool(std::size_t)>;

/// Bytes that copies share until one of them is changed.
class SharedBytes {
 public:
  SharedBytes() : SharedBytes(std::vector<std::byte>{}) {}
  explicit SharedBytes(std::vector<std::byte> bytes)
      : bytes_(std::make_shared<std::vector<std::byte>>(std::move(bytes))) {}
  [[nodiscard]] const std::vector<std::byte>& get() const { return *bytes_; }
  [[nodiscard]] std::vector<std::byte>& change() {
    if (bytes_.use_count() > 1) bytes_ = std::make_shared<std::vector<std::byte>>(*bytes_);
    return *bytes_;
  }
  friend bool operator==(const SharedBytes& a, const SharedBytes& b) {
    return a.bytes_ == b.bytes_ || *a.bytes_ == *b.bytes_;
  }

 private:
  std::shared_ptr<std::vector<std::byte>> bytes_;
};

class MemoryFile {
 public:
  [[nodiscard]] const std::vector<std::byte>& view() const { return view_.get(); }
  [[nodiscard]] const SharedBytes& shared_view() const { return view_; }

  void write(std::uint64_t offset, std::span<const std::byte> bytes, bool buffered);
  void resize(std::uint64_t bytes);
  /// A write of zeros to a new file: its pieces share one question, as they differ only in the size they leave.
  void zero_fill(std::uint64_t bytes);

  /// A write that is under way: not seen by reads, but perhaps by the medium. Returns its number.
  std::uint64_t begin_write(std::uint64_t offset, std::vector<std::byte> bytes);
  /// The bytes of a write under way.
  [[nodiscard]] std::span<const std::byte> in_flight(std::uint64_t number) const;
  /// Ends a write under way: the first `bytes` of it were written.
  void finish_write(std::uint64_t number, std::size_t bytes);
  /// Ends a write under way that failed: some of its pieces were written.
  void fail_write(std::uint64_t number, std::mt19937_64& random);
  /// Ends a write under way that left no trace here: lost, or gone elsewhere. Returns its bytes.
  std::vector<std::byte> forget_write(std::uint64_t number);
  /// The same for a write at once.
  void write_some(std::uint64_t offset, std::span<const std::byte> bytes, bool buffered, std::mt19937_64& random);

  /// Numbers of the changes that are done, for a sync to cover.
  [[nodiscard]] std::vector<std::uint64_t> settled() const;
  void make_durable(const std::vector<std::uint64_t>& numbers);
  void fail_sync(const std::vector<std::uint64_t>& numbers, std::mt19937_64& random);

  /// Questions a power cut now leaves open, with writes taken apart into pieces of this size.
  [[nodiscard]] std::size_t questions(std::size_t piece_bytes) const;
  /// The content a power cut leaves when question `first` + n is answered by `survives`.
  [[nodiscard]] SharedBytes left_by_cut(const Survival& survives, std::size_t first, std::size_t piece_bytes) const;

  /// Damage: these bytes are read, and durable, from now on; what is not synced yet stays as it is.
  void damage(std::uint64_t offset, std::span<const std::byte> bytes);
  void set(SharedBytes content);

 private:
  /// A write, or a change of size (no bytes), that no sync has covered.
  struct Change {
    enum class Kind { write, zeros, resize } kind = Kind::write;
    std::uint64_t number = 0;
    std::uint64_t offset = 0;  ///< or the new size
    std::vector<std::byte> bytes;
    bool in_flight = false;
    bool buffered = false;
  };
  [[nodiscard]] static std::size_t questions_of(const Change& change, std::size_t piece_bytes);
  static void apply(std::vector<std::byte>& content, const Change& change);
  static std::size_t apply_survivors(std::vector<std::byte>& content, const Change& change, const Survival& survives,
                                     std::size_t first, std::size_t piece_bytes);
  [[nodiscard]] std::vector<Change>::iterator find(std::uint64_t number);
  void add(Change change);

  SharedBytes view_;
  SharedBytes durable_;
  std::vector<Change> changes_;
  std::uint64_t next_number_ = 1;
};

/// Answers drawn from a generator, one bit each.
[[nodiscard]] Survival draw_survivors(std::mt19937_64& random);

}  // namespace lockstep
