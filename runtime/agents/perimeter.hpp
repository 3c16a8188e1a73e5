// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Perimeter: the node's side towards its clients. It takes their bytes from a Network, lets codecs frame and check
/// them, has them stamped, and brings the answers of the executors back to the connection they belong to.
///
///     Network ──received──▶ codec ──▶ Intake ──▶ sequencer           executors ──ReplyFrame──▶ codec ──▶ Outbox ──▶
///     Network
///
/// * Back-pressure is not reading: when the sequencer or an executor has no room, a connection is paused where it is
///   and goes on later, in the order they were paused. Nothing is dropped after its stamp.
/// * Answers are always drained, whatever the state of the input, so executors never wait for clients.
/// * Every limit is answered: too many connections, too large frames, too many unanswered requests, clients that do not
///   read, or that begin a frame and do not end it. A client between two frames may be silent for ever.
/// * Native clients have durable sessions, which records open and end: hello and goodbye are answered when theirs has
///   been executed. RESP connections have ephemeral ones (frames.hpp).
///
/// One thread calls do_work(); listen(), add_answers() come before. request_stop(), stopped() and metrics() are for any
/// thread.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "runtime/agents/agent.hpp"
#include "runtime/agents/codec.hpp"
#include "runtime/agents/connection.hpp"
#include "runtime/agents/frame_deadlines.hpp"
#include "runtime/agents/intake.hpp"
#include "runtime/agents/native_codec.hpp"
#include "runtime/agents/outbox.hpp"
#include "runtime/agents/resp_codec.hpp"
#include "runtime/io/network.hpp"
#include "runtime/ring/byte_ring.hpp"

namespace lockstep {

class Perimeter final : public Agent {
 public:
  struct Options {
    std::uint32_t max_connections = 10'000;
    std::size_t max_output_bytes = 16U << 20;        ///< waiting for one client; beyond it is cut off
    std::size_t max_payload_bytes = 64U << 10;       ///< of one message
    std::int64_t linger_ns = 2'000'000'000;          ///< how long a last word may wait for a client that does not read
    std::int64_t frame_timeout_ns = 30'000'000'000;  ///< for the rest of a frame that has begun, and for a hello
    CodecLimits codec;
    std::uint64_t incarnation = 1;  ///< of the node: how often it has started; no two sessions of a history are equal
    std::uint8_t index = 0;         ///< of this perimeter, in its sessions' numbers
    std::uint64_t schema_id = 0;
    NativeCodec::DrawSecret draw_secret = nullptr;  ///< null: the kernel's random numbers
    std::optional<resp::Application> resp;          ///< how RESP commands map to messages; needed to listen for them
  };

  Perimeter(io::Network& network, const Application& application, Intake::Routes routes, const Options& options);
  Perimeter(const Perimeter&) = delete;
  Perimeter& operator=(const Perimeter&) = delete;

  /// Starts to accept clients that speak `codec`; the returned endpoint has the port that was bound.
  [[nodiscard]] Result<io::Endpoint> listen(const io::Endpoint& at, CodecKind codec);
  /// Answers of one executor: ReplyFrames.
  void add_answers(ByteRing& ring) { answers_.push_back(&ring); }

  /// Stops accepting and reading, waits for the answers of what is in flight until `deadline_ns` (steady), says goodbye
  /// and closes.
  void request_stop(std::int64_t deadline_ns);
  /// No connection is left after request_stop().
  [[nodiscard]] bool stopped() const { return stopped_.load(std::memory_order_acquire); }

  [[nodiscard]] const PerimeterMetrics& metrics() const { return metrics_; }

  [[nodiscard]] std::string_view name() const override { return "perimeter"; }
  int do_work(const Now& now) override;
  [[nodiscard]] std::int64_t deadline_ns() const override { return deadline_ns_; }

 private:
  int drain_answers();
  void deliver(std::span<const std::byte> frame);
  int retry_held();
  int take_events();
  void on_accepted(const io::NetworkEvent& event);
  void on_received(Connection& connection, std::span<const std::byte> bytes);
  void on_closed(Connection& connection);
  void feed(Connection& connection, std::span<const std::byte> bytes);
  void keep_rest(Connection& connection, std::span<const std::byte> rest);
  void hold(Connection& connection, Hold hold);
  void end(Connection& connection);
  void close(Connection& connection);
  void flush_output();
  void close_ended();
  void note_what_is_owed(Connection& connection, bool anew);
  void end_overdue();
  void step_stop();

  io::Network& network_;
  Options options_;
  PerimeterMetrics metrics_;
  ConnectionTable connections_;
  Intake intake_;
  Outbox outbox_;
  NativeCodec native_;
  std::optional<RespCodec> resp_;
  std::vector<CodecKind> listeners_;
  std::vector<ByteRing*> answers_;

  Now now_;                           ///< of the turn
  std::vector<Connection*> held_;     ///< Hold::room, in the order they were paused
  std::vector<Connection*> ended_;    ///< close_when_flushed
  FrameDeadlines frames_;             ///< whose rest is waited for
  std::vector<Connection*> cut_off_;  ///< of the turn
  std::uint64_t in_flight_ = 0;       ///< over all connections
  std::int64_t deadline_ns_ = INT64_MAX;

  enum class Stop : std::uint8_t { no, draining, closing };
  Stop stop_ = Stop::no;
  std::atomic<std::int64_t> stop_by_ns_{INT64_MAX};  ///< set by request_stop, read by do_work; carries only itself
  std::atomic<bool> stopped_{false};
};

}  // namespace lockstep
