// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "journal/posix_disk.hpp"
#include "journal/testing/journal_run.hpp"
#include "journal/testing/scratch_directory.hpp"

namespace lockstep {
namespace {

TEST_CASE("batches written by one process are read back by the next, over several segments and restarts") {
  const ScratchDirectory scratch;
  const std::string directory = scratch.file("data");
  const std::vector<std::byte> schema(5000, std::byte{7});
  std::vector<BatchHeader> history;
  PosixDisk disk;
  for (std::uint64_t life = 1; life <= 3; ++life) {
    const std::size_t before = history.size();
    auto run = JournalRun::start(disk, directory, history, life, small_journal, schema);
    REQUIRE_MESSAGE(run, run.error().message);
    CHECK(history.size() == before);
    CHECK((*run)->writer().hard_state().incarnation == life);
    for (int i = 0; i < 60; ++i) REQUIRE((*run)->append_random());
    REQUIRE((*run)->writer().close());
    CHECK((*run)->writer().durable_index() == history.size());
    CHECK((*run)->writer().counters().segments > 3);
  }
  const auto count = read_and_compare(disk, directory, history);
  REQUIRE_MESSAGE(count, count.error().message);
  CHECK(*count == 180);
  auto reader = JournalReader::open(disk, directory, 100);
  REQUIRE(reader);
  const auto batch = reader->next();
  REQUIRE(batch);
  CHECK((**batch).header->index == 100);
  const auto stored = reader->schema(schema_id_of(schema));
  CHECK(std::vector<std::byte>(stored.begin(), stored.end()) == schema);
}

}  // namespace
}  // namespace lockstep
