// SPDX-License-Identifier: Apache-2.0
#pragma once

/// SessionDirectory: which durable sessions there are and when each was last heard of, as the sequencer stamped it: by
/// this it closes those that have been silent for too long. It is soft: derived from what is stamped, made anew from
/// the shards' tables when a node starts, and never part of a history; only the record that closes a session is.
///
/// After a start every session gets its whole time again, since a client cannot have asked a node that was down.
/// One thread, the sequencer's.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep {

class SessionDirectory {
 public:
  /// `expiry_ns` 0: sessions never expire, and none are remembered.
  explicit SessionDirectory(std::int64_t expiry_ns);

  /// A record of this session was stamped; it is added when it is not known.
  void touch(std::uint64_t session, std::int64_t stamp_ns) {
    if (session == last_session_) {
      places_[last_place_].last_activity_ns = stamp_ns;
      return;
    }
    if (expiry_ns_ != 0) touch_slowly(session, stamp_ns);
  }
  void remove(std::uint64_t session);

  /// No session that is known now expires before start_ns + expiry.
  void start(std::int64_t start_ns) { start_ns_ = start_ns; }

  struct Silent {
    std::uint64_t session = 0;
    std::int64_t last_activity_ns = 0;
  };
  /// One that has been silent for too long at `now_ns`, the longest first; it stays until it is removed.
  [[nodiscard]] std::optional<Silent> find_silent(std::int64_t now_ns);
  /// Not later than the next expiry; INT64_MAX when there is no session. Cheap.
  [[nodiscard]] std::int64_t next_expiry_ns() const { return queue_.empty() ? INT64_MAX : queue_.front().due_ns; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Place {
    std::uint64_t session = 0;  ///< 0: free
    std::int64_t last_activity_ns = 0;
  };
  /// A session is queued once; its due time is looked at again when it comes up.
  struct Due {
    std::int64_t due_ns = 0;
    std::uint64_t session = 0;
    friend auto operator<=>(const Due&, const Due&) = default;
  };

  void touch_slowly(std::uint64_t session, std::int64_t stamp_ns);
  [[nodiscard]] std::size_t find(std::uint64_t session) const;
  [[nodiscard]] std::size_t home_of(std::uint64_t session) const;
  [[nodiscard]] std::int64_t due_ns(std::int64_t last_activity_ns) const;
  void push(const Due& due);
  void pop();
  void grow();

  std::int64_t expiry_ns_;
  std::int64_t start_ns_ = INT64_MIN;
  std::vector<Place> places_;  // open addressing, a power of two
  std::vector<Due> queue_;     // a heap, the earliest first
  std::size_t size_ = 0;
  std::uint64_t last_session_ = UINT64_MAX;  // whom places_[last_place_] is of
  std::size_t last_place_ = 0;
};

}  // namespace lockstep
