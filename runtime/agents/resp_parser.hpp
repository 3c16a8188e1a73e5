// SPDX-License-Identifier: Apache-2.0
#pragma once

/// RESP2 requests, from bytes to arguments: arrays of bulk strings ("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n") and inline
/// commands
/// ("GET k\r\n", with Redis' quoting). It goes on where it stopped when a command arrives in pieces, so its work is
/// linear in the bytes, and every length is bounded before anything is stored. Pure; any thread.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct RespLimits {
  std::size_t max_arguments = 64U << 10;
  std::size_t max_command_bytes = 1U << 20;  ///< of one command on the wire
  std::size_t max_inline_bytes = 64U << 10;
};

/// How far an unfinished command has been read; all zero at a command's start.
struct RespScan {
  std::size_t at = 0;              ///< bytes from the command's start
  std::size_t arguments_left = 0;  ///< of its array
};

struct RespParsed {
  enum class Status : std::uint8_t { complete, incomplete, broken };
  Status status = Status::incomplete;
  std::size_t bytes = 0;         ///< of the command, when complete
  std::string_view complaint{};  ///< when broken: "Protocol error: ..."
};

class RespParser {
 public:
  explicit RespParser(const RespLimits& limits) : limits_(limits) {}

  /// Reads the command at the front of `bytes`, which begin at its start; `scan` is what the last call on it left. When
  /// complete, arguments() holds it (nothing for an empty line or array) until the next call, as views of `bytes`.
  [[nodiscard]] RespParsed parse(std::string_view bytes, RespScan& scan);
  [[nodiscard]] const std::vector<std::string_view>& arguments() const { return arguments_; }

 private:
  [[nodiscard]] RespParsed parse_array(std::string_view bytes, RespScan& scan, bool collect);
  [[nodiscard]] RespParsed parse_inline(std::string_view bytes);
  [[nodiscard]] bool split_inline(std::string_view line);
  [[nodiscard]] std::string_view unquote(std::string_view line, std::size_t& at, bool& balanced);

  RespLimits limits_;
  std::vector<std::string_view> arguments_;
  std::string unquoted_;  ///< what inline arguments with quotes are views of
};

}  // namespace lockstep
