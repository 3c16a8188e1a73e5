// SPDX-License-Identifier: Apache-2.0
#pragma once

/// SessionTable: one shard's part of every durable session: who a session's answers go to, how far back its client may
/// still ask, and the answers of the requests that came to this shard. By it a request runs once, however often it is
/// sent, and each retry gets the first answer.
///
///     open ──▶ admit ─┬─ fresh ──▶ the handler runs ──▶ answer (kept)           close, resume
///                     ├─ answered: what was kept, again       acknowledged answers are dropped by the next admit
///                     ├─ attached: it runs already, its answer will come
///                     └─ refused: below what was acknowledged, unknown session, no room, answer not kept
///
/// A request is recorded at its first sight, before it runs; the first answer is the one that counts. The table never
/// expires anything by itself: sessions are opened and closed by records, in every shard alike.
///
/// All of it lies in an arena of the shard's own, by the SDK's containers, so it is hashed, snapshotted and the same on
/// every replica; each call is a step of its own, never undone. The arena's capacity (genesis, shard_session_bytes)
/// bounds it: answers may fill its first half, records of requests three quarters, and what is left suffices for
/// max_sessions. An answer without room is remembered as given and not kept. Beside the arena there are only two
/// indexes that can be made from it: sessions by number, and requests that wait. Called by the executor that owns the
/// shard, between handlers.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/arena.hpp"
#include "lockstep/effects.hpp"
#include "lockstep/key.hpp"
#include "lockstep/pool.hpp"
#include "lockstep/ring.hpp"

namespace lockstep {

/// A request of a session in this shard.
struct SessionRequest {
  enum class State : std::uint8_t {
    running,   ///< accepted; no answer yet
    answered,  ///< its answer is kept
    lost,      ///< answered, but there was no room to keep it
  };
  std::uint64_t request = 0;
  Link payload = {};  ///< of a kept answer; null when it has none
  std::uint32_t length = 0;
  std::uint32_t message_type = 0;
  std::uint32_t epoch = 0;    ///< of the session, when `waiters` was last counted
  std::uint16_t waiters = 0;  ///< stamped copies of the request that the connection awaits an answer for
  TrapKind trap = TrapKind::none;
  EffectKind kind = EffectKind::nothing;
  State state = State::running;
  std::uint16_t zero = 0;
};
static_assert(sizeof(SessionRequest) == 32);

struct Session {
  std::uint64_t number = 0;
  std::uint64_t secret = 0;
  std::uint64_t route = 0;            ///< the connection that gets its answers, as frames.hpp numbers them
  std::int64_t last_activity_ns = 0;  ///< stamp of the last record of it that this shard saw
  std::uint64_t ack_below = 0;        ///< the client wants no answer to lower numbers any more
  std::uint32_t epoch = 0;            ///< how often it was resumed
  std::uint32_t zero = 0;
  Ring<SessionRequest> requests;  ///< ascending; none below ack_below
};
static_assert(sizeof(Session) == 64);

/// What becomes of a request.
enum class Verdict : std::uint8_t {
  fresh,       ///< seen for the first time and recorded: it is to run, once
  answered,    ///< it ran before; here is its answer
  attached,    ///< it was accepted before and is not answered yet
  lost,        ///< it ran before, its answer could not be kept
  stale,       ///< the client has said that it wants no answer to it any more; it does not run
  no_session,  ///< it does not run
  no_room,     ///< there is no memory to remember it by; it does not run
};

class SessionTable {
 public:
  /// Memory that one session may take of the arena, beside its requests.
  static constexpr std::uint64_t bytes_per_session = 1024;

  /// `arena` is empty, or holds a table's image: then it goes on from that.
  explicit SessionTable(Arena& arena);
  SessionTable(const SessionTable&) = delete;
  SessionTable& operator=(const SessionTable&) = delete;

  /// How many sessions there may be at a time.
  [[nodiscard]] std::uint64_t max_sessions() const { return arena_.capacity_bytes() / bytes_per_session; }
  [[nodiscard]] std::size_t size() const { return sessions().size(); }

  /// False when there are max_sessions() already.
  [[nodiscard]] bool open(std::uint64_t number, std::uint64_t secret, std::uint64_t route, std::int64_t stamp_ns);
  /// Sends the session's answers to `route` from here on; the route before, or nothing when there is no such session or
  /// its secret is another.
  std::optional<std::uint64_t> resume(std::uint64_t number, std::uint64_t secret, std::uint64_t route,
                                      std::int64_t stamp_ns);
  /// Where its answers go; nothing when there is no such session.
  [[nodiscard]] std::optional<std::uint64_t> route_of(std::uint64_t number);
  /// Forgets it with all its answers; its route, or nothing when there is no such session.
  std::optional<std::uint64_t> close(std::uint64_t number);

  /// What an answer is made of; `payload` is valid until the table is next changed.
  struct Answer {
    EffectKind kind = EffectKind::nothing;
    TrapKind trap = TrapKind::none;
    std::uint32_t message_type = 0;
    std::span<const std::byte> payload = {};
  };
  struct Admission {
    Verdict verdict = Verdict::fresh;
    std::uint64_t route = 0;  ///< who is told; 0 when there is no session
    Answer answer = {};       ///< if answered
  };
  /// A request on its way to one of this shard's actors; `ack_distance` as in its record.
  [[nodiscard]] Admission admit(std::uint64_t session, std::uint64_t request, std::uint32_t ack_distance,
                                std::int64_t stamp_ns);

  /// Who is to hear an answer, and how many stamped copies of the request it answers (0: the client has not sent it on
  /// that connection).
  struct Recipient {
    std::uint64_t route = 0;
    std::uint32_t answers = 0;
  };
  /// Keeps the answer of a request that runs; nothing when it has one already, or nobody wants it any more.
  [[nodiscard]] std::optional<Recipient> answer(std::uint64_t session, std::uint64_t request, const Answer& answer);

  /// A fresh request whose handler gave no answer, so that it may come from elsewhere.
  void wait(std::uint64_t session, std::uint64_t request);
  /// Whether requests wait: some of them may have been answered since.
  [[nodiscard]] bool has_waiting() const { return !waiting_.empty(); }
  struct Waiting {
    std::uint64_t session = 0;
    std::uint64_t request = 0;
    friend auto operator<=>(const Waiting&, const Waiting&) = default;
  };
  /// The least that still waits; it is no longer listed. To be called until there is none.
  [[nodiscard]] std::optional<Waiting> take_waiting();

  /// Calls visit(number, last_activity_ns) for each session.
  template <class Visit>
  void for_each(Visit&& visit) const {
    const CurrentArena current(arena_);
    sessions().for_each(
        [&](Handle<Session>, const Session& session) { visit(session.number, session.last_activity_ns); });
  }

 private:
  using Sessions = Pool<Session>;
  struct Place {
    std::uint64_t number = 0;  ///< 0: free
    Handle<Session> handle;
    Session* session = nullptr;
  };

  [[nodiscard]] const Sessions& sessions() const;
  [[nodiscard]] Sessions& writable_sessions();
  [[nodiscard]] Place* find(std::uint64_t number);
  [[nodiscard]] Session* session_of(std::uint64_t number);
  [[nodiscard]] bool is_running(const Waiting& waiting);
  [[nodiscard]] Admission admit_known(Session& session, std::uint32_t index);
  [[nodiscard]] bool insert(Session& session, std::uint64_t request);
  void drop_oldest(Session& session);
  [[nodiscard]] bool keep(SessionRequest& entry, const Answer& answer);
  [[nodiscard]] bool has_room(std::uint64_t bytes, std::uint64_t limit_bytes) const;
  void add_place(const Place& place);
  void remove_place(Place* place);
  void grow_places();
  [[nodiscard]] std::size_t home_of(std::uint64_t number) const;

  Arena& arena_;
  std::vector<Place> places_;  // open addressing, a power of two
  Place last_;                 // whom was asked for last: a request is admitted, then answered
  std::vector<Waiting> waiting_;
  bool sorted_ = false;
};

}  // namespace lockstep
