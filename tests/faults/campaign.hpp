// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Campaign: a long row of numbered cases, each a function of the seed and its number alone, so that any one of them
/// can be repeated by itself. It reads the command line, shows progress on a terminal, counts verdicts, and prints for
/// each failed case the one command that repeats it. One thread.

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "base/error.hpp"

namespace lockstep::faults {

class Campaign {
 public:
  /// Reads --short (as without), --long, --seed N, --case N and --part I/N; ends the process after --help and after
  /// anything else.
  /// `promise` says in one sentence what each case must keep.
  Campaign(const char* promise, int argc, char** argv);

  [[nodiscard]] bool is_long() const { return long_; }
  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  /// The number of the case that comes next.
  [[nodiscard]] std::uint64_t next_case() const { return next_; }
  /// A generator for a case.
  [[nodiscard]] std::mt19937_64 random_of(std::uint64_t number) const { return std::mt19937_64(seed_ + number); }
  /// Says how many cases there will be, for the progress.
  void expect(std::uint64_t cases) { expected_ = cases; }

  /// Runs the next case, unless another one is asked for. `run` returns a Result of the verdict's name, or an Error
  /// that says which promise was broken.
  template <class Run>
  void run(Run&& run) {
    const std::uint64_t number = next_++;
    if (only_ ? *only_ != number : number % parts_ != part_) return;
    take(number, run());
  }

  /// Prints what came out; the exit code.
  [[nodiscard]] int finish();

 private:
  void take(std::uint64_t number, const Result<std::string>& outcome);
  void show_progress(std::uint64_t number);

  std::string program_;
  std::string name_;
  std::uint64_t seed_ = 1;
  bool long_ = false;
  std::optional<std::uint64_t> only_;
  std::uint64_t part_ = 0;  ///< of `parts_`: this process runs each case whose number leaves it as remainder
  std::uint64_t parts_ = 1;
  std::uint64_t next_ = 0;
  std::uint64_t expected_ = 0;
  std::uint64_t failed_ = 0;
  std::map<std::string, std::uint64_t> verdicts_;
  std::int64_t started_ns_;
  std::int64_t shown_ns_ = 0;
  bool on_terminal_;
};

}  // namespace lockstep::faults
