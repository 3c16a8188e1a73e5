// SPDX-License-Identifier: Apache-2.0
#include "replay/flatbuffers_json.hpp"

#include <flatbuffers/util.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace lockstep {
namespace {

/// Names in a schema stand in the text as they are, and a damaged one may hold anything: nothing here trusts the text.
void skip(std::string_view& text, std::size_t bytes) {
  text.remove_prefix(std::min(bytes, text.size()));
}

std::uint32_t hex(std::string_view digits) {
  std::uint32_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

struct Literal {
  std::string_view inside;  ///< between the quotes, escaped
  bool utf8 = true;
};

/// `text` begins with a quote.
Literal first_literal(std::string_view text) {
  Literal literal;
  std::size_t at = 1;
  for (; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\' && ++at < text.size() && text[at] == 'x') literal.utf8 = false;
  literal.inside = text.substr(1, at - 1);
  return literal;
}

/// Takes a \u escape, two of them for what is beyond the first plane, from the front of `rest`, which stands behind \u.
void append_utf8(std::string& out, std::string_view& rest) {
  std::uint32_t code = hex(rest.substr(0, 4));
  skip(rest, 4);
  if (code >= 0xd800 && code < 0xdc00 && rest.starts_with("\\u")) {
    code = 0x10000 + ((code - 0xd800) << 10) + (hex(rest.substr(2, 4)) - 0xdc00);
    skip(rest, 6);
  }
  flatbuffers::ToUTF8(code, &out);
}

/// The string as it is in the message.
std::string unescaped(std::string_view rest) {
  std::string out;
  while (!rest.empty()) {
    const bool escaped = rest.front() == '\\' && rest.size() > 1;
    const char c = escaped ? rest[1] : rest[0];
    skip(rest, escaped ? 2 : 1);
    if (escaped && c == 'x') {
      out += static_cast<char>(hex(rest.substr(0, 2)));
      skip(rest, 2);
    } else if (escaped && c == 'u') {
      append_utf8(out, rest);
    } else {
      constexpr std::string_view letters = "ntrbf";
      const auto special = escaped ? letters.find(c) : std::string_view::npos;
      out += special == std::string_view::npos ? c : "\n\t\r\b\f"[special];
    }
  }
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view group = bytes.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < group.size() ? static_cast<std::uint8_t>(group[i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i) out += i <= group.size() ? alphabet[bits >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

/// A number, true, false and null are JSON; what else stands without quotes is not.
bool is_json_word(std::string_view word) {
  return (word.back() >= '0' && word.back() <= '9') || word == "true" || word == "false" || word == "null";
}

}  // namespace

std::string valid_json(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (text.front() == '"') {
      const Literal literal = first_literal(text);
      out += literal.utf8 ? fmt::format("\"{}\"", literal.inside)
                          : fmt::format("{{\"base64\": \"{}\"}}", base64(unescaped(literal.inside)));
      skip(text, literal.inside.size() + 2);
      continue;
    }
    const std::size_t length = std::min(text.find_first_of("\"{}[],: \n"), text.size());
    if (length == 0) {
      out += text.front();
      skip(text, 1);
      continue;
    }
    const std::string_view word = text.substr(0, length);
    out += is_json_word(word) ? std::string(word) : fmt::format("\"{}\"", word);
    skip(text, length);
  }
  return out;
}

}  // namespace lockstep
