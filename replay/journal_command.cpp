// SPDX-License-Identifier: Apache-2.0
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "control_generated.h"
#include "journal/inspect.hpp"
#include "journal/posix_disk.hpp"
#include "journal/reader.hpp"
#include "lockstep/message.hpp"
#include "replay/commands.hpp"
#include "replay/journal_range.hpp"
#include "replay/message_decoder.hpp"
#include "replay/progress.hpp"
#include "runtime/agents/genesis.hpp"

namespace lockstep {
namespace {

std::string cluster_text(const HardState& state) {
  std::string text;
  for (const auto byte : object_bytes(state.cluster_id)) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

/// Stamped time as a person and `date` read it: 2026-01-07T10:36:02.118197000Z.
std::string time_text(std::int64_t time_ns) {
  const std::int64_t seconds = time_ns / 1'000'000'000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:09}Z", fmt::gmtime(static_cast<std::time_t>(seconds)),
                     time_ns % 1'000'000'000);
}

nlohmann::json finding_json(const Finding& finding) {
  return {{"file", finding.file},   {"offset", finding.offset},       {"block", finding.block},
          {"batch", finding.index}, {"class", name_of(finding.tail)}, {"evidence", finding.evidence}};
}

nlohmann::json info_json(const JournalInfo& info, const std::string& data) {
  nlohmann::json out{{"schema", "lockstep.journal.info/1"},
                     {"data", data},
                     {"cluster", cluster_text(info.hard_state)},
                     {"replica", info.hard_state.replica_id},
                     {"incarnation", info.hard_state.incarnation},
                     {"first_batch", info.first_index},
                     {"first_seq", info.first_seq},
                     {"last_batch", info.last.index},
                     {"last_seq", info.last.seq},
                     {"last_time_ns", info.last.time_ns},
                     {"chain", info.last.chain.hex()},
                     {"sound", info.sound()},
                     {"segments", nlohmann::json::array()},
                     {"findings", nlohmann::json::array()}};
  for (const SegmentInfo& segment : info.segments)
    out["segments"].push_back({{"file", segment.file},
                               {"bytes", segment.file_bytes},
                               {"used_bytes", segment.used_bytes},
                               {"batches", segment.batches},
                               {"first_batch", segment.first_index},
                               {"last_batch", segment.last_index},
                               {"records", segment.records},
                               {"sealed", segment.sealed},
                               {"spare", segment.spare}});
  for (const Finding& finding : info.findings) out["findings"].push_back(finding_json(finding));
  return out;
}

void print_findings(const JournalInfo& info) {
  for (const Finding& finding : info.findings) fmt::print("{}\n", describe(finding));
}

/// Prints one record; false when its payload is not what the schema says.
bool print_record(const RecordView& record, std::uint64_t batch, const MessageDecoder* decoder, bool json) {
  const RecordHeader& header = *record.header;
  std::string type;
  std::string body;
  bool good = true;
  if (header.kind == RecordKind::genesis) {
    type = "genesis";
    const auto genesis = decode_genesis(record.payload);
    good = genesis.has_value();
    if (good)
      body = nlohmann::json{{"application", fmt::format("{:016x}", genesis->application)},
                            {"cluster_seed", genesis->cluster_seed},
                            {"shards", genesis->shards},
                            {"max_rounds", genesis->max_rounds},
                            {"checkpoint_interval", genesis->checkpoint_interval}}
                 .dump();
  } else if (header.kind == RecordKind::session_open) {  // its secret is nobody's business
    type = "session_open";
    good = verify<control::SessionOpen>(record.payload);
    body = nlohmann::json{{"resumes", header.session != 0}}.dump();
  } else if (header.kind == RecordKind::session_close) {
    type = "session_close";
    good = verify<control::SessionClose>(record.payload);
    if (good) {
      const auto& close = decode<control::SessionClose>(record.payload.data());
      body = nlohmann::json{{"reason", control::EnumNameCloseReason(close.reason())},
                            {"last_activity_ns", close.last_activity_ns()}}
                 .dump();
    }
  } else if (decoder != nullptr) {
    type = decoder->name(header.message_type);
    const auto decoded = decoder->json(header.message_type, record.payload);
    good = decoded.has_value();
    body = decoded ? *decoded : nlohmann::json(decoded.error().message).dump();
  }
  if (type.empty()) type = fmt::format("{:08x}", header.message_type);
  if (body.empty()) body = "null";
  if (json) {
    fmt::print(
        "{{\"schema\":\"lockstep.msg/1\",\"seq\":{},\"batch\":{},\"time_ns\":{},\"actor_type\":\"{:08x}\",\"key\":{},"
        "\"session\":{},\"request\":{},\"type\":{},\"body\":{}}}\n",
        header.seq, batch, header.timestamp_ns, header.actor_type, header.key, header.session, header.request,
        nlohmann::json(type).dump(), body);
  } else {
    fmt::print("{:>10}  {}  {:08x}/{:<6}  {:<24} {:>6} B  {}\n", with_separators(header.seq),
               time_text(header.timestamp_ns), header.actor_type, header.key, type, header.length, body);
  }
  return good;
}

/// Walks the journal's records in range and prints those that match.
class Dump {
 public:
  Dump(const JournalOptionsCli& options, JournalReader& reader, const SeqRange& range)
      : options_(options), reader_(reader), range_(range) {}

  Result<ExitCode> run() {
    while (true) {
      const auto batch = reader_.next();
      if (!batch) return std::unexpected(batch.error());
      if (!*batch || (*batch)->header->first_seq > range_.last) break;
      if (!print_batch(**batch)) break;
    }
    if (reader_.tail()) fmt::print(stderr, "note: {}\n", describe(*reader_.tail()));
    return damaged_ ? ExitCode::damaged : ExitCode::equal;
  }

 private:
  /// False when enough has been printed.
  bool print_batch(const BatchView& batch) {
    refresh_decoder(batch.header->schema_id);
    RecordCursor records(batch.payload);
    while (const auto record = records.next()) {
      if (!range_.contains(record->header->seq) || !matches(*record)) continue;
      if (!print_record(*record, batch.header->index, decoder_ ? &*decoder_ : nullptr, options_.json)) damaged_ = true;
      if (++printed_ == options_.limit) return false;
    }
    return true;
  }

  [[nodiscard]] bool matches(const RecordView& record) const {
    if (options_.message_type.empty()) return true;
    const std::string name = record.header->kind == RecordKind::genesis ? "genesis"
                             : decoder_                                 ? decoder_->name(record.header->message_type)
                                                                        : std::string();
    return name.find(options_.message_type) != std::string::npos;
  }

  void refresh_decoder(std::uint64_t schema_id) {
    if (schema_id == schema_id_) return;
    schema_id_ = schema_id;
    decoder_.reset();
    const auto schema = reader_.schema(schema_id);
    if (schema.empty()) return;
    if (auto loaded = MessageDecoder::from_schema(schema)) {
      decoder_ = std::move(*loaded);
    } else {
      fmt::print(stderr, "note: messages are shown without their fields: {}\n", loaded.error().message);
    }
  }

  const JournalOptionsCli& options_;
  JournalReader& reader_;
  SeqRange range_;
  std::optional<MessageDecoder> decoder_;
  std::uint64_t schema_id_ = 0;
  std::uint64_t printed_ = 0;
  bool damaged_ = false;
};

Result<ExitCode> dump(const JournalOptionsCli& options) {
  PosixDisk disk;
  const auto info = options.range.find('-') == std::string::npos && options.range.find("end") == std::string::npos
                        ? Result<JournalInfo>(JournalInfo{})
                        : inspect_journal(disk, options.data, InspectDepth::blocks);
  if (!info) return std::unexpected(info.error());
  const auto range = parse_seq_range(options.range, info->last.seq);
  if (!range) return std::unexpected(range.error());
  auto reader = JournalReader::open(disk, options.data);
  if (!reader) return std::unexpected(reader.error());
  return Dump(options, *reader, *range).run();
}

}  // namespace

ExitCode journal_info_command(const JournalOptionsCli& options) {
  PosixDisk disk;
  const auto info = inspect_journal(disk, options.data, InspectDepth::blocks);
  if (!info) return report(info.error());
  if (options.json) {
    fmt::print("{}\n", info_json(*info, options.data).dump());
    return info->sound() ? ExitCode::equal : ExitCode::damaged;
  }
  std::uint64_t bytes = 0;
  std::uint64_t spares = 0;
  for (const SegmentInfo& segment : info->segments) {
    bytes += segment.used_bytes;
    spares += segment.spare ? 1 : 0;
  }
  fmt::print("journal    {}   {} segments and {} spare, {:.2f} MiB used\n", options.data,
             info->segments.size() - spares, spares, static_cast<double>(bytes) / (1 << 20));
  fmt::print("cluster    {}   replica {}   incarnation {}\n", cluster_text(info->hard_state),
             info->hard_state.replica_id, info->hard_state.incarnation);
  fmt::print("history    batches {}..{}   seq {}..{}   last stamp {}\n", with_separators(info->first_index),
             with_separators(info->last.index), with_separators(info->first_seq), with_separators(info->last.seq),
             info->last.index == 0 ? "none" : time_text(info->last.time_ns));
  fmt::print("chain      {}\n", info->last.chain.short_hex());
  print_findings(*info);
  return info->sound() ? ExitCode::equal : ExitCode::damaged;
}

ExitCode journal_verify_command(const JournalOptionsCli& options) {
  PosixDisk disk;
  const auto info = inspect_journal(disk, options.data, InspectDepth::records);
  if (!info) return report(info.error());
  if (options.json) {
    fmt::print("{}\n", info_json(*info, options.data).dump());
  } else {
    fmt::print("{} segments, {} batches, {} records read\n", info->segments.size(), with_separators(info->last.index),
               with_separators(info->last.seq));
    print_findings(*info);
    fmt::print("{}\n", !info->sound() ? "DAMAGED" : info->findings.empty() ? "ok" : "ok, with notes");
  }
  return info->sound() ? ExitCode::equal : ExitCode::damaged;
}

ExitCode journal_dump_command(const JournalOptionsCli& options) {
  const auto dumped = dump(options);
  return dumped ? *dumped : report(dumped.error());
}

}  // namespace lockstep
