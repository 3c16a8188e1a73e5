// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ScratchDirectory: an empty directory for one test, removed with all it holds when the test ends.

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/assert.hpp"

namespace lockstep {

class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lockstep-test-XXXXXX").string();
    LOCKSTEP_ASSERT(::mkdtemp(pattern.data()) != nullptr, "the temporary directory is not writable");
    path_ = pattern;
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory() { std::filesystem::remove_all(path_); }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace lockstep
