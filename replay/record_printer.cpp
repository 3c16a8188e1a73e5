// SPDX-License-Identifier: Apache-2.0
#include "replay/record_printer.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "control_generated.h"
#include "lockstep/message.hpp"
#include "replay/progress.hpp"
#include "runtime/agents/genesis.hpp"
#include "runtime/json_text.hpp"

namespace lockstep {

std::string time_text(std::int64_t time_ns) {
  const std::int64_t seconds = time_ns / 1'000'000'000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:09}Z", fmt::gmtime(static_cast<std::time_t>(seconds)),
                     time_ns % 1'000'000'000);
}

namespace {

/// What a record is that is no message to an actor.
std::string kind_name(RecordKind kind) {
  switch (kind) {
    case RecordKind::message:
      return {};
    case RecordKind::genesis:
      return "genesis";
    case RecordKind::session_open:
      return "session_open";
    case RecordKind::session_close:
      return "session_close";
    case RecordKind::skip:
      return "skip";
  }
  return {};
}

/// Edits from one to the other, whatever their case; of a qualified name the last part counts.
std::size_t spelling_distance(std::string_view wanted, std::string_view name) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  if (const auto dot = name.rfind('.'); dot != std::string_view::npos && wanted.find('.') == std::string_view::npos)
    name.remove_prefix(dot + 1);
  std::vector<std::size_t> row(name.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= wanted.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j < row.size(); ++j) {
      const std::size_t changed = diagonal + (lower(wanted[i - 1]) == lower(name[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row.back();
}

}  // namespace

void RecordPrinter::use_schema(const JournalReader& reader, std::uint64_t schema_id) {
  if (schema_id == schema_id_) return;
  schema_id_ = schema_id;
  decoder_.reset();
  const auto schema = reader.schema(schema_id);
  if (schema.empty()) return;
  if (auto loaded = MessageDecoder::from_schema(schema)) {
    decoder_ = std::move(*loaded);
    for (std::string& name : decoder_->names()) names_.push_back(std::move(name));
  } else {
    fmt::print(stderr, "note: messages are shown without their fields: {}\n", loaded.error().message);
  }
}

Result<void> RecordPrinter::check_type() const {
  constexpr std::size_t shown = 5;
  std::vector<std::string> all = names_;
  for (const RecordKind kind :
       {RecordKind::genesis, RecordKind::session_open, RecordKind::session_close, RecordKind::skip})
    all.push_back(kind_name(kind));
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  const auto named = [&](const std::string& name) { return name.find(type_) != std::string::npos; };
  if (std::ranges::any_of(all, named)) return {};
  std::ranges::sort(all, {}, [&](const std::string& name) { return std::pair(spelling_distance(type_, name), name); });
  all.resize(std::min(all.size(), shown));
  return fail(ErrorCode::usage, fmt::format("no type in this journal has '{}' in its name; the nearest are {}", type_,
                                            fmt::join(all, ", ")));
}

bool RecordPrinter::matches(const RecordView& record) const {
  if (type_.empty()) return true;
  std::string name = kind_name(record.header->kind);
  if (name.empty() && decoder_) name = decoder_->name(record.header->message_type);
  return name.find(type_) != std::string::npos;
}

bool RecordPrinter::print(const RecordView& record, std::uint64_t batch) const {
  const RecordHeader& header = *record.header;
  std::string type = kind_name(header.kind);
  std::string body;
  bool good = true;
  if (header.kind == RecordKind::genesis) {
    const auto genesis = decode_genesis(record.payload);
    good = genesis.has_value();
    if (good)
      body = json_text(nlohmann::json{{"application", fmt::format("{:016x}", genesis->application)},
                                      {"cluster_seed", genesis->cluster_seed},
                                      {"shards", genesis->shards},
                                      {"max_rounds", genesis->max_rounds},
                                      {"checkpoint_interval", genesis->checkpoint_interval}});
  } else if (header.kind == RecordKind::session_open) {  // its secret is nobody's business
    good = verify<control::SessionOpen>(record.payload);
    body = json_text(nlohmann::json{{"resumes", header.session != 0}});
  } else if (header.kind == RecordKind::session_close) {
    good = verify<control::SessionClose>(record.payload);
    if (good) {
      const auto& close = decode<control::SessionClose>(record.payload.data());
      body = json_text(nlohmann::json{{"reason", control::EnumNameCloseReason(close.reason())},
                                      {"last_activity_ns", close.last_activity_ns()}});
    }
  } else if (header.kind == RecordKind::message && decoder_) {
    type = decoder_->name(header.message_type);
    const auto decoded = decoder_->json(header.message_type, record.payload);
    good = decoded || decoded.error().code == ErrorCode::unsupported;
    body = decoded ? *decoded : json_text(nlohmann::json(decoded.error().message));
  }
  if (type.empty()) type = fmt::format("{:08x}", header.message_type);
  if (body.empty()) body = "null";
  if (json_) {
    fmt::print(
        "{{\"schema\":\"lockstep.msg/1\",\"seq\":{},\"batch\":{},\"time_ns\":{},\"actor_type\":\"{:08x}\",\"key\":{},"
        "\"session\":{},\"request\":{},\"type\":{},\"body\":{}}}\n",
        header.seq, batch, header.timestamp_ns, header.actor_type, header.key, header.session, header.request,
        json_text(nlohmann::json(type)), body);
  } else {
    fmt::print("{:>10}  {}  {:08x}/{:<6}  {:<24} {:>6} B  {}\n", with_separators(header.seq),
               time_text(header.timestamp_ns), header.actor_type, header.key, type, header.length, body);
  }
  return good;
}

}  // namespace lockstep
