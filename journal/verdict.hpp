// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a journal's end may be, and the one decision table for it. "The first block that does not verify is the end" is
/// right only if nothing from there on was ever acknowledged; the table asks what evidence there is that it was. It
/// stands on two facts of the writer: block n is submitted only when block n - K is durable, and each block states
/// which blocks were durable when it was submitted. Any thread; pure functions.

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

enum class TailClass {
  clean,      ///< ends with a SEAL, or with nothing behind the last good block
  torn,       ///< a crash cut writes in flight, none of them acknowledged: cut and go on
  ambiguous,  ///< damaged where nothing shows that it was acknowledged, nor that it was not: an operator decides
  corrupt,    ///< damaged where it was once durable: only a copy of the data helps
};
[[nodiscard]] const char* name_of(TailClass tail);

/// What is known about block `bad_block`, the first of a segment that does not verify, and about what lies behind.
struct TailEvidence {
  std::uint64_t bad_block = 0;        ///< e
  std::uint64_t max_inflight = 0;     ///< K
  std::uint64_t highest_durable = 0;  ///< W: highest durable_block stated anywhere in the segment
  std::uint64_t highest_block = 0;    ///< N: highest block whose header verifies behind e
  bool later_segment_has_blocks = false;
  bool hard_state_covers = false;  ///< the hard state's durable index reaches the batch that should be at e
  bool garbage = false;            ///< some bad sector is not merely unwritten
  bool short_file = false;         ///< smaller than it was made
  bool something_behind = false;   ///< not only zeros from e on
};
[[nodiscard]] TailClass judge_tail(const TailEvidence& evidence);

/// One thing found wrong, or cut, for an operator or a program.
struct Finding {
  std::string file;
  std::uint64_t offset = 0;
  std::uint64_t block = 0;
  std::uint64_t index = 0;  ///< of the batch that is, or should be, there
  TailClass tail = TailClass::corrupt;
  std::string evidence;
};
/// One line: "seg-…: offset 8192, block 2, batch 17: torn: …".
[[nodiscard]] std::string describe(const Finding& finding);

}  // namespace lockstep
