// SPDX-License-Identifier: Apache-2.0
#pragma once

/// RecordPrinter: a journal's records as lines on stdout: for people, or one JSON object each. Messages are decoded by
/// the schema that travels in the journal; without one they are shown without their fields. One thread.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "journal/reader.hpp"
#include "replay/message_decoder.hpp"

namespace lockstep {

/// Stamped time as a person and `date` read it: 2026-01-07T10:36:02.118197000Z.
[[nodiscard]] std::string time_text(std::int64_t time_ns);

class RecordPrinter {
 public:
  /// `type`, when not empty: only messages whose name contains it.
  RecordPrinter(std::string type, bool json) : type_(std::move(type)), json_(json) {}

  /// Has the schema ready that the reader's last batch names.
  void use_schema(const JournalReader& reader, std::uint64_t schema_id);
  /// Refuses a type that no record of the schemas so far can have, and names what is spelt like it.
  [[nodiscard]] Result<void> check_type() const;
  [[nodiscard]] bool matches(const RecordView& record) const;
  /// False when the record's payload is not what the schema says.
  bool print(const RecordView& record, std::uint64_t batch) const;

 private:
  std::string type_;
  bool json_;
  std::optional<MessageDecoder> decoder_;
  std::uint64_t schema_id_ = 0;
  std::vector<std::string> names_;  ///< of the messages in all schemas so far
};

}  // namespace lockstep
