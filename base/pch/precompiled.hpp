// SPDX-License-Identifier: Apache-2.0
/// What most sources include, parsed once for a build with -Dprecompiled=true. A source includes what it uses all the
/// same: builds without it, which are the default, hold it to that. No `#pragma once`: this is what the compiler
/// compiles.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <ranges>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>
