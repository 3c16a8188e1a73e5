// SPDX-License-Identifier: Apache-2.0
#pragma once

/// parse_decimal: a whole number as people write it: all of the text, digits only, with a '-' before them where the
/// type has a sign. Nothing is skipped, wrapped or clamped, and a leading zero is refused: 010 is 8 to some who read
/// it. Pure; any thread.

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace lockstep {

/// Nothing when `text` is not one, or does not fit a Number.
template <std::integral Number>
[[nodiscard]] std::optional<Number> parse_decimal(std::string_view text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || rest != end) return std::nullopt;
  const bool leading_zero = text != "0" && (text.starts_with('0') || text.starts_with("-0"));
  return leading_zero ? std::nullopt : std::optional(number);
}

}  // namespace lockstep
