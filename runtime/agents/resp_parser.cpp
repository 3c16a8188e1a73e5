// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/resp_parser.hpp"

#include <cstring>

namespace lockstep {
namespace {

using Status = RespParsed::Status;

RespParsed broken(std::string_view complaint) {
  return {Status::broken, 0, complaint};
}

/// The number in a header line: "*3\r\n", "$-1\r\n".
struct HeaderNumber {
  Status status = Status::incomplete;
  std::int64_t value = 0;
  std::size_t line_bytes = 0;  ///< with its end
};

/// Reads a header line from its type byte on. Digits beyond what any limit allows are as broken as other characters.
HeaderNumber header_number(std::string_view bytes) {
  constexpr std::size_t most_digits = 18;  // no overflow
  std::size_t at = 1;
  const bool negative = at != bytes.size() && bytes[at] == '-';
  if (negative) ++at;
  const std::size_t first_digit = at;
  std::int64_t value = 0;
  for (; at != bytes.size() && bytes[at] >= '0' && bytes[at] <= '9'; ++at) {
    if (at - first_digit == most_digits) return {Status::broken, 0, 0};
    value = value * 10 + (bytes[at] - '0');
  }
  const bool has_digits = at != first_digit;
  if (at != bytes.size() && bytes[at] == '\r') ++at;
  if (at == bytes.size()) return {};
  if (bytes[at] != '\n' || !has_digits) return {Status::broken, 0, 0};
  return {Status::complete, negative ? -value : value, at + 1};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' || c == '\0';
}

char escaped(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

}  // namespace

RespParsed RespParser::parse(std::string_view bytes, RespScan& scan) {
  arguments_.clear();
  if (bytes.empty()) return {};
  if (bytes[0] != '*') return parse_inline(bytes);
  const bool collect = scan.at == 0;
  RespParsed parsed = parse_array(bytes, scan, collect);
  if (parsed.status == Status::complete) {
    scan = {};
    if (!collect) {  // its front came earlier: now that all is here, read it once more for the arguments
      parsed = parse_array(bytes, scan, true);
      scan = {};
    }
  }
  return parsed;
}

RespParsed RespParser::parse_array(std::string_view bytes, RespScan& scan, bool collect) {
  if (scan.at == 0) {
    const HeaderNumber count = header_number(bytes);
    if (count.status == Status::incomplete) return {};
    if (count.status == Status::broken || count.value > static_cast<std::int64_t>(limits_.max_arguments))
      return broken("Protocol error: invalid multibulk length");
    scan = {count.line_bytes, count.value > 0 ? static_cast<std::size_t>(count.value) : 0};
  }
  while (scan.arguments_left != 0) {
    const std::string_view rest = bytes.substr(scan.at);
    if (rest.empty()) return {};
    if (rest[0] != '$') return broken("Protocol error: expected '$'");
    const HeaderNumber length = header_number(rest);
    if (length.status == Status::incomplete) return {};
    if (length.status == Status::broken || length.value < 0) return broken("Protocol error: invalid bulk length");
    const std::size_t line_bytes = length.line_bytes;
    const auto bulk_bytes = static_cast<std::uint64_t>(length.value);
    if (bulk_bytes > limits_.max_command_bytes || scan.at + line_bytes + bulk_bytes + 2 > limits_.max_command_bytes)
      return broken("Protocol error: the command is larger than this server accepts");
    if (rest.size() < line_bytes + bulk_bytes + 2) return {};
    if (rest[line_bytes + bulk_bytes] != '\r' || rest[line_bytes + bulk_bytes + 1] != '\n')
      return broken("Protocol error: a bulk string does not end with CRLF");
    if (collect) arguments_.push_back(rest.substr(line_bytes, bulk_bytes));
    scan.at += line_bytes + bulk_bytes + 2;
    --scan.arguments_left;
  }
  return {Status::complete, scan.at, {}};
}

RespParsed RespParser::parse_inline(std::string_view bytes) {
  const std::size_t end = bytes.substr(0, limits_.max_inline_bytes).find('\n');
  if (end == std::string_view::npos)
    return bytes.size() >= limits_.max_inline_bytes ? broken("Protocol error: too big inline request") : RespParsed{};
  if (!split_inline(bytes.substr(0, end))) return broken("Protocol error: unbalanced quotes in request");
  return {Status::complete, end + 1, {}};
}

bool RespParser::split_inline(std::string_view line) {
  unquoted_.clear();
  unquoted_.reserve(line.size());  // so that views of it stay valid
  std::size_t at = 0;
  for (;;) {
    while (at != line.size() && is_space(line[at])) ++at;
    if (at == line.size()) return true;
    bool balanced = true;
    const std::string_view argument = unquote(line, at, balanced);
    if (!balanced || arguments_.size() == limits_.max_arguments) return false;
    arguments_.push_back(argument);
  }
}

/// One argument from `at` on, as Redis' sdssplitargs reads it: quotes may stand anywhere in it, and a closing quote
/// must be followed by a space.
std::string_view RespParser::unquote(std::string_view line, std::size_t& at, bool& balanced) {
  const std::size_t begin = unquoted_.size();
  char quote = '\0';
  for (; at != line.size(); ++at) {
    const char c = line[at];
    if (quote == '\0') {
      if (is_space(c)) break;
      if (c == '"' || c == '\'')
        quote = c;
      else
        unquoted_ += c;
    } else if (c == '\\' && quote == '"' && at + 3 < line.size() && line[at + 1] == 'x' &&
               hex_digit(line[at + 2]) >= 0 && hex_digit(line[at + 3]) >= 0) {
      unquoted_ += static_cast<char>(hex_digit(line[at + 2]) * 16 + hex_digit(line[at + 3]));
      at += 3;
    } else if (c == '\\' && at + 1 < line.size() && (quote == '"' || line[at + 1] == '\'')) {
      unquoted_ += quote == '"' ? escaped(line[at + 1]) : '\'';
      ++at;
    } else if (c == quote) {
      if (at + 1 != line.size() && !is_space(line[at + 1])) break;  // "a"b
      quote = '\0';
    } else {
      unquoted_ += c;
    }
  }
  balanced = quote == '\0';
  return std::string_view(unquoted_).substr(begin);
}

}  // namespace lockstep
