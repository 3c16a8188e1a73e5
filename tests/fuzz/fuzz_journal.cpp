// SPDX-License-Identifier: Apache-2.0

/// What is read back from a disk: a batch's records behind a header that vouches for them, a genesis record, and a
/// whole directory whose segment, hard state and hash log are the input. The first byte chooses.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "journal/batch.hpp"
#include "journal/directory.hpp"
#include "journal/hash_log.hpp"
#include "journal/inspect.hpp"
#include "journal/recovery.hpp"
#include "journal/testing/memory_disk.hpp"
#include "runtime/agents/genesis.hpp"

namespace {

using namespace lockstep;

void read_records(std::span<const std::byte> payload) {
  BatchHeader header;
  header.index = 1;
  header.first_seq = 1;
  header.last_time_ns = INT64_MAX;
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  header.payload_digest = xxh3_128(payload);
  header.chain = batch_chain(header);
  (void)batch_defect({&header, payload});
  RecordCursor records(payload);
  std::size_t bytes = 0;
  while (const auto record = records.next()) bytes += sizeof(RecordHeader) + record->payload.size();
  if (bytes > payload.size()) std::abort();  // it read what is not there
}

void read_directory(std::span<const std::byte> bytes) {
  MemoryDisk disk;
  (void)disk.make_directory("/d");
  const std::size_t half = bytes.size() / 2;
  disk.put("/d/hardstate", {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(half)});
  disk.put("/d/" + segment_name(1), {bytes.begin() + static_cast<std::ptrdiff_t>(half), bytes.end()});
  disk.put("/d/hashlog", {bytes.begin(), bytes.end()});
  (void)read_hash_log(disk, "/d");
  (void)inspect_journal(disk, "/d", InspectDepth::records);
  (void)recover(disk, {.directory = "/d"});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // As in a batch: on a multiple of 16.
  std::vector<std::max_align_t> aligned((size + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
  std::memcpy(aligned.data(), data + 1, size - 1);
  const std::span bytes(reinterpret_cast<const std::byte*>(aligned.data()), size - 1);
  switch (data[0] % 3) {
    case 0:
      read_records(bytes);
      break;
    case 1:
      (void)decode_genesis(bytes);
      break;
    default:
      read_directory(bytes);
      break;
  }
  return 0;
}
