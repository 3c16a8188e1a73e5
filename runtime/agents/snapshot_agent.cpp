// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/snapshot_agent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "journal/snapshots.hpp"

namespace lockstep {
namespace {

/// How soon to look again: with nothing to do, and while something is awaited from another thread.
constexpr std::int64_t idle_ns = 100'000'000;
constexpr std::int64_t busy_ns = 1'000'000;

const SweepFrame& frame_at(std::span<const std::byte> bytes) {
  return *reinterpret_cast<const SweepFrame*>(bytes.data());
}

}  // namespace

SnapshotAgent::SnapshotAgent(Disk& disk, Execution& execution, const CheckpointAgent& checkpoints, Options options)
    : disk_(disk),
      execution_(execution),
      checkpoints_(checkpoints),
      options_(std::move(options)),
      control_(*execution.snapshots()),
      next_at_bytes_(options_.every_bytes - std::min(options_.every_bytes, options_.journaled_bytes)),
      newest_index_(options_.newest_index),
      ended_(execution.executors()) {
  LOCKSTEP_ASSERT(options_.genesis.size() <= snapshot_genesis_bytes, "a genesis record too long for a snapshot");
  metrics_.last_index.set(newest_index_);
  answer_.last_index = newest_index_;
}

int SnapshotAgent::do_work(const Now& now) {
  auto done = work(now);
  if (!done) {
    abandon(done.error().message);
    done = 1;
  }
  deadline_ns_ = now.steady_ns + (stage_ == Stage::idle ? idle_ns : busy_ns);
  return *done;
}

Result<int> SnapshotAgent::work(const Now& now) {
  if (stage_ != Stage::idle && stage_ != Stage::draining && control_.abandoned.load(std::memory_order_relaxed))
    return fail(ErrorCode::full, "more pages changed while it was taken than [snapshots] quota_bytes has room for");
  switch (stage_) {
    case Stage::idle:
      return is_due(now.steady_ns) ? begin(now.steady_ns) : 0;
    case Stage::asked:
    case Stage::taking:
      return take();
    case Stage::waiting:
      return wait();
    case Stage::verifying:
      return verify(now.real_ns);
    case Stage::storing:
      return store(now.steady_ns);
    case Stage::draining:
      return drain(now.steady_ns);
  }
  return 0;
}

bool SnapshotAgent::is_due(std::int64_t now_ns) const {
  if (asked_.load(std::memory_order_relaxed) != answers_) return true;
  return options_.every_bytes != 0 && now_ns >= not_before_ns_ &&
         control_.sealed_bytes.load(std::memory_order_relaxed) >= next_at_bytes_;
}

int SnapshotAgent::begin(std::int64_t now_ns) {
  asked_at_ns_ = now_ns;
  answers_ = asked_.load(std::memory_order_relaxed);
  checkpoint_.reset();
  shard_ = 0;
  shard_begun_ = false;
  std::fill(ended_.begin(), ended_.end(), false);
  control_.abandoned.store(false, std::memory_order_relaxed);
  control_.wanted.store(true, std::memory_order_release);  // pairs with the sequencer's acquire
  stage_ = Stage::asked;
  return 1;
}

Result<int> SnapshotAgent::take() {
  int taken = 0;
  while (taken < frames_per_turn && shard_ < options_.shards) {
    ByteRing& ring = execution_.swept(executor_of(shard_, execution_.executors()));
    const auto frame = ring.peek();
    if (frame.empty()) break;
    const auto released = take_frame(ring, frame);
    if (!released) return std::unexpected(released.error());
    ++taken;
  }
  for (std::uint32_t i = 0; i < execution_.executors(); ++i) execution_.swept(i).flush();
  // At once: the recent checkpoints are few.
  if (stage_ == Stage::taking && !checkpoint_) checkpoint_ = checkpoints_.find(index_);
  if (shard_ == options_.shards) stage_ = Stage::waiting;
  return taken;
}

/// A frame that only says that a shard is over stays for the next one, or for the end.
Result<bool> SnapshotAgent::take_frame(ByteRing& ring, std::span<const std::byte> bytes) {
  const SweepFrame& frame = frame_at(bytes);
  switch (frame.kind) {
    case SweepFrame::Kind::begin:
      if (stage_ == Stage::asked) {
        index_ = frame.key;
        stage_ = Stage::taking;
        auto writer = SnapshotWriter::create(disk_, options_.directory, index_);
        if (!writer) return std::unexpected(writer.error());
        writer_.emplace(std::move(*writer));
      }
      break;
    case SweepFrame::Kind::shard:
      if (std::exchange(shard_begun_, frame.key == shard_)) {
        ++shard_;
        return true;
      }
      writer_->begin_shard(frame.effects);
      break;
    case SweepFrame::Kind::arena:
      writer_->begin_arena(frame.actor_type, frame.key, frame.image_bytes);
      break;
    case SweepFrame::Kind::pages:
      if (auto added = writer_->add_pages(bytes.subspan(sizeof frame)); !added) return std::unexpected(added.error());
      break;
    case SweepFrame::Kind::end:
      shard_begun_ = false;
      ++shard_;
      return true;
  }
  ring.release();
  return true;
}

/// The journal must be durable up to the snapshot, and its root known, before it counts.
Result<int> SnapshotAgent::wait() {
  for (std::uint32_t i = 0; i < execution_.executors(); ++i) {
    ByteRing& ring = execution_.swept(i);
    // One that has no shards begins and ends at once.
    while (!ended_[i] && !ring.peek().empty()) {
      const SweepFrame::Kind kind = frame_at(ring.peek()).kind;
      LOCKSTEP_ASSERT(kind == SweepFrame::Kind::begin || kind == SweepFrame::Kind::end,
                      "a snapshot went on behind its last shard");
      ring.release();
      ended_[i] = kind == SweepFrame::Kind::end;
    }
    ring.flush();
    if (!ended_[i]) return 0;
  }
  if (!checkpoint_) checkpoint_ = checkpoints_.find(index_);
  if (!checkpoint_) {
    const auto recent = checkpoints_.recent();
    if (recent.empty() || recent.back().batch < index_) return 0;
    return fail(ErrorCode::incomplete, "its checkpoint was forgotten before it was written");
  }
  if (execution_.pool().written().read() < index_) return 0;
  SnapshotHeader header;
  header.cluster_id = options_.cluster_id;
  header.seq = checkpoint_->seq;
  header.time_ns = checkpoint_->time_ns;
  header.chain = checkpoint_->chain;
  header.root = checkpoint_->root;
  header.effects = checkpoint_->effects;
  header.genesis_bytes = static_cast<std::uint32_t>(options_.genesis.size());
  std::memcpy(header.genesis, options_.genesis.data(), options_.genesis.size());
  if (auto sealed = writer_->seal(header); !sealed) return std::unexpected(sealed.error());
  stage_ = Stage::verifying;
  return 1;
}

Result<int> SnapshotAgent::verify(std::int64_t real_ns) {
  const auto done = writer_->verify();
  if (!done) return std::unexpected(done.error());
  if (!*done) return 1;
  if (auto published = writer_->publish(); !published) return std::unexpected(published.error());
  metrics_.bytes_total.add(writer_->written_bytes());
  const auto keep_from = first_batch_to_keep(disk_, options_.directory, options_.retention, real_ns);
  if (!keep_from) log(LogLevel::warning, "snapshot", "the journal is not pruned: {}", keep_from.error().message);
  control_.mark = {.index = index_,
                   .term = 0,
                   .chain = checkpoint_->chain,
                   .digest = writer_->digest(),
                   .previous_index = newest_index_ == index_ ? 0 : newest_index_};
  control_.keep_from_index = keep_from.value_or(0);
  writer_.reset();
  control_.published.publish(index_);
  stage_ = Stage::storing;
  return 1;
}

int SnapshotAgent::store(std::int64_t now_ns) {
  if (control_.stored.read() != index_) return 0;
  // What is older than the previous one is only kept as long as it was asked for.
  const auto removed = remove_older_snapshots(disk_, options_.directory, options_.keep, newest_index_);
  if (!removed) log(LogLevel::warning, "snapshot", "older ones stay: {}", removed.error().message);
  newest_index_ = index_;
  next_at_bytes_ = control_.sealed_bytes.load(std::memory_order_relaxed) + options_.every_bytes;
  metrics_.taken_total.add();
  metrics_.last_index.set(index_);
  metrics_.last_duration_ns.set(static_cast<std::uint64_t>(now_ns - asked_at_ns_));
  log(LogLevel::info, "snapshot", "took one of batch {}, root {}, in {} ms", index_, checkpoint_->root.short_hex(),
      (now_ns - asked_at_ns_) / 1'000'000);
  finish({});
  return 1;
}

void SnapshotAgent::abandon(const std::string& why) {
  why_ = why;
  metrics_.abandoned_total.add();
  log(LogLevel::warning, "snapshot", "the one of batch {} is abandoned, the next attempt is in {} s: {}", index_,
      options_.retry_ns / 1'000'000'000, why);
  writer_.reset();
  control_.abandoned.store(true, std::memory_order_relaxed);
  stage_ = Stage::draining;
}

/// Until each executor has said that it is through, the rings are its.
int SnapshotAgent::drain(std::int64_t now_ns) {
  int drained = 0;
  for (std::uint32_t i = 0; i < execution_.executors(); ++i) {
    ByteRing& ring = execution_.swept(i);
    while (!ended_[i] && !ring.peek().empty()) {
      ended_[i] = frame_at(ring.peek()).kind == SweepFrame::Kind::end;
      ring.release();
      ++drained;
    }
    ring.flush();
  }
  if (!std::ranges::all_of(ended_, [](bool ended) { return ended; })) return drained;
  not_before_ns_ = now_ns + options_.retry_ns;
  finish(why_);
  return drained + 1;
}

void SnapshotAgent::finish(const std::string& failure) {
  control_.abandoned.store(false, std::memory_order_relaxed);
  stage_ = Stage::idle;
  const std::lock_guard lock(mutex_);
  answer_ = {answers_, newest_index_, failure};
}

SnapshotAgent::Answer SnapshotAgent::answer() const {
  const std::lock_guard lock(mutex_);
  return answer_;
}

}  // namespace lockstep
