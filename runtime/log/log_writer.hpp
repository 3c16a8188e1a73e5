// SPDX-License-Identifier: Apache-2.0
#pragma once

/// LogWriter: how the thread of a record log gets bytes into its file. It hands out memory, and writes what was put
/// there behind all that it was given before. Memory on its way to the file is not handed out again until it is there.
/// A write that comes back short is completed by another; the first that fails is final: error() says why,
/// nothing more is begun, nothing is tried again.
///
/// One thread, from bind() on. It does not open, sync or close the file.

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

class LogWriter {
 public:
  virtual ~LogWriter() = default;

  /// Before all that follows, on the thread that calls it. 0 or an errno.
  [[nodiscard]] virtual int bind() { return 0; }

  /// Memory to fill, the same until write(); waits for a write to end when all of it is on its way. Empty after an
  /// error.
  [[nodiscard]] virtual std::span<std::byte> buffer() = 0;
  /// Begins to write the first `bytes`, at least one, of buffer().
  virtual void write(std::size_t bytes) = 0;
  /// Takes note of the writes that have ended, without waiting.
  virtual void poll() {}
  /// Waits until nothing is on its way; after an error too.
  virtual void finish() {}

  /// Where in the file the bytes end that are written without a gap.
  [[nodiscard]] virtual std::uint64_t written_end() const = 0;
  /// The errno of the first write that failed; 0 if none has.
  [[nodiscard]] virtual int error() const = 0;
};

}  // namespace lockstep
