// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A copy of a file under another name of its directory, or in another one; and whether two files are the same.
/// Blocking, any Disk.

#include <string>

#include "base/error.hpp"
#include "journal/disk.hpp"

namespace lockstep {

/// Copies `from` to `directory`/`name`, durable when this returns. Replaces an older copy. On an Error no part of one
/// is left.
[[nodiscard]] Result<void> copy_file(Disk& disk, const std::string& from, const std::string& directory,
                                     const std::string& name);
/// Whether two files hold the same bytes.
[[nodiscard]] Result<bool> same_content(Disk& disk, const std::string& one, const std::string& other);

}  // namespace lockstep
