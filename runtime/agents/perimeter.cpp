// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/perimeter.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"

namespace lockstep {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// getrandom(2) gives 8 bytes whole and, once the kernel is up, at once.
std::uint64_t random_secret() {
  std::uint64_t secret = 0;
  const ssize_t drawn = ::getrandom(&secret, sizeof secret, 0);
  LOCKSTEP_ASSERT(drawn == sizeof secret, "the kernel has no random numbers to give");
  return secret;
}

}  // namespace

Perimeter::Perimeter(io::Network& network, const Application& application, Intake::Routes routes,
                     const Options& options)
    : network_(network),
      options_(options),
      connections_(options.max_connections, options.incarnation, options.index),
      intake_(application, std::move(routes), options.max_payload_bytes),
      outbox_(network, options.max_output_bytes),
      native_(intake_, outbox_, metrics_, options.codec, options.schema_id,
              options.draw_secret != nullptr ? options.draw_secret : random_secret),
      frames_(options.frame_timeout_ns) {
  if (options.resp) resp_.emplace(intake_, outbox_, metrics_, options.codec, *options.resp);
}

Result<io::Endpoint> Perimeter::listen(const io::Endpoint& at, CodecKind codec) {
  if (codec == CodecKind::resp && !resp_)
    return fail(ErrorCode::usage, "listening for RESP on " + at.text() + ": this program maps no RESP commands");
  Result<io::Endpoint> bound = network_.listen(at);
  if (bound) listeners_.push_back(codec);
  return bound;
}

void Perimeter::request_stop(std::int64_t deadline_ns) {
  stop_by_ns_.store(deadline_ns, std::memory_order_relaxed);
}

int Perimeter::do_work(const Now& now) {
  now_ = now;
  int done = drain_answers();
  done += retry_held();
  done += take_events();
  intake_.flush();
  end_overdue();
  step_stop();
  flush_output();
  close_ended();
  metrics_.connections.set(connections_.count());
  metrics_.sent_bytes_total.set(outbox_.bytes_sent());
  return done;
}

int Perimeter::drain_answers() {
  int done = 0;
  for (ByteRing* const ring : answers_) {
    for (std::span<const std::byte> frame = ring->peek(); !frame.empty(); frame = ring->peek()) {
      deliver(frame);
      ring->release();
      ++done;
    }
    ring->flush();
  }
  return done;
}

void Perimeter::deliver(std::span<const std::byte> frame) {
  ReplyFrame reply;
  std::memcpy(&reply, frame.data(), sizeof reply);
  Connection* const connection = connections_.find_session(reply.route);
  if (connection == nullptr || connection->closing) {
    metrics_.orphans_total.add();
    return;
  }
  metrics_.answers_total.add();
  bool ends = false;
  std::uint32_t answered = reply.answers;
  if (connection->codec == CodecKind::native)
    ends = native_.answer(*connection, reply, frame.subspan(sizeof reply, reply.length));
  else if (!resp_->answer(*connection, reply, frame.data() + sizeof reply))
    answered = 0;
  // A session that moved here may be answered what its last connection sent.
  answered = std::min(answered, connection->in_flight);
  connection->in_flight -= answered;
  in_flight_ -= answered;
  const std::uint32_t limit =
      connection->codec == CodecKind::native ? options_.codec.native_in_flight() : options_.codec.max_in_flight;
  if (connection->hold == Hold::answers && connection->in_flight <= limit / 2) hold(*connection, Hold::room);
  if (ends || (connection->close_when_idle && connection->in_flight == 0)) end(*connection);
}

int Perimeter::retry_held() {
  std::size_t tried = 0;
  while (tried != held_.size()) {
    Connection& connection = *held_[tried];
    feed(connection, bytes_of(connection.input));
    if (connection.hold == Hold::room) break;  // first come, first served: nobody overtakes it
    ++tried;
  }
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(tried));
  return static_cast<int>(tried);
}

int Perimeter::take_events() {
  const std::span<const io::NetworkEvent> events = network_.poll();
  for (const io::NetworkEvent& event : events) {
    if (event.kind == io::NetworkEventKind::accepted) {
      on_accepted(event);
      continue;
    }
    Connection* const connection = connections_.find(event.connection);
    if (connection == nullptr) continue;  // one beyond the limit, closed as it came
    switch (event.kind) {
      case io::NetworkEventKind::received:
        on_received(*connection, event.data);
        break;
      case io::NetworkEventKind::sent:
        outbox_.sent(*connection);
        break;
      case io::NetworkEventKind::closed:
        on_closed(*connection);
        break;
      case io::NetworkEventKind::accepted:
        break;
    }
  }
  return static_cast<int>(events.size());
}

void Perimeter::on_accepted(const io::NetworkEvent& event) {
  Connection* const connection = stop_ == Stop::no ? connections_.open(event.connection) : nullptr;
  if (connection == nullptr) {
    metrics_.connections_refused_total.add();
    network_.close(event.connection);
    return;
  }
  connection->codec = listeners_[event.listener];
  metrics_.connections_total.add();
  note_what_is_owed(*connection, true);
}

void Perimeter::on_received(Connection& connection, std::span<const std::byte> bytes) {
  metrics_.received_bytes_total.add(bytes.size());
  if (connection.hold == Hold::ended || connection.closing) return;
  if (connection.hold == Hold::none && connection.input.empty() && held_.empty()) {
    feed(connection, bytes);
    return;
  }
  if (connection.input.empty()) connection.input = outbox_.take_buffer();
  connection.input.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (connection.hold != Hold::none) return;
  if (held_.empty())
    feed(connection, bytes_of(connection.input));
  else
    hold(connection, Hold::room);  // behind those that came before it
}

void Perimeter::feed(Connection& connection, std::span<const std::byte> bytes) {
  const std::uint32_t in_flight_before = connection.in_flight;
  const Consumed consumed = connection.codec == CodecKind::native ? native_.consume(connection, bytes, now_.real_ns)
                                                                  : resp_->consume(connection, bytes, now_);
  in_flight_ += connection.in_flight - in_flight_before;
  keep_rest(connection, bytes.subspan(consumed.bytes));
  switch (consumed.then) {
    case Consumed::Then::more:
      hold(connection, Hold::none);
      break;
    case Consumed::Then::wait_room:
      hold(connection, Hold::room);
      break;
    case Consumed::Then::wait_answers:
      hold(connection, Hold::answers);
      break;
    case Consumed::Then::drain:
      hold(connection, Hold::ended);
      connection.close_when_idle = true;
      if (connection.in_flight == 0) end(connection);
      break;
    case Consumed::Then::close:
      end(connection);
      break;
  }
  note_what_is_owed(connection, consumed.bytes != 0);
}

/// `anew`: it is not what was owed before. Who is held back owes nothing: the rest may lie unread.
void Perimeter::note_what_is_owed(Connection& connection, bool anew) {
  const bool unfinished = !connection.input.empty() || (connection.codec == CodecKind::native && !connection.greeted);
  if (connection.hold != Hold::none || !unfinished)
    frames_.stop(connection);
  else if (anew || connection.frame_by_ns == 0)
    frames_.start(connection, now_.steady_ns);
}

/// Each would hold one of the connections there are for ever.
void Perimeter::end_overdue() {
  while (Connection* const connection = frames_.overdue(now_.steady_ns)) {
    metrics_.overdue_total.add();
    end(*connection);
  }
}

void Perimeter::keep_rest(Connection& connection, std::span<const std::byte> rest) {
  if (rest.empty()) {
    if (!connection.input.empty()) outbox_.give_back(connection.input);
    return;
  }
  if (connection.input.empty()) {
    connection.input = outbox_.take_buffer();
    connection.input.append(reinterpret_cast<const char*>(rest.data()), rest.size());
  } else {
    connection.input.erase(0, connection.input.size() - rest.size());
  }
}

/// Keeps the network's reading and the list of those that wait for room in step with a connection's state.
void Perimeter::hold(Connection& connection, Hold hold) {
  const Hold before = std::exchange(connection.hold, hold);
  if (before == hold) return;
  if (before == Hold::none) {
    network_.pause(connection.id);
    if (hold != Hold::ended) metrics_.holds_total.add();
  }
  if (hold == Hold::none) network_.resume(connection.id);
  if (hold != Hold::none) frames_.stop(connection);
  if (hold == Hold::room) held_.push_back(&connection);
}

/// Nothing more is read from it; it is closed when what was written has been sent.
void Perimeter::end(Connection& connection) {
  hold(connection, Hold::ended);
  if (connection.close_when_flushed) return;
  connection.close_when_flushed = true;
  connection.close_by_ns = now_.steady_ns + options_.linger_ns;
  ended_.push_back(&connection);
}

void Perimeter::close(Connection& connection) {
  if (std::exchange(connection.closing, true)) return;
  frames_.stop(connection);
  in_flight_ -= std::exchange(connection.in_flight, 0U);
  network_.close(connection.id);
}

void Perimeter::on_closed(Connection& connection) {
  in_flight_ -= connection.in_flight;
  if (connection.hold == Hold::room) std::erase(held_, &connection);
  if (connection.close_when_flushed) std::erase(ended_, &connection);
  frames_.stop(connection);
  outbox_.forget(connection);
  connections_.release(connection);
}

void Perimeter::flush_output() {
  outbox_.flush(cut_off_);
  for (Connection* const connection : cut_off_) {
    metrics_.cut_off_total.add();
    close(*connection);
  }
  cut_off_.clear();
}

void Perimeter::close_ended() {
  for (Connection* const connection : ended_)
    if (connection->unsent_bytes() == 0 || connection->close_by_ns <= now_.steady_ns) close(*connection);
  std::erase_if(ended_, [](const Connection* connection) { return connection->closing; });
  deadline_ns_ = stop_ == Stop::draining ? stop_by_ns_.load(std::memory_order_relaxed) : INT64_MAX;
  deadline_ns_ = std::min(deadline_ns_, frames_.next_ns());
  for (const Connection* const connection : ended_) deadline_ns_ = std::min(deadline_ns_, connection->close_by_ns);
}

void Perimeter::step_stop() {
  const std::int64_t stop_by_ns = stop_by_ns_.load(std::memory_order_relaxed);
  if (stop_by_ns == INT64_MAX || stopped()) return;
  if (stop_ == Stop::no) {
    stop_ = Stop::draining;
    network_.stop_listening();
    for (Connection& connection : connections_.all())
      if (connection.id != io::ConnectionId::none && !connection.closing) hold(connection, Hold::ended);
    held_.clear();
  }
  if (stop_ == Stop::draining && (in_flight_ == 0 || now_.steady_ns >= stop_by_ns)) {
    stop_ = Stop::closing;
    metrics_.unanswered_total.add(in_flight_);
    for (Connection& connection : connections_.all()) {
      if (connection.id == io::ConnectionId::none || connection.closing) continue;
      if (!connection.close_when_flushed && connection.codec == CodecKind::native) native_.goodbye(connection);
      end(connection);
    }
  }
  if (stop_ == Stop::closing && connections_.count() == 0) stopped_.store(true, std::memory_order_release);
}

}  // namespace lockstep
