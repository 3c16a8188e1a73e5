// SPDX-License-Identifier: Apache-2.0
#include "lobster.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>

#include "base/system_error.hpp"

namespace matching {
namespace {

using Type = LobsterMessage::Type;
using Parsed = std::expected<LobsterMessage, std::string>;

constexpr std::size_t field_count = 6;
constexpr std::int64_t second_ns = 1'000'000'000;

/// Nothing unless all of `text` is a number that fits.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "34200.017459617" in nanoseconds.
std::optional<std::int64_t> time_in(std::string_view text) {
  constexpr std::uint32_t day_seconds = 86'400;
  constexpr std::size_t most_decimals = 9;
  const std::size_t point = text.find('.');
  const auto seconds = number_in<std::uint32_t>(text.substr(0, point));
  if (!seconds || *seconds > day_seconds) return std::nullopt;
  std::int64_t time_ns = *seconds * second_ns;
  if (point == std::string_view::npos) return time_ns;
  const std::string_view decimals = text.substr(point + 1);
  const auto fraction = number_in<std::uint32_t>(decimals);
  if (!fraction || decimals.size() > most_decimals) return std::nullopt;
  std::int64_t fraction_ns = *fraction;
  for (std::size_t i = decimals.size(); i < most_decimals; ++i) fraction_ns *= 10;
  return time_ns + fraction_ns;
}

/// Null when there are more or fewer.
std::optional<std::array<std::string_view, field_count>> fields_of(std::string_view line) {
  std::array<std::string_view, field_count> fields;
  for (std::size_t i = 0; i < field_count; ++i) {
    const std::size_t comma = line.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == field_count)) return std::nullopt;
    fields[i] = line.substr(0, comma);
    if (comma != std::string_view::npos) line.remove_prefix(comma + 1);
  }
  return fields;
}

/// What is wrong with a message of this type, each of whose fields is a number; empty if nothing.
std::string fault_of(const LobsterMessage& message) {
  switch (message.type) {
    case Type::new_order:
    case Type::partial_cancel:
    case Type::deletion:
    case Type::execution:
      if (message.order < 1) return fmt::format("order {} is not positive", message.order);
      if (message.size < 1 || message.size > largest_quantity)
        return fmt::format("size {} is not from 1 to {}", message.size, largest_quantity);
      if (message.price < 1 || message.price > largest_price)
        return fmt::format("price {} is not from 1 to {}", message.price, largest_price);
      return {};
    case Type::hidden_execution:
    case Type::cross:
      return {};
    case Type::halt:
      if (message.price < -1 || message.price > 1)
        return fmt::format("price {} of a trading halt is none of -1, 0, 1", message.price);
      return {};
  }
  return fmt::format("type {} is none of 1 to 7", static_cast<unsigned>(message.type));
}

Side side_of(std::int8_t direction) {
  return direction > 0 ? Side::Buy : Side::Sell;
}

}  // namespace

Parsed parse_lobster(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const auto fields = fields_of(line);
  if (!fields) return std::unexpected("it has not six fields: time, type, order, size, price, direction");
  const auto bad = [&](const char* name, std::size_t field) {
    return std::unexpected(fmt::format("{} '{}' cannot be right", name, (*fields)[field]));
  };
  const auto time_ns = time_in((*fields)[0]);
  if (!time_ns) return bad("time", 0);
  const auto type = number_in<std::uint8_t>((*fields)[1]);
  if (!type) return bad("type", 1);
  const auto order = number_in<std::int64_t>((*fields)[2]);
  if (!order) return bad("order", 2);
  const auto size = number_in<std::uint32_t>((*fields)[3]);
  if (!size) return bad("size", 3);
  const auto price = number_in<std::int64_t>((*fields)[4]);
  if (!price) return bad("price", 4);
  const auto direction = number_in<std::int8_t>((*fields)[5]);
  if (!direction || (*direction != 1 && *direction != -1)) return bad("direction", 5);
  const LobsterMessage message{*time_ns, static_cast<Type>(*type), *order, *size, *price, *direction};
  if (std::string fault = fault_of(message); !fault.empty()) return std::unexpected(std::move(fault));
  return message;
}

std::string format_lobster(const LobsterMessage& message) {
  return fmt::format("{}.{:09},{},{},{},{},{}", message.time_ns / second_ns, message.time_ns % second_ns,
                     static_cast<unsigned>(message.type), message.order, message.size, message.price,
                     static_cast<int>(message.direction));
}

lockstep::Result<std::vector<LobsterMessage>> read_lobster(const std::string& path) {
  constexpr std::size_t most_named = 10;
  std::ifstream file(path);
  if (!file) return lockstep::system_failure("open", path, errno);
  std::vector<LobsterMessage> messages;
  std::string bad;
  std::size_t bad_lines = 0;
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    Parsed parsed = parse_lobster(line);
    if (parsed && !messages.empty() && parsed->time_ns < messages.back().time_ns)
      parsed = std::unexpected("its time is before that of the line above");
    if (parsed) {
      messages.push_back(*parsed);
    } else if (++bad_lines <= most_named) {
      bad += fmt::format("{}{}:{}: {}", bad.empty() ? "" : "\n", path, number, parsed.error());
    }
  }
  if (file.bad()) return lockstep::fail(lockstep::ErrorCode::io, fmt::format("reading {} failed midway", path));
  if (bad_lines == 0) return messages;
  if (bad_lines > most_named) bad += fmt::format("\nand {} lines more", bad_lines - most_named);
  return lockstep::fail(lockstep::ErrorCode::usage, bad);
}

std::optional<BookMessage> to_book(const LobsterMessage& message, std::uint64_t line) {
  using Kind = BookMessage::Kind;
  const OrderKey key{resting_account, static_cast<std::uint64_t>(message.order)};
  const Side side = side_of(message.direction);
  switch (message.type) {
    case Type::new_order:
      return BookMessage{Kind::enter, {key, side, OrderKind::Limit, message.price, message.size}};
    case Type::partial_cancel:
      return BookMessage{Kind::reduce, {.key = key}, message.size};
    case Type::deletion:
      return BookMessage{Kind::cancel, {.key = key}};
    case Type::execution:
      return BookMessage{
          Kind::enter,
          {{trading_account, line}, opposite(side), OrderKind::ImmediateOrCancel, message.price, message.size}};
    case Type::hidden_execution:
    case Type::cross:
      return std::nullopt;
    case Type::halt:
      return BookMessage{message.price == -1 ? Kind::halt : Kind::resume};
  }
  return std::nullopt;
}

std::optional<LobsterMessage> of_report(const ExecutionReport& report) {
  const auto line = [&](Type type, std::uint64_t order, Side resting) {
    return LobsterMessage{report.time_ns(),
                          type,
                          static_cast<std::int64_t>(order),
                          static_cast<std::uint32_t>(report.quantity()),
                          report.price(),
                          static_cast<std::int8_t>(resting == Side::Buy ? 1 : -1)};
  };
  switch (report.event()) {
    case Event::Entered:
      return line(Type::new_order, report.order(), report.side());
    case Event::Traded:
      return line(Type::execution, report.resting_order(), opposite(report.side()));
    case Event::Reduced:
      return line(Type::partial_cancel, report.order(), report.side());
    case Event::Cancelled:
      if (report.reason() != Reason::None) return std::nullopt;  // never rested
      return line(Type::deletion, report.order(), report.side());
    case Event::Refused:
      return std::nullopt;
    case Event::Halted:
    case Event::Resumed:
      return LobsterMessage{report.time_ns(), Type::halt, 0, 0, report.event() == Event::Halted ? -1 : 1, -1};
  }
  return std::nullopt;
}

}  // namespace matching
