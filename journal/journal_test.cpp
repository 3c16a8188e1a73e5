// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <deque>

#include "journal/posix_disk.hpp"
#include "journal/reader.hpp"
#include "journal/testing/batches.hpp"
#include "journal/testing/scratch_directory.hpp"
#include "journal/writer.hpp"

namespace lockstep {
namespace {

constexpr JournalOptions small_journal{.segment_bytes = 256 << 10, .max_batch_bytes = 64 << 10};

TEST_CASE("batches written by one process are read back by the next, over several segments and restarts") {
  const ScratchDirectory scratch;
  const std::string directory = scratch.file("data");
  const std::vector<std::byte> schema(5000, std::byte{7});
  std::vector<BatchHeader> written;
  for (std::uint64_t run = 0; run < 3; ++run) {
    PosixDisk disk;
    auto recovered = recover(disk, {.directory = directory});
    REQUIRE_MESSAGE(recovered, recovered.error().message);
    CHECK(recovered->created == (run == 0));
    CHECK(recovered->position.index == written.size());
    CHECK(recovered->hard_state.value().incarnation == run + 1);
    BatchMaker maker(run, recovered->position, schema_id_of(schema));
    auto writer = JournalWriter::open(disk, std::move(*recovered), small_journal, schema);
    REQUIRE_MESSAGE(writer, writer.error().message);
    std::deque<OwnedBatch> alive;
    for (int i = 0; i < 60; ++i) {
      alive.push_back(maker.make_random(20, 1500));
      while (!(*writer)->can_append()) CHECK((*writer)->poll(0) > 0);
      (*writer)->append(alive.back().view());
      written.push_back(alive.back().header);
    }
    REQUIRE((*writer)->close());
    CHECK((*writer)->durable_index() == written.size());
    CHECK((*writer)->counters().segments > 3);
  }
  PosixDisk disk;
  auto reader = JournalReader::open(disk, directory);
  REQUIRE_MESSAGE(reader, reader.error().message);
  for (const BatchHeader& expected : written) {
    const auto batch = reader->next();
    REQUIRE_MESSAGE(batch, batch.error().message);
    REQUIRE(*batch);
    CHECK(std::memcmp((*batch)->header, &expected, sizeof expected) == 0);
    CHECK_FALSE(batch_defect(**batch));
  }
  const auto end = reader->next();
  REQUIRE_MESSAGE(end, end.error().message);
  CHECK_FALSE(*end);
  CHECK(reader->schema(schema_id_of(schema)).size() == schema.size());
}

}  // namespace
}  // namespace lockstep
