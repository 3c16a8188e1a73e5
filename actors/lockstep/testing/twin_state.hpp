// SPDX-License-Identifier: Apache-2.0
#pragma once

/// TwinState: one actor's state kept twice, in arenas at different addresses, for randomised tests of containers. Every
/// step runs on both; it is committed or undone on both; afterwards the images must be equal, byte by byte, and after
/// an undo equal to what they were. One twin can be moved to another address at any time. Outside of a step
/// nothing may allocate in the current arena, a model least of all. One thread.

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/testing/arena_fixture.hpp"

namespace lockstep::testing {

/// One operation of a random history, as data: what it means is up to the test.
struct Op {
  std::uint32_t kind;
  std::uint64_t key;
  std::uint64_t value;
};

[[nodiscard]] inline std::uint64_t allocated_bytes(ArenaFixture& fixture) {
  return std::as_const(fixture.arena()).header().allocated_bytes;
}

template <class State>
class TwinState {
 public:
  explicit TwinState(std::uint64_t capacity_bytes = std::uint64_t{1} << 22) : capacity_bytes_(capacity_bytes) {
    for (auto& twin : twins_) {
      twin = std::make_unique<ArenaFixture>(capacity_bytes_, budget_bytes);
      twin->use();
      REQUIRE(twin->arena().allocate(sizeof(State)) == Arena::first_block);
      ::new (static_cast<void*>(twin->arena().at(Arena::first_block))) State{};
      twin->commit();
    }
    start_bytes_ = allocated_bytes(*twins_[0]);
  }

  /// The state of the first twin, whose arena is made current: to compare it with a model.
  [[nodiscard]] const State& state() { return enter(*twins_[0]); }

  template <class Step>
  void step(bool keep, Step&& run) {
    for (auto& twin : twins_) {
      State& state = enter(*twin);
      if (!keep) before_.assign(twin->arena().image().begin(), twin->arena().image().end());
      twin->arena().before_write(&state, sizeof state);
      run(state);
      REQUIRE(twin->barrier().raised() == TrapKind::none);
      if (keep) {
        twin->commit();
      } else {
        twin->undo();
        REQUIRE(twin->has_image(before_));
      }
    }
    REQUIRE(twins_[1]->has_image(twins_[0]->arena().image()));
  }

  /// Goes on with the first twin's bytes at another address.
  void relocate() {
    auto moved = std::make_unique<ArenaFixture>(twins_[0]->arena().image(), capacity_bytes_, budget_bytes);
    std::swap(twins_[0], moved);
  }

  /// Whether nothing but the root object is allocated.
  [[nodiscard]] bool owns_nothing() const { return allocated_bytes(*twins_[0]) == start_bytes_; }

 private:
  static constexpr std::size_t budget_bytes = std::size_t{1} << 22;

  State& enter(ArenaFixture& twin) {
    twin.use();
    return *reinterpret_cast<State*>(twin.arena().at(Arena::first_block));
  }

  std::uint64_t capacity_bytes_;
  std::unique_ptr<ArenaFixture> twins_[2];
  std::vector<std::byte> before_;
  std::uint64_t start_bytes_ = 0;
};

}  // namespace lockstep::testing
