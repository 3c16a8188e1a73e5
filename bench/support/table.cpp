// SPDX-License-Identifier: Apache-2.0
#include "bench/support/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string_view>

#include "base/assert.hpp"

namespace lockstep::bench {

namespace {

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\n") == std::string::npos) return cell;
  std::string text = "\"";
  for (const char c : cell) text.append(c == '"' ? 2 : 1, c);
  text += '"';
  return text;
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i != 0) line += ',';
    line += quoted(cells[i]);
  }
  line += "\r\n";
  return line;
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  LOCKSTEP_ASSERT(cells.size() == columns_.size(), "a row needs a cell for each column");
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(columns_[i].size());
    for (const auto& row : rows_) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i == 0) fmt::format_to(std::back_inserter(text), "{:<{}}", cells[i], widths[i]);
      if (i != 0) fmt::format_to(std::back_inserter(text), "  {:>{}}", cells[i], widths[i]);
    }
    text += '\n';
  };
  add_line(columns_);
  for (const auto& row : rows_) add_line(row);
  return text;
}

std::string Table::csv() const {
  std::string text = csv_line(columns_);
  for (const auto& row : rows_) text += csv_line(row);
  return text;
}

Result<void> write_file(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return fail(ErrorCode::io, fmt::format("cannot create {}: {}", path, std::strerror(errno)));
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) {
    return fail(ErrorCode::io, fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  }
  return {};
}

}  // namespace lockstep::bench
