// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/session_directory.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace lockstep {
namespace {

constexpr std::size_t first_places = 64;
constexpr std::uint64_t nobody = UINT64_MAX;

}  // namespace

SessionDirectory::SessionDirectory(std::int64_t expiry_ns) : expiry_ns_(expiry_ns), places_(first_places) {}

std::size_t SessionDirectory::home_of(std::uint64_t session) const {
  return (session * 0x9E3779B97F4A7C15ULL >> 32U) & (places_.size() - 1);
}

/// Where the session is, or the free place where it would go.
std::size_t SessionDirectory::find(std::uint64_t session) const {
  std::size_t at = home_of(session);
  while (places_[at].session != 0 && places_[at].session != session) at = (at + 1) & (places_.size() - 1);
  return at;
}

void SessionDirectory::touch_slowly(std::uint64_t session, std::int64_t stamp_ns) {
  std::size_t at = find(session);
  if (places_[at].session == 0) {
    if (2 * (size_ + 1) > places_.size()) {
      grow();
      at = find(session);
    }
    places_[at].session = session;
    ++size_;
    push({due_ns(stamp_ns), session});
  }
  places_[at].last_activity_ns = stamp_ns;
  last_session_ = session;
  last_place_ = at;
}

void SessionDirectory::remove(std::uint64_t session) {
  std::size_t hole = find(session);
  if (places_[hole].session == 0) return;
  const std::size_t mask = places_.size() - 1;
  places_[hole] = {};
  // Closes the gap: moves back each place that the gap parts from its home.
  for (std::size_t at = (hole + 1) & mask; places_[at].session != 0; at = (at + 1) & mask) {
    if (((at - home_of(places_[at].session)) & mask) < ((at - hole) & mask)) continue;
    places_[hole] = std::exchange(places_[at], Place{});
    hole = at;
  }
  --size_;
  last_session_ = nobody;
}

std::int64_t SessionDirectory::due_ns(std::int64_t last_activity_ns) const {
  const std::int64_t from_ns = std::max(last_activity_ns, start_ns_);
  return from_ns > INT64_MAX - expiry_ns_ ? INT64_MAX : from_ns + expiry_ns_;
}

std::optional<SessionDirectory::Silent> SessionDirectory::find_silent(std::int64_t now_ns) {
  while (!queue_.empty() && queue_.front().due_ns <= now_ns) {
    const std::uint64_t session = queue_.front().session;
    const Place& place = places_[find(session)];
    if (place.session == 0) {
      pop();
      continue;
    }
    const std::int64_t due = due_ns(place.last_activity_ns);
    if (due <= now_ns) return Silent{session, place.last_activity_ns};
    pop();
    push({due, session});
  }
  return std::nullopt;
}

void SessionDirectory::push(const Due& due) {
  queue_.push_back(due);
  std::ranges::push_heap(queue_, std::greater{});
}

void SessionDirectory::pop() {
  std::ranges::pop_heap(queue_, std::greater{});
  queue_.pop_back();
}

void SessionDirectory::grow() {
  std::vector<Place> old(2 * places_.size());
  old.swap(places_);
  for (const Place& place : old) {
    if (place.session != 0) places_[find(place.session)] = place;
  }
  last_session_ = nobody;
}

}  // namespace lockstep
