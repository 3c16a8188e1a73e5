// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What of the host decides how well a node runs, besides io_uring itself: the rows of `lockstep doctor` about kernel,
/// limits, memory, CPUs, network, the disk of the data directory, and what can be tuned (host_tuning.hpp). It only
/// reads. Cold path. Any thread.

#include <string>
#include <vector>

#include "runtime/io/io_caps.hpp"

namespace lockstep::io {

/// `data_directory` may be empty, or not exist yet: its rows are then about its nearest existing parent.
[[nodiscard]] std::vector<Capability> probe_host(const std::string& data_directory);

}  // namespace lockstep::io
