// SPDX-License-Identifier: Apache-2.0
#include "journal/skips.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "journal/hash_log.hpp"
#include "journal/reader.hpp"
#include "journal/recovery.hpp"

namespace lockstep {
namespace {

bool holds(const BatchHeader& batch, std::uint64_t seq) {
  return batch.first_seq <= seq && seq < batch.first_seq + batch.record_count;
}

/// What a skip needs to know of the journal it is added to.
struct Surroundings {
  std::uint64_t batch = 0;  ///< that holds the sequence number; 0 when none does
  std::uint64_t snapshot_index = 0;
  bool skipped = false;  ///< already
  std::uint64_t schema_id = 0;
  std::vector<std::byte> schema;
};

Result<Surroundings> look_around(Disk& disk, const std::string& directory, std::uint64_t seq) {
  auto reader = JournalReader::open(disk, directory, 0);
  if (!reader) return std::unexpected(reader.error());
  Surroundings found;
  found.snapshot_index = reader->hard_state().snapshot_index;
  for (;;) {
    const auto batch = reader->next();
    if (!batch) return std::unexpected(batch.error());
    if (!*batch) break;
    const BatchHeader& header = *(*batch)->header;
    if (holds(header, seq)) found.batch = header.index;
    found.schema_id = header.schema_id;
    RecordCursor records((*batch)->payload);
    while (const auto record = records.next())
      found.skipped = found.skipped || (record->header->kind == RecordKind::skip && record->header->key == seq);
  }
  const auto schema = reader->schema(found.schema_id);
  found.schema.assign(schema.begin(), schema.end());
  return found;
}

Result<void> check_legal(Disk& disk, const std::string& directory, std::uint64_t seq,
                         std::optional<std::uint64_t> deadly, const Surroundings& found) {
  if (found.batch == 0)
    return fail(ErrorCode::usage, fmt::format("{}: the journal holds no seq {}; `lockstep journal info` says which it "
                                              "holds",
                                              directory, seq));
  if (found.skipped) return fail(ErrorCode::usage, fmt::format("{}: seq {} is skipped already", directory, seq));
  // The snapshot too: a power cut may take the end of the hash log, never a snapshot that the hard state names.
  if (found.batch <= found.snapshot_index)
    return fail(ErrorCode::usage, fmt::format("{}: seq {} was executed: it is in the snapshot of batch {}", directory,
                                              seq, found.snapshot_index));
  const auto has_roots = has_hash_log(disk, directory);
  if (!has_roots) return std::unexpected(has_roots.error());
  if (!*has_roots)
    return fail(ErrorCode::incomplete, fmt::format("{} has no {}, so it cannot be told whether seq {} was executed; "
                                                   "start the node once, which makes it anew",
                                                   directory, hash_log_name, seq));
  const auto roots = read_hash_log(disk, directory);
  if (!roots) return std::unexpected(roots.error());
  if (roots->torn_bytes != 0)
    return fail(ErrorCode::incomplete,
                fmt::format("{}, so it cannot be told whether seq {} was executed; start the node "
                            "once, which derives it again",
                            describe_torn(*roots, directory), seq));
  if (!roots->entries.empty() && roots->entries.back().last_seq >= seq)
    return fail(ErrorCode::usage,
                fmt::format("{}: seq {} was executed: a state root is recorded at seq {}. Passing over it now would "
                            "make another history of it",
                            directory, seq, roots->entries.back().last_seq));
  if (deadly != seq)
    return fail(ErrorCode::usage,
                fmt::format("{}: nothing shows that the program dies of seq {}; {}", directory, seq,
                            deadly ? fmt::format("it died twice of seq {}, which can be passed over", *deadly)
                                   : "only a message that it died of twice, and halts before, can be passed over"));
  return {};
}

/// A batch of the one record.
struct SkipBatch {
  AlignedBuffer buffer{sizeof(RecordHeader)};
  BatchHeader header;

  SkipBatch(const HistoryPosition& after, std::uint64_t seq, std::int64_t now_ns, std::uint64_t schema_id) {
    RecordHeader record{.kind = RecordKind::skip, .key = seq};
    record.seq = after.seq + 1;
    record.timestamp_ns = std::max(after.time_ns, now_ns);
    record.check = record_check(record, {});
    std::memcpy(buffer.data(), &record, sizeof record);
    pad_for_journal(buffer.span(), sizeof record);
    header = seal_batch(after, {.payload = buffer.span().first(sizeof record),
                                .record_count = 1,
                                .first_time_ns = record.timestamp_ns,
                                .last_time_ns = record.timestamp_ns,
                                .schema_id = schema_id});
  }
  [[nodiscard]] BatchView view() const { return {&header, buffer.span().first(header.payload_bytes)}; }
};

/// Turns the writer until `done`, or it has failed.
template <class Done>
Result<void> turn_until(JournalWriter& writer, Done&& done) {
  for (std::int64_t turn_ns = 0; !done(); turn_ns += 1000) {
    writer.poll(turn_ns);
    if (writer.failure()) return std::unexpected(*writer.failure());
    if (writer.out_of_space()) return std::unexpected(*writer.out_of_space());
  }
  return {};
}

}  // namespace

bool is_skip(const BatchView& batch) {
  const auto record = RecordCursor(batch.payload).next();
  return batch.header->record_count == 1 && record && record->header->kind == RecordKind::skip;
}

Result<std::vector<std::uint64_t>> read_skips(Disk& disk, const std::string& directory, bool look) {
  std::vector<std::uint64_t> skips;
  auto reader = JournalReader::open(disk, directory, 0);
  if (!reader) return std::unexpected(reader.error());
  if (!look && (reader->hard_state().flags & hard_state_has_skips) == 0) return skips;
  for (;;) {
    const auto batch = reader->next();
    if (!batch) return std::unexpected(batch.error());
    if (!*batch) break;
    RecordCursor records((*batch)->payload);
    while (const auto record = records.next())
      if (record->header->kind == RecordKind::skip) skips.push_back(record->header->key);
  }
  std::ranges::sort(skips);
  const auto repeated = std::ranges::unique(skips);
  skips.erase(repeated.begin(), repeated.end());
  return skips;
}

Result<std::uint64_t> append_skip(Disk& disk, const std::string& directory, std::uint64_t seq,
                                  std::optional<std::uint64_t> deadly, std::int64_t now_ns,
                                  const JournalOptions& options, std::vector<Finding>* findings) {
  Surroundings found;
  const auto look = [&]() -> Result<void> {
    auto looked = look_around(disk, directory, seq);
    if (!looked) return std::unexpected(looked.error());
    found = std::move(*looked);
    return check_legal(disk, directory, seq, deadly, found);
  };
  auto recovered = recover(disk, {.directory = directory, .create = false, .consent = look}, findings);
  if (!recovered) return std::unexpected(recovered.error());

  // The flag first: one without a skip costs a look, a skip without the flag would be overlooked.
  HardState flagged = recovered->hard_state.value();
  flagged.flags |= hard_state_has_skips;
  if (auto stored = recovered->hard_state.store(flagged); !stored) return std::unexpected(stored.error());

  const HistoryPosition after = recovered->position;
  auto writer = JournalWriter::open(disk, std::move(*recovered), options, found.schema);
  if (!writer) return std::unexpected(writer.error());
  const SkipBatch batch(after, seq, now_ns, found.schema_id);
  if (auto room = turn_until(**writer, [&] { return (*writer)->can_append(); }); !room)
    return std::unexpected(room.error());
  (*writer)->append(batch.view());
  if (auto durable = turn_until(**writer, [&] { return (*writer)->durable_index() == batch.header.index; }); !durable)
    return std::unexpected(durable.error());
  if (auto closed = (*writer)->close(); !closed) return std::unexpected(closed.error());
  return batch.header.first_seq;
}

}  // namespace lockstep
