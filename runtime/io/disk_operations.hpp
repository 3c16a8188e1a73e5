// SPDX-License-Identifier: Apache-2.0
#pragma once

/// DiskOperations: the submitted operations of one Disk that have not completed, by slot. It also closes files: a file
/// with operations under way is closed when the last of them is done, since until then its number must not go to
/// another file. One thread.

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "journal/disk.hpp"

namespace lockstep::io {

class DiskOperations {
 public:
  DiskOperations() = default;
  /// Operations still counted have been dropped without being begun.
  ~DiskOperations() {
    for (const FileId file : closing_) ::close(static_cast<int>(file));
  }
  DiskOperations(const DiskOperations&) = delete;
  DiskOperations& operator=(const DiskOperations&) = delete;

  [[nodiscard]] std::uint32_t in_flight() const { return in_flight_; }

  /// Takes a slot. The pieces are copied: the kernel or a helper thread reads the list after the caller has returned.
  [[nodiscard]] std::uint32_t begin(FileId file, std::span<const iovec> pieces, std::uint64_t token) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(operations_.size()));
      operations_.emplace_back();
      free_.reserve(operations_.capacity());
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    Operation& operation = operations_[slot];
    operation.pieces.assign(pieces.begin(), pieces.end());
    operation.file = file;
    operation.token = token;
    operation.under_way = true;
    ++in_flight_;
    return slot;
  }

  /// The pieces of an operation under way; they keep their address until it ends.
  [[nodiscard]] std::span<const iovec> pieces(std::uint32_t slot) const { return operations_[slot].pieces; }
  [[nodiscard]] std::uint32_t generation(std::uint32_t slot) const { return operations_[slot].generation; }

  [[nodiscard]] DiskCompletion end(std::uint32_t slot, std::int64_t result) {
    Operation& operation = operations_[slot];
    operation.under_way = false;
    ++operation.generation;
    free_.push_back(slot);
    --in_flight_;
    if (!closing_.empty() && !is_busy(operation.file) && std::erase(closing_, operation.file) != 0)
      ::close(static_cast<int>(operation.file));
    return {operation.token, result};
  }

  void close(FileId file) {
    if (is_busy(file)) {
      closing_.push_back(file);
    } else {
      ::close(static_cast<int>(file));
    }
  }

 private:
  struct Operation {
    std::uint64_t token = 0;
    FileId file = FileId::none;
    std::uint32_t generation = 0;
    bool under_way = false;
    std::vector<iovec> pieces;
  };

  [[nodiscard]] bool is_busy(FileId file) const {
    return std::ranges::any_of(operations_, [&](const Operation& o) { return o.under_way && o.file == file; });
  }

  std::vector<Operation> operations_;
  std::vector<std::uint32_t> free_;
  std::vector<FileId> closing_;
  std::uint32_t in_flight_ = 0;
};

}  // namespace lockstep::io
