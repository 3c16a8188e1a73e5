// SPDX-License-Identifier: Apache-2.0
#pragma once

/// LogSink: where the lines of Context::log() go; LogLine: one of them, made without allocating.
///
///     4711 bank.Branch/7 rejected: account 12 has 30, wanted 50
///     │    │           │ └ the handler's text; control bytes became blanks, beyond the bound it ends in "..."
///     │    └ actor type└ key
///     └ seq of the cause: lines sorted by it are in the order of history
///
/// The executor's thread; a line lives on its stack.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "lockstep/address.hpp"

namespace lockstep {

inline constexpr std::size_t max_log_line_bytes = 512;

class LogSink {
 public:
  /// A line with its newline. What becomes of it must never reach the handler: this neither blocks, allocates, nor
  /// throws.
  virtual void write(std::string_view line) = 0;

 protected:
  ~LogSink() = default;
};

class LogLine {
 public:
  LogLine(std::uint64_t seq, const char* actor_name, std::uint64_t key) { add("{} {}/{} ", seq, actor_name, key); }

  /// A text that cannot be formatted becomes a note of that: whether lines are kept anywhere must not decide whether a
  /// handler traps.
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    const std::size_t room = max_log_line_bytes - 1 - size_;
    try {
      const auto added = fmt::format_to_n(bytes_.data() + size_, room, format, std::forward<Args>(args)...);
      finish_text(added.size);
    } catch (...) {
      finish_text(fmt::format_to_n(bytes_.data() + size_, room, "(a text that cannot be formatted)").size);
    }
  }

  /// Ends the line; last.
  [[nodiscard]] std::string_view text() {
    bytes_[size_] = '\n';
    return {bytes_.data(), size_ + 1};
  }

 private:
  /// `bytes` were wanted behind the last text; what there was no room for is missing.
  void finish_text(std::size_t bytes) {
    constexpr std::string_view cut = "...";
    const std::size_t end = std::min(size_ + bytes, max_log_line_bytes - 1);
    std::replace_if(
        bytes_.begin() + static_cast<std::ptrdiff_t>(size_), bytes_.begin() + static_cast<std::ptrdiff_t>(end),
        [](char byte) { return static_cast<unsigned char>(byte) < ' '; }, ' ');
    if (end != size_ + bytes) std::ranges::copy(cut, bytes_.begin() + static_cast<std::ptrdiff_t>(end - cut.size()));
    size_ = end;
  }

  std::array<char, max_log_line_bytes> bytes_;
  std::size_t size_ = 0;
};

}  // namespace lockstep
