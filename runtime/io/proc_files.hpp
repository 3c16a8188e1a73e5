// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Small facts from /proc and /sys, for diagnoses. Cold path. Any thread.

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::io {

/// The first line of a file; nothing when it cannot be read.
[[nodiscard]] std::optional<std::string> line_of(const std::string& path);
/// The number a file begins with.
[[nodiscard]] std::optional<std::int64_t> number_in(const std::string& path);
/// What stands behind "NAME:" in a file of such lines (/proc/self/status, /proc/meminfo), without blanks before it.
[[nodiscard]] std::optional<std::string> field_in(const std::string& path, const std::string& name);
/// A number of /proc/self/status.
[[nodiscard]] std::optional<std::int64_t> status_field(const std::string& name);

}  // namespace lockstep::io
