// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/campaign.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace lockstep::faults {
namespace {

constexpr std::uint64_t failures_shown = 10;
constexpr std::int64_t progress_interval_ns = 200'000'000;

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

[[noreturn]] void end_with_usage(const std::string& name, const char* promise, int code) {
  fmt::print(code == 0 ? stdout : stderr,
             "usage: {} [--short | --long] [--seed N] [--case N | --part I/N]\n\n{}\n\n"
             "  --short   a part of the cases (as without an option)\n"
             "  --long    all of them\n"
             "  --seed N  what is drawn at random is drawn from N (1)\n"
             "  --case N  only that case\n"
             "  --part I/N  only every Nth case, from the Ith (1/2 and 2/2 are two processes' shares of all)\n",
             name, promise);
  std::exit(code);  // NOLINT(concurrency-mt-unsafe): one thread
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Campaign::Campaign(const char* promise, int argc, char** argv)
    : program_(argv[0]), started_ns_(steady_ns()), on_terminal_(::isatty(STDERR_FILENO) == 1) {
  name_ = program_.substr(program_.rfind('/') + 1);
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--help" || argument == "-h") end_with_usage(name_, promise, 0);
    if (argument == "--short" || argument == "--long") {
      long_ = argument == "--long";
      continue;
    }
    const std::string_view given = i + 1 < argc ? argv[i + 1] : "";
    if (argument == "--part") {
      const std::size_t slash = given.find('/');
      const auto part = number_of(given.substr(0, slash));
      const auto parts = number_of(slash == std::string_view::npos ? "" : given.substr(slash + 1));
      if (!part || !parts || *part == 0 || *part > *parts) end_with_usage(name_, promise, 2);
      part_ = *part - 1;
      parts_ = *parts;
      ++i;
      continue;
    }
    const auto value = number_of(given);
    if (value && argument == "--seed") seed_ = *value;
    if (value && argument == "--case") only_ = value;
    if (!value || (argument != "--seed" && argument != "--case")) end_with_usage(name_, promise, 2);
    ++i;
  }
}

void Campaign::take(std::uint64_t number, const Result<std::string>& outcome) {
  show_progress(number);
  if (outcome) {
    ++verdicts_[*outcome];
    return;
  }
  if (++failed_ > failures_shown) return;
  fmt::print(stderr, "{}{} case {}: {}\n  repeat with: {} --seed {}{} --case {}\n", on_terminal_ ? "\r\033[K" : "",
             name_, number, outcome.error().message, program_, seed_, long_ ? " --long" : "", number);
}

void Campaign::show_progress(std::uint64_t number) {
  if (!on_terminal_ || expected_ == 0) return;
  const std::int64_t now_ns = steady_ns();
  if (now_ns - shown_ns_ < progress_interval_ns) return;
  shown_ns_ = now_ns;
  fmt::print(stderr, "\r\033[K{}: {} of {} cases, {} %", name_, number, expected_, number * 100 / expected_);
}

int Campaign::finish() {
  if (on_terminal_ && expected_ != 0) fmt::print(stderr, "\r\033[K");
  std::uint64_t kept = 0;
  std::string tally;
  for (const auto& [verdict, count] : verdicts_) {
    kept += count;
    tally += fmt::format("{}{} {}", tally.empty() ? "" : ", ", count, verdict);
  }
  if (failed_ > failures_shown) fmt::print(stderr, "{}: {} more failures\n", name_, failed_ - failures_shown);
  fmt::print("{}: {} cases passed, {} failed, {:.1f} s, seed {}{}{}\n", name_, kept, failed_,
             static_cast<double>(steady_ns() - started_ns_) / 1e9, seed_, tally.empty() ? "" : ": ", tally);
  return failed_ == 0 && kept > 0 ? 0 : 1;
}

}  // namespace lockstep::faults
