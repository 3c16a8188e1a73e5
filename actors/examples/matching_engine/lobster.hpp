// SPDX-License-Identifier: Apache-2.0
#pragma once

/// LOBSTER's message files: what happened to one stock's visible orders in a day, a line each, comma-separated, without
/// a heading: time, type, order, size, price, direction. https://lobsterdata.com/info/DataStructure.php
///
///     34200.017459617,1,16113575,18,5853300,1
///
///     time        seconds after midnight, with at most nine decimals; never runs back
///     type        LobsterMessage::Type
///     size        shares
///     price       dollars times 10,000: our tick
///     direction   of the order that rests: 1 buys, -1 sells
///
/// The file says what became of orders, not what was sent; to_book() turns one into the other, and of_report() back.
/// Pure functions but for read_lobster(); any thread.

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "book_message.hpp"

namespace matching {

struct LobsterMessage {
  enum class Type : std::uint8_t {
    new_order = 1,
    partial_cancel = 2,
    deletion = 3,
    execution = 4,         ///< of an order that was to be seen
    hidden_execution = 5,  ///< of one that was not
    cross = 6,             ///< an auction's trade
    halt = 7,              ///< price -1: trading halts; 0: quoting resumes; 1: trading resumes
  };
  std::int64_t time_ns = 0;  ///< after midnight
  Type type = Type::new_order;
  std::int64_t order = 0;  ///< 0 or -1 where no order is named
  std::uint32_t size = 0;
  std::int64_t price = 0;
  std::int8_t direction = 1;
  friend bool operator==(const LobsterMessage&, const LobsterMessage&) = default;
};

/// A line, without its end. The error says what is wrong with it.
[[nodiscard]] std::expected<LobsterMessage, std::string> parse_lobster(std::string_view line);
[[nodiscard]] std::string format_lobster(const LobsterMessage& message);

/// A whole file; message i stands on line i + 1. The error names file and line of the first ten bad ones.
[[nodiscard]] lockstep::Result<std::vector<LobsterMessage>> read_lobster(const std::string& path);

/// Whose orders the file's are, and whose those that trade with them.
inline constexpr std::uint64_t resting_account = 1;
inline constexpr std::uint64_t trading_account = 2;

/// What leads a book to what the line tells; nothing for what a visible book does not show. An execution becomes an
/// ImmediateOrCancel order of the other side, at the price and of the size that traded, with the line for its number.
[[nodiscard]] std::optional<BookMessage> to_book(const LobsterMessage& message, std::uint64_t line);
/// The line that tells of a report's event; nothing when the event changed no order that rests.
[[nodiscard]] std::optional<LobsterMessage> of_report(const ExecutionReport& report);

}  // namespace matching
