// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Golden files: what version 1 of a layout writes, as text: an offset and 16 bytes a line, runs of equal lines as one
/// "*". LOCKSTEP_WRITE_GOLDEN=1 writes them anew; that is right only together with a new version of the layout.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace lockstep {

inline constexpr std::size_t golden_line_bytes = 16;

inline std::string dump(std::span<const std::byte> bytes) {
  std::string text;
  bool skipping = false;
  for (std::size_t at = 0; at < bytes.size(); at += golden_line_bytes) {
    const auto line = bytes.subspan(at, std::min(golden_line_bytes, bytes.size() - at));
    const bool repeats = at > 0 && at + golden_line_bytes < bytes.size() &&
                         std::memcmp(line.data(), line.data() - golden_line_bytes, golden_line_bytes) == 0;
    if (repeats && !skipping) text += "*\n";
    skipping = repeats;
    if (repeats) continue;
    text += fmt::format("{:08x} ", at);
    for (const std::byte byte : line) text += fmt::format(" {:02x}", static_cast<unsigned>(byte));
    text += "\n";
  }
  return text;
}

inline std::vector<std::byte> undump(const std::string& text) {
  std::vector<std::byte> bytes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line == "*") continue;
    std::istringstream fields(line);
    std::size_t at = 0;
    fields >> std::hex >> at;
    while (bytes.size() < at) bytes.push_back(bytes[bytes.size() - golden_line_bytes]);
    for (unsigned byte = 0; fields >> byte;) bytes.push_back(static_cast<std::byte>(byte));
  }
  return bytes;
}

/// The golden file's text.
inline std::string golden(const std::string& name, std::span<const std::byte> bytes) {
  const std::string path = fmt::format("{}/{}", LOCKSTEP_GOLDEN_DIRECTORY, name);
  if (std::getenv("LOCKSTEP_WRITE_GOLDEN") != nullptr) std::ofstream(path) << dump(bytes);
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace lockstep
