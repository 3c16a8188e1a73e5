// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A table of text cells: for people on a terminal, for programs as CSV (RFC 4180).

#include <string>
#include <vector>

#include "base/error.hpp"

namespace lockstep::bench {

class Table {
 public:
  explicit Table(std::vector<std::string> columns) : columns_(std::move(columns)) {}

  /// As many cells as there are columns.
  void add_row(std::vector<std::string> cells);

  /// First column to the left, the others to the right.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string csv() const;

 private:
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
};

[[nodiscard]] Result<void> write_file(const std::string& path, const std::string& text);

}  // namespace lockstep::bench
