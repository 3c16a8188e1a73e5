// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Progress: how far a long command is, on stderr: a bar redrawn in place on a terminal, silence elsewhere. Called as
/// often as one likes; it draws at most ten times a second. One thread at a time.

#include <cstdint>
#include <string>

namespace lockstep {

class Progress {
 public:
  /// `unit` names what is counted ("messages"); `total` 0 means unknown.
  Progress(std::string verb, std::string unit, std::uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::uint64_t done);
  /// Erases the bar, so that results can be printed.
  void finish();

 private:
  void draw(std::uint64_t done, std::int64_t now_ns);

  std::string verb_;
  std::string unit_;
  std::uint64_t total_;
  bool terminal_;
  bool drawn_ = false;
  std::int64_t started_ns_;
  std::int64_t next_draw_ns_;
};

/// 1234567 as 1,234,567.
[[nodiscard]] std::string with_separators(std::uint64_t number);

}  // namespace lockstep
