// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Executor: runs committed batches on its share of the shards, in rounds (docs/determinism.md, "Order"),
/// as a state machine that never blocks: step() does what it can and is called again.
///
///     carried mail ─▶ due timers ─▶ records ─▶ close round ─▶ meet ─┬─▶ mail of the next round ─▶ close round …
///                                     round 0                       └─▶ carry what is left, or else settle what nobody
///                                                                       answered ─▶ checkpoint ─▶ done
///
/// To close a round it sends every other executor a marker that says whether it sent anything; to meet is to have all
/// markers. All draw the same conclusion from the same flags, so none enters the next round, or batch, before the
/// others have sent all they had for this one. An application that sends nothing never meets.
///
/// A handler's effects are delivered before the next handler runs. When a ring is full, the executor takes in what has
/// come on its inbound rings, so that two that send to each other both get on, and returns.
///
/// The result, state and effects, does not depend on how many executors there are. One thread at a time; its rings'
/// other ends may be on others.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "journal/batch.hpp"
#include "lockstep/application.hpp"
#include "runtime/agents/actor_host.hpp"
#include "runtime/agents/breadcrumb.hpp"
#include "runtime/agents/checkpoint.hpp"
#include "runtime/agents/genesis.hpp"
#include "runtime/agents/mail.hpp"
#include "runtime/agents/sequencer.hpp"
#include "runtime/agents/session_desk.hpp"
#include "runtime/agents/shard_sweep.hpp"
#include "runtime/ring/byte_ring.hpp"

namespace lockstep {

class Executor {
 public:
  /// What is not given is not used: a replay has no replies, a test no breadcrumb. All must outlive the executor.
  struct Options {
    const Application* application = nullptr;
    Genesis genesis = {};
    std::uint32_t index = 0;
    std::uint32_t executors = 1;
    MailRings* mail = nullptr;            ///< needed if there are several executors and the application sends
    std::vector<ByteRing*> replies = {};  ///< ReplyFrames, one ring a perimeter
    std::vector<ByteRing*> queries = {};  ///< QueryFrames, one ring a perimeter
    CheckpointBoard* board = nullptr;
    NextDue* due = nullptr;
    ShardSweep* sweep = nullptr;            ///< gives snapshots away
    Breadcrumb* breadcrumb = nullptr;       ///< the seq in execution is left here
    std::vector<std::uint64_t> skips = {};  ///< seqs to pass over, ascending
  };

  explicit Executor(const Options& options);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Works on `batch`, the same one until this returns true: the batch is then done. Batches come in order. The batch
  /// must stay readable until then. `take_snapshot` at a checkpoint only: of the state at its end.
  [[nodiscard]] bool step(const BatchView& batch, bool take_snapshot = false);

  /// Of a new executor: takes over what a snapshot holds of shard `number`, then, after all shards, where it was taken.
  [[nodiscard]] Result<void> restore_arena(std::uint32_t number, std::uint32_t actor_type, std::uint64_t key,
                                           std::uint64_t image_bytes, const ShardMemory::Fill& fill) {
    return host_.restore_arena(number, actor_type, key, image_bytes, fill);
  }
  void restore_effects(std::uint32_t number, const Digest& effects) { host_.shard(number).effects = effects; }
  void resume(const HistoryPosition& position);

  /// Where Context::log() goes from the next batch on; null, as at first: nowhere. Between batches.
  void log_to(LogSink* sink) { host_.log_to(sink); }

  /// Answers queries that have come, between batches; returns how many. Does nothing while a batch is under way.
  int answer_queries();

  /// Gives away some of a snapshot under way, between batches; returns how much. Does nothing while a batch is under
  /// way.
  int sweep() { return phase_ == Phase::idle && options_.sweep != nullptr ? options_.sweep->sweep() : 0; }

  /// Between batches: writes the digests of this executor's shards into their places among all shards.
  void digest_shards(std::span<ShardDigests> shards);

  /// Calls visit(number, last_activity_ns) for each session in each of this executor's shards. Between batches.
  template <class Visit>
  void for_each_session(Visit&& visit) {
    for (const std::uint32_t number : host_.owned()) host_.shard(number).sessions().for_each(visit);
  }

  [[nodiscard]] std::uint64_t handlers_run() const { return handlers_run_; }
  /// Grows whenever step() got on, be it by one effect: a step that returns false and left this as it was waits for
  /// another executor or for whoever empties a ring.
  [[nodiscard]] std::uint64_t progress() const { return progress_; }
  [[nodiscard]] std::uint64_t traps() const { return host_.traps(); }

 private:
  enum class Phase : std::uint8_t {
    idle,
    carried,
    timers,
    records,
    mail,
    close_round,
    meet,
    carry,
    settle,
    checkpoint
  };

  /// What one peer has sent of its rounds.
  struct Peer {
    std::uint32_t index = 0;
    ByteRing* inbound = nullptr;
    ByteRing* outbound = nullptr;
    std::uint64_t rounds_closed = 0;
    bool sent[2] = {};  ///< by round mod 2: the flag of its marker
  };

  void begin(const BatchView& batch);
  [[nodiscard]] bool advance();
  void run_carried();
  void run_timers();
  [[nodiscard]] bool run_records();
  void run_request(const RecordHeader& header, std::span<const std::byte> payload);
  [[nodiscard]] bool run_mail();
  [[nodiscard]] bool close_round();
  [[nodiscard]] bool meet();
  void carry();
  void settle();
  [[nodiscard]] bool checkpoint();
  void finish();
  void publish_due();

  void deliver(const Delivery& delivery, const Home& home);
  [[nodiscard]] bool is_skipped(std::uint64_t seq) const;
  void deliver_frame(std::span<const std::byte> frame, std::int64_t stamp_ns);
  void report_nothing(std::uint64_t route, std::uint64_t request);
  [[nodiscard]] bool flush();
  [[nodiscard]] bool put(const EffectHeader& effect);
  [[nodiscard]] bool put_session_answer(const EffectHeader& effect);
  [[nodiscard]] bool put_frame(const SessionDesk::Recipient& to, const EffectHeader& effect);
  [[nodiscard]] bool put_mail(const EffectHeader& effect);
  void publish();
  void take_inbound();

  Options options_;
  ActorHost host_;
  SessionDesk desk_;
  bool meets_;
  std::vector<Peer> peers_;

  // The batch under way.
  Phase phase_ = Phase::idle;
  BatchHeader batch_;
  bool take_snapshot_ = false;
  RecordCursor records_{{}};
  std::uint32_t batch_round_ = 0;
  std::vector<std::uint32_t> carrying_;  // shards with carried mail, from the last one on
  std::span<const std::byte> frames_;    // of the shard whose carried mail is being handled
  std::vector<TimerIndex::Entry> due_;
  std::size_t next_due_ = 0;

  // Rounds. Mail sent in round n waits in mail_[n mod 2] and is handled in round n + 1.
  std::uint64_t round_ = 0;
  Mailbox mail_[2] = {Mailbox(options_.genesis), Mailbox(options_.genesis)};
  std::size_t next_mail_ = 0;
  bool sent_ = false;
  std::size_t next_marker_ = 0;
  std::size_t next_carry_ = 0;
  std::vector<std::uint32_t> carried_;  // shards that carry mail into the next batch

  EffectHeader nothing_;
  std::span<const std::byte> outbox_;  // effects of the last handler that are not delivered yet
  std::uint32_t outbox_shard_ = 0;     // where they were made
  std::uint32_t unpublished_ = 0;
  std::int64_t executed_ns_ = 0;
  std::uint64_t executed_seq_ = 0;
  std::uint64_t handlers_run_ = 0;
  std::uint64_t progress_ = 0;
};

}  // namespace lockstep
