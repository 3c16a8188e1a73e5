// SPDX-License-Identifier: Apache-2.0
#pragma once

/// RespSession: what the RESP codec keeps for one connection: how far it has read an unfinished command, the selected
/// database, and the commands whose answers have not left. Answers arrive in any order and leave in the order of the
/// commands: the oldest goes straight out, one that is early waits, rendered, in its place.
///
/// Belongs to a connection and its perimeter's thread.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/agents/resp_parser.hpp"

namespace lockstep {

struct RespSession {
  struct Pending {
    std::uint32_t shape = 0;
    bool answered = false;
    std::string early;  ///< the answer, while older ones are missing
  };

  /// A place behind all others; its number is the request's.
  std::uint64_t push(std::uint32_t shape) {
    if (count == places.size()) grow();
    Pending& place = at(count++);
    place.shape = shape;
    place.answered = false;
    return first + count - 1;
  }
  /// nullptr for a number that no pending command has.
  [[nodiscard]] Pending* find(std::uint64_t request) {
    return request - first < count ? &at(request - first) : nullptr;
  }
  [[nodiscard]] Pending& front() { return at(0); }
  void pop() {
    Pending& place = at(0);
    if (place.early.capacity() > largest_kept_bytes) place.early = std::string();
    place.early.clear();
    ++first;
    --count;
  }

  RespScan scan;
  std::uint32_t database = 0;
  std::string name;         ///< CLIENT SETNAME
  std::uint64_t first = 1;  ///< request number of the oldest pending command
  std::size_t count = 0;    ///< pending commands

 private:
  static constexpr std::size_t largest_kept_bytes = 4096;

  [[nodiscard]] Pending& at(std::uint64_t index) { return places[(first + index) & (places.size() - 1)]; }
  void grow() {
    std::vector<Pending> larger(places.empty() ? 16 : places.size() * 2);
    for (std::uint64_t i = 0; i != count; ++i) larger[(first + i) & (larger.size() - 1)] = std::move(at(i));
    places = std::move(larger);
  }

  std::vector<Pending> places;  ///< a ring; a power of two
};

}  // namespace lockstep
