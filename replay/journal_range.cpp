// SPDX-License-Identifier: Apache-2.0
#include "replay/journal_range.hpp"

#include <fmt/format.h>

#include <optional>

#include "base/decimal.hpp"

namespace lockstep {
namespace {

/// A bound as a sequence number: "17", "-1000" (that many before the end), "end" (one behind the last).
std::optional<std::uint64_t> parse_bound(std::string_view text, std::uint64_t last_seq) {
  if (text == "end") return last_seq + 1;
  const bool from_end = text.starts_with('-');
  if (from_end) text.remove_prefix(1);
  const auto number = parse_decimal<std::uint64_t>(text);
  if (!number || *number > UINT64_MAX / 2) return std::nullopt;
  if (!from_end) return number;
  return *number > last_seq ? 1 : last_seq + 1 - *number;
}

}  // namespace

Result<SeqRange> parse_seq_range(std::string_view text, std::uint64_t last_seq) {
  if (text.empty()) return SeqRange{};
  const auto dots = text.find("..");
  const auto first = parse_bound(text.substr(0, dots), last_seq);
  const auto behind = dots == std::string_view::npos ? (first ? std::optional(*first + 1) : std::nullopt)
                                                     : parse_bound(text.substr(dots + 2), last_seq);
  if (!first || !behind)
    return fail(ErrorCode::usage, fmt::format("'{}' is not a range of sequence numbers; write N, A..B (B excluded), "
                                              "A..end or -N..end",
                                              text));
  if (*behind <= *first) return fail(ErrorCode::usage, fmt::format("the range {} is empty", text));
  return SeqRange{*first, *behind - 1};
}

}  // namespace lockstep
