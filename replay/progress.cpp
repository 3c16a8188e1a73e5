// SPDX-License-Identifier: Apache-2.0
#include "replay/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/clock.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t draw_every_ns = 100'000'000;

}  // namespace

Progress::Progress(std::string verb, std::string unit, std::uint64_t total)
    : verb_(std::move(verb)),
      unit_(std::move(unit)),
      total_(total),
      terminal_(isatty(STDERR_FILENO) == 1),
      started_ns_(SystemClock{}.steady_ns()),
      next_draw_ns_(started_ns_ + draw_every_ns) {}

Progress::~Progress() {
  finish();
}

void Progress::update(std::uint64_t done) {
  if (!terminal_) return;
  const std::int64_t now_ns = SystemClock{}.steady_ns();
  if (now_ns < next_draw_ns_) return;
  next_draw_ns_ = now_ns + draw_every_ns;
  draw(done, now_ns);
}

void Progress::draw(std::uint64_t done, std::int64_t now_ns) {
  const double seconds = static_cast<double>(now_ns - started_ns_) / 1e9;
  const double rate = static_cast<double>(done) / std::max(seconds, 1e-9);
  std::string line = fmt::format("{} ", verb_);
  if (total_ > 0) {
    constexpr std::size_t width = 32;
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
    const auto filled = static_cast<std::size_t>(share * width);
    for (std::size_t i = 0; i < width; ++i) line += i < filled ? "━" : "─";
    const double left = static_cast<double>(total_ - std::min(done, total_)) / std::max(rate, 1e-9);
    line += fmt::format(" {:3.0f}%  {}/{} {}  {:.2f} M/s  ETA {:.0f} s", share * 100, with_separators(done),
                        with_separators(total_), unit_, rate / 1e6, left);
  } else {
    line += fmt::format("{} {}  {:.2f} M/s", with_separators(done), unit_, rate / 1e6);
  }
  fmt::print(stderr, "\r\x1b[K{}", line);
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::finish() {
  if (!std::exchange(drawn_, false)) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

std::string with_separators(std::uint64_t number) {
  std::string digits = fmt::format("{}", number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

}  // namespace lockstep
