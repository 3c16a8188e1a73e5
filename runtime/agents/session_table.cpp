// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/session_table.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"

namespace lockstep {
namespace {

constexpr std::size_t first_places = 64;
constexpr std::size_t first_waiting = 1024;

/// Index of the first request that is not below `request`.
std::uint32_t lower_bound(const Ring<SessionRequest>& requests, std::uint64_t request) {
  auto end = static_cast<std::uint32_t>(requests.size());
  if (end == 0) return 0;
  // Most are newer than all before, or the newest.
  const std::uint64_t newest = requests.peek(end - 1).request;
  if (newest <= request) return newest < request ? end : end - 1;
  std::uint32_t begin = 0;
  while (begin < end) {
    const std::uint32_t middle = begin + (end - begin) / 2;
    if (requests.peek(middle).request < request) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

bool holds(const Ring<SessionRequest>& requests, std::uint32_t index, std::uint64_t request) {
  return index < requests.size() && requests.peek(index).request == request;
}

}  // namespace

SessionTable::SessionTable(Arena& arena) : arena_(arena), places_(first_places) {
  waiting_.reserve(first_waiting);
  const FinalStep step(arena_);
  if (arena_.header().blocks == 0) static_cast<void>(arena_.allocate(sizeof(Sessions)));
  sessions().for_each([this](Handle<Session> handle, const Session& session) {
    add_place({session.number, handle, const_cast<Session*>(&session)});
    for (std::uint32_t i = 0; i < session.requests.size(); ++i) {
      const SessionRequest& entry = session.requests.peek(i);
      if (entry.state == SessionRequest::State::running) waiting_.push_back({session.number, entry.request});
    }
  });
}

const SessionTable::Sessions& SessionTable::sessions() const {
  return *reinterpret_cast<const Sessions*>(arena_.at(Arena::first_block));
}

SessionTable::Sessions& SessionTable::writable_sessions() {
  auto& root = *reinterpret_cast<Sessions*>(arena_.at(Arena::first_block));
  arena_.before_write(&root, sizeof root);
  return root;
}

bool SessionTable::open(std::uint64_t number, std::uint64_t secret, std::uint64_t route, std::int64_t stamp_ns) {
  if (size() >= max_sessions()) return false;
  const FinalStep step(arena_);
  Sessions& all = writable_sessions();
  Session session;
  session.number = number;
  session.secret = secret;
  session.route = route;
  session.last_activity_ns = stamp_ns;
  const Handle<Session> handle = all.insert(std::move(session));
  add_place({number, handle, const_cast<Session*>(std::as_const(all).peek(handle))});
  return true;
}

std::optional<std::uint64_t> SessionTable::resume(std::uint64_t number, std::uint64_t secret, std::uint64_t route,
                                                  std::int64_t stamp_ns) {
  Session* const session = session_of(number);
  if (session == nullptr || session->secret != secret) return std::nullopt;
  const FinalStep step(arena_);
  arena_.before_write(session, sizeof *session);
  const std::uint64_t before = std::exchange(session->route, route);
  session->last_activity_ns = stamp_ns;
  session->epoch += 1;
  return before;
}

std::optional<std::uint64_t> SessionTable::route_of(std::uint64_t number) {
  const Session* const session = session_of(number);
  if (session == nullptr) return std::nullopt;
  return session->route;
}

std::optional<std::uint64_t> SessionTable::close(std::uint64_t number) {
  Place* const place = find(number);
  if (place == nullptr) return std::nullopt;
  const FinalStep step(arena_);
  Session& session = *place->session;
  const std::uint64_t route = session.route;
  arena_.before_write(&session, sizeof session);
  while (!session.requests.empty()) drop_oldest(session);
  static_cast<void>(writable_sessions().erase(place->handle));
  remove_place(place);
  return route;
}

SessionTable::Admission SessionTable::admit(std::uint64_t number, std::uint64_t request, std::uint32_t ack_distance,
                                            std::int64_t stamp_ns) {
  Session* const session = session_of(number);
  if (session == nullptr) return {Verdict::no_session};
  const FinalStep step(arena_);
  arena_.before_write(session, sizeof *session);
  session->last_activity_ns = stamp_ns;
  session->ack_below = std::max(session->ack_below, request - std::min<std::uint64_t>(ack_distance, request));
  while (!session->requests.empty() && session->requests.peek(0).request < session->ack_below) drop_oldest(*session);
  Admission admission{Verdict::stale, session->route};
  if (request >= session->ack_below) {
    const std::uint32_t index = lower_bound(session->requests, request);
    if (holds(session->requests, index, request)) {
      admission = admit_known(*session, index);
    } else {
      admission.verdict = insert(*session, request) ? Verdict::fresh : Verdict::no_room;
    }
  }
  return admission;
}

SessionTable::Admission SessionTable::admit_known(Session& session, std::uint32_t index) {
  const SessionRequest& known = session.requests.peek(index);
  switch (known.state) {
    case SessionRequest::State::answered:
      return {Verdict::answered,
              session.route,
              {known.kind, known.trap, known.message_type, {arena_.at(known.payload), known.length}}};
    case SessionRequest::State::lost:
      return {Verdict::lost, session.route};
    case SessionRequest::State::running:
      break;
  }
  SessionRequest& entry = session.requests[index];
  if (entry.epoch != session.epoch) {
    entry.epoch = session.epoch;
    entry.waiters = 0;
  }
  if (entry.waiters != UINT16_MAX) entry.waiters += 1;
  return {Verdict::attached, session.route};
}

/// Records a request that is about to run; false when there is no room.
bool SessionTable::insert(Session& session, std::uint64_t request) {
  Ring<SessionRequest>& requests = session.requests;
  if (requests.size() == requests.capacity()) {
    const std::uint64_t larger = std::max<std::uint64_t>(2 * std::uint64_t{requests.capacity()}, 2);
    if (!has_room(larger * sizeof(SessionRequest), arena_.capacity_bytes() / 4 * 3)) return false;
  }
  SessionRequest entry;
  entry.request = request;
  entry.epoch = session.epoch;
  entry.waiters = 1;
  requests.push_back(entry);
  for (auto at = static_cast<std::uint32_t>(requests.size() - 1); at > 0; --at) {
    if (requests.peek(at - 1).request < request) break;
    requests[at] = requests.peek(at - 1);
    requests[at - 1] = entry;
  }
  return true;
}

/// The session was announced.
void SessionTable::drop_oldest(Session& session) {
  const SessionRequest& oldest = session.requests.peek(0);
  arena_.free(oldest.payload, oldest.length);
  session.requests.pop_front();
}

std::optional<SessionTable::Recipient> SessionTable::answer(std::uint64_t number, std::uint64_t request,
                                                            const Answer& answer) {
  Session* const session = session_of(number);
  if (session == nullptr) return std::nullopt;
  const FinalStep step(arena_);
  const std::uint32_t index = lower_bound(session->requests, request);
  if (!holds(session->requests, index, request)) return std::nullopt;
  if (session->requests.peek(index).state != SessionRequest::State::running) return std::nullopt;
  SessionRequest& entry = session->requests[index];
  entry.state = keep(entry, answer) ? SessionRequest::State::answered : SessionRequest::State::lost;
  return Recipient{session->route, entry.epoch == session->epoch ? entry.waiters : 0U};
}

bool SessionTable::keep(SessionRequest& entry, const Answer& answer) {
  entry.kind = answer.kind;
  entry.trap = answer.trap;
  entry.message_type = answer.message_type;
  if (answer.payload.empty()) return true;
  const auto bytes = static_cast<std::uint32_t>(answer.payload.size());
  if (!has_room(bytes, arena_.capacity_bytes() / 2)) return false;
  entry.payload = arena_.allocate(bytes);
  entry.length = bytes;
  std::byte* const to = arena_.at(entry.payload);
  arena_.before_write(to, bytes);
  std::memcpy(to, answer.payload.data(), bytes);
  return true;
}

/// Whether a block can be had without the image growing beyond `limit_bytes`.
bool SessionTable::has_room(std::uint64_t bytes, std::uint64_t limit_bytes) const {
  const std::uint32_t list = size_class(static_cast<std::uint32_t>(bytes));
  const ArenaHeader& header = std::as_const(arena_).header();
  return !header.free_blocks[list].is_null() || header.high_water_bytes + class_bytes(list) <= limit_bytes;
}

void SessionTable::wait(std::uint64_t session, std::uint64_t request) {
  if (waiting_.size() == waiting_.capacity()) {
    std::erase_if(waiting_, [this](const Waiting& waiting) { return !is_running(waiting); });
  }
  waiting_.push_back({session, request});
  sorted_ = false;
}

std::optional<SessionTable::Waiting> SessionTable::take_waiting() {
  if (!std::exchange(sorted_, true)) std::ranges::sort(waiting_, std::greater{});
  while (!waiting_.empty()) {
    const Waiting next = waiting_.back();
    waiting_.pop_back();
    if (is_running(next)) return next;
  }
  return std::nullopt;
}

bool SessionTable::is_running(const Waiting& waiting) {
  const Session* const session = session_of(waiting.session);
  if (session == nullptr) return false;
  const CurrentArena current(arena_);
  const std::uint32_t index = lower_bound(session->requests, waiting.request);
  return holds(session->requests, index, waiting.request) &&
         session->requests.peek(index).state == SessionRequest::State::running;
}

std::size_t SessionTable::home_of(std::uint64_t number) const {
  return detail::fold_multiply(number, 0x9E3779B97F4A7C15ULL) & (places_.size() - 1);
}

SessionTable::Place* SessionTable::find(std::uint64_t number) {
  for (std::size_t at = home_of(number); places_[at].number != 0; at = (at + 1) & (places_.size() - 1)) {
    if (places_[at].number == number) return &places_[at];
  }
  return nullptr;
}

Session* SessionTable::session_of(std::uint64_t number) {
  if (number == last_.number) return last_.session;
  const Place* const place = find(number);
  if (place == nullptr) return nullptr;
  last_ = *place;
  return place->session;
}

void SessionTable::add_place(const Place& place) {
  if (2 * (size() + 1) > places_.size()) grow_places();
  std::size_t at = home_of(place.number);
  while (places_[at].number != 0) at = (at + 1) & (places_.size() - 1);
  places_[at] = place;
}

/// Closes the gap: moves back each place that the gap parts from its home.
void SessionTable::remove_place(Place* place) {
  const std::size_t mask = places_.size() - 1;
  auto hole = static_cast<std::size_t>(place - places_.data());
  places_[hole] = last_ = {};
  for (std::size_t at = (hole + 1) & mask; places_[at].number != 0; at = (at + 1) & mask) {
    if (((at - home_of(places_[at].number)) & mask) < ((at - hole) & mask)) continue;
    places_[hole] = std::exchange(places_[at], Place{});
    hole = at;
  }
}

void SessionTable::grow_places() {
  std::vector<Place> old(2 * places_.size());
  old.swap(places_);
  for (const Place& place : old) {
    if (place.number == 0) continue;
    std::size_t at = home_of(place.number);
    while (places_[at].number != 0) at = (at + 1) & (places_.size() - 1);
    places_[at] = place;
  }
}

}  // namespace lockstep
