// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Operator log: one line an event on stderr, "2026-01-07T10:36:02.118Z info node: text". Cold path only (start, stop,
/// faults, refusals in bulk); never per message. Any thread; a line is one write(2), so lines do not mix.

#include <fmt/format.h>

#include <string_view>

namespace lockstep {

enum class LogLevel { info, warning, error };

void log_line(LogLevel level, std::string_view subject, std::string_view text);

template <class... Args>
void log(LogLevel level, std::string_view subject, fmt::format_string<Args...> format, Args&&... args) {
  log_line(level, subject, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace lockstep
