// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/resp_parser.hpp"

#include <charconv>
#include <cstring>
#include <optional>

namespace lockstep {
namespace {

using Status = RespParsed::Status;

/// "$" or "*", a number of at most 20 characters, CR LF.
constexpr std::size_t max_header_bytes = 32;

RespParsed broken(std::string_view complaint) {
  return {Status::broken, 0, complaint};
}

/// The text of a header line after its first byte; `line_bytes` includes CR LF. Nothing when it has not all arrived.
std::optional<std::string_view> header_text(std::string_view bytes, std::size_t& line_bytes) {
  const std::size_t end = bytes.substr(0, max_header_bytes).find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  line_bytes = end + 1;
  const std::size_t text_end = end != 0 && bytes[end - 1] == '\r' ? end - 1 : end;
  return text_end == 0 ? std::string_view() : bytes.substr(1, text_end - 1);
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
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
    std::size_t line_bytes = 0;
    const auto text = header_text(bytes, line_bytes);
    if (!text)
      return bytes.size() >= max_header_bytes ? broken("Protocol error: invalid multibulk length") : RespParsed{};
    const auto count = number(*text);
    if (!count || *count > static_cast<std::int64_t>(limits_.max_arguments))
      return broken("Protocol error: invalid multibulk length");
    scan = {line_bytes, *count > 0 ? static_cast<std::size_t>(*count) : 0};
  }
  while (scan.arguments_left != 0) {
    const std::string_view rest = bytes.substr(scan.at);
    if (rest.empty()) return {};
    if (rest[0] != '$') return broken("Protocol error: expected '$'");
    std::size_t line_bytes = 0;
    const auto text = header_text(rest, line_bytes);
    if (!text) return rest.size() >= max_header_bytes ? broken("Protocol error: invalid bulk length") : RespParsed{};
    const auto length = number(*text);
    if (!length || *length < 0) return broken("Protocol error: invalid bulk length");
    const auto bulk_bytes = static_cast<std::uint64_t>(*length);
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
