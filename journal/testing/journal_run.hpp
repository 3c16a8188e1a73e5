// SPDX-License-Identifier: Apache-2.0
#pragma once

/// JournalRun: one process' life on a journal, for tests: recover, append seeded batches, remember what was appended
/// and what was reported durable.

#include <deque>
#include <memory>

#include "journal/reader.hpp"
#include "journal/recovery.hpp"
#include "journal/testing/batches.hpp"
#include "journal/writer.hpp"

namespace lockstep {

inline constexpr JournalOptions small_journal{
    .segment_bytes = min_segment_bytes, .max_inflight = 4, .max_batch_bytes = 16 << 10, .max_record_bytes = 8 << 10};

class JournalRun {
 public:
  /// Starts a process on `directory`; `history` is what all processes appended so far, cut to what was recovered.
  [[nodiscard]] static Result<std::unique_ptr<JournalRun>> start(Disk& disk, const std::string& directory,
                                                                 std::vector<BatchHeader>& history,
                                                                 std::uint64_t seed = 1,
                                                                 const JournalOptions& options = small_journal,
                                                                 std::span<const std::byte> schema = {}) {
    auto recovered = recover(disk, {.directory = directory, .seed = seed});
    if (!recovered) return std::unexpected(recovered.error());
    history.resize(std::min<std::size_t>(history.size(), recovered->position.index));
    std::unique_ptr<JournalRun> run(new JournalRun(history, seed, recovered->position, schema_id_of(schema)));
    auto writer = JournalWriter::open(disk, std::move(*recovered), options, schema);
    if (!writer) return std::unexpected(writer.error());
    run->writer_ = std::move(*writer);
    return run;
  }

  [[nodiscard]] JournalWriter& writer() { return *writer_; }
  [[nodiscard]] BatchMaker& maker() { return maker_; }
  void poll() { writer_->poll(now_ns_ += 1000); }
  void advance(std::int64_t by_ns) { now_ns_ += by_ns; }

  /// Polls until there is room; false when the writer has failed or has no room for long.
  bool wait_for_room() {
    for (int turn = 0; !writer_->can_append(); ++turn) {
      if (writer_->failure() || turn == 1000) return false;
      poll();
    }
    return true;
  }
  bool append(OwnedBatch batch) {
    if (!wait_for_room()) return false;
    while (!alive_.empty() && alive_.front().header.index <= writer_->durable_index()) alive_.pop_front();
    alive_.push_back(std::move(batch));
    history_.push_back(alive_.back().header);
    writer_->append(alive_.back().view());
    return true;
  }
  bool append_random() { return wait_for_room() && append(maker_.make_random(6, 1500)); }
  /// Polls until all is durable; false when the writer has failed.
  bool settle() {
    while (!writer_->failure() && writer_->durable_index() < writer_->appended_index()) poll();
    return !writer_->failure();
  }

 private:
  JournalRun(std::vector<BatchHeader>& history, std::uint64_t seed, const HistoryPosition& after,
             std::uint64_t schema_id)
      : history_(history), maker_(seed * 1000 + after.index, after, schema_id) {}

  std::vector<BatchHeader>& history_;
  BatchMaker maker_;
  std::deque<OwnedBatch> alive_;
  std::unique_ptr<JournalWriter> writer_;  // ends before the batches it may still be writing
  std::int64_t now_ns_ = 0;
};

/// The number of batches a reader finds if each is bit for bit that of `history`; an Error when one is not, or when
/// the journal cannot be read.
[[nodiscard]] inline Result<std::uint64_t> read_and_compare(Disk& disk, const std::string& directory,
                                                            const std::vector<BatchHeader>& history) {
  auto reader = JournalReader::open(disk, directory);
  if (!reader) return std::unexpected(reader.error());
  for (std::uint64_t count = 0;; ++count) {
    const auto batch = reader->next();
    if (!batch) return std::unexpected(batch.error());
    if (!*batch) return count;
    const bool equal = count < history.size() &&
                       std::memcmp((*batch)->header, &history[count], sizeof(BatchHeader)) == 0 &&
                       !batch_defect(**batch);
    if (!equal) return fail(ErrorCode::diverged, "a batch was read that was not appended so");
  }
}

}  // namespace lockstep
