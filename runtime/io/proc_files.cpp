// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/proc_files.hpp"

#include <charconv>
#include <fstream>

namespace lockstep::io {
namespace {

std::optional<std::int64_t> number_at_start(const std::optional<std::string>& text) {
  if (!text) return {};
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc()) return {};
  return value;
}

}  // namespace

std::optional<std::string> line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return {};
  return line;
}

std::optional<std::int64_t> number_in(const std::string& path) {
  return number_at_start(line_of(path));
}

std::optional<std::string> field_in(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name + ':')) continue;
    const std::size_t value = line.find_first_not_of(" \t", name.size() + 1);
    return value == std::string::npos ? std::string() : line.substr(value);
  }
  return {};
}

std::optional<std::int64_t> status_field(const std::string& name) {
  return number_at_start(field_in("/proc/self/status", name));
}

}  // namespace lockstep::io
