// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The unit two cores pass memory back and forth in. Words written by different threads must lie on different lines.
/// A constant rather than std::hardware_destructive_interference_size, whose value moves with -mtune and so would make
/// layouts of one program disagree (g++ warns of it).

#include <cstddef>

namespace lockstep {

inline constexpr std::size_t cache_line_bytes = 64;

}  // namespace lockstep
