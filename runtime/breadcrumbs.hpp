// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Breadcrumbs: what a process leaves behind when it dies in a handler, and what the next one makes of it. A message
/// that crashes the program would crash it at every restart, since history is executed again; so deaths are counted by
/// the sequence number in execution, and after `deaths_before_halt` the node halts before that one.
///
/// A file of the data directory, mapped; it is to survive the process, not the machine: after a power cut it may say
/// anything that it once said, and a file that makes no sense starts anew.
///
///      0       8         12     16                 128            256
///     +-------+---------+------+------------------+--------------+--------------+--
///     | magic | version | zero | deaths: 7 × 16 B | breadcrumb 0 | breadcrumb 1 | ... 64
///     +-------+---------+------+------------------+--------------+--------------+--
///
/// One thread, but for the breadcrumbs themselves, which are their executors'.

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.hpp"
#include "journal/disk.hpp"
#include "runtime/agents/breadcrumb.hpp"

namespace lockstep {

class Breadcrumbs {
 public:
  static constexpr std::uint32_t executors_limit = 64;
  static constexpr std::uint64_t deaths_before_halt = 2;
  static constexpr const char* file_name = "breadcrumbs";

  struct Deaths {
    std::uint64_t seq = 0;
    std::uint64_t count = 0;
  };

  /// Counts what the last process left.
  [[nodiscard]] static Result<Breadcrumbs> open(Disk& disk, const std::string& directory);
  /// The same of a copy: the file stays as it is, and what is done to the copy goes nowhere.
  [[nodiscard]] static Result<Breadcrumbs> look(Disk& disk, const std::string& directory);

  /// The lowest sequence number that must not be executed again and is not among `skipped` (ascending); nothing in
  /// good times.
  [[nodiscard]] std::optional<Deaths> poison(std::span<const std::uint64_t> skipped = {}) const;
  /// History has been executed past all that was counted.
  void forget();

  /// One for each of executors_limit; they live as long as this.
  [[nodiscard]] Breadcrumb* slots();

 private:
  struct File;
  explicit Breadcrumbs(std::shared_ptr<std::byte[]> memory) : memory_(std::move(memory)) {}
  [[nodiscard]] File& file() const;
  void make_sense();
  void count_deaths();

  std::shared_ptr<std::byte[]> memory_;
};

}  // namespace lockstep
