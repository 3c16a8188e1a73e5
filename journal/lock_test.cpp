// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "journal/directory.hpp"
#include "journal/posix_disk.hpp"
#include "journal/testing/journal_run.hpp"
#include "journal/testing/scratch_directory.hpp"

namespace lockstep {
namespace {

/// A journal of one batch whose process is gone, on a real file system.
struct Ended {
  Ended() {
    auto run = JournalRun::start(disk, data, history);
    REQUIRE_MESSAGE(run, run.error().message);
    REQUIRE((*run)->append_random());
    REQUIRE((*run)->settle());
  }
  ScratchDirectory scratch;
  std::string data = scratch.file("data");
  PosixDisk disk;
  std::vector<BatchHeader> history;
};

/// The lock that a write in flight keeps on its file when its process is gone.
class Lingering {
 public:
  explicit Lingering(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    REQUIRE(file_ >= 0);
    REQUIRE(::flock(file_, LOCK_EX | LOCK_NB) == 0);
  }
  Lingering(const Lingering&) = delete;
  Lingering& operator=(const Lingering&) = delete;
  ~Lingering() { release(); }
  void release() {
    if (file_ >= 0) ::close(file_);
    file_ = -1;
  }

 private:
  int file_;
};

TEST_CASE("a writer holds a lock on each segment it may write to") {
  Ended ended;
  auto run = JournalRun::start(ended.disk, ended.data, ended.history, 2);
  REQUIRE_MESSAGE(run, run.error().message);
  REQUIRE((*run)->append_random());
  REQUIRE((*run)->settle());
  for (int i = 0; i < 10; ++i) (*run)->poll();
  const auto files = list_journal(ended.disk, ended.data);
  REQUIRE(files);
  REQUIRE(files->segments.size() == 4);  // the first process', and this one's with two spares
  for (const std::uint64_t id : files->segments) {
    auto file = ended.disk.open(ended.data + "/" + segment_name(id), OpenMode::read);
    REQUIRE(file);
    CHECK(ended.disk.lock(*file).has_value() == (id == 1));
    ended.disk.close(*file);
  }
}

TEST_CASE("T64: a start waits for the writes a killed process left in flight") {
  Ended ended;
  Lingering in_flight(ended.data + "/" + segment_name(1));
  std::thread disk_answers([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(70));
    in_flight.release();
  });
  const auto recovered = recover(ended.disk, {.directory = ended.data});
  disk_answers.join();
  REQUIRE_MESSAGE(recovered, recovered.error().message);
  CHECK(recovered->position.index == 1);
}

TEST_CASE("a start is refused while a killed process' write does not come to an end, and changes nothing") {
  Ended ended;
  const Lingering in_flight(ended.data + "/" + segment_name(1));
  const auto before = look_at_hard_state(ended.disk, ended.data);
  const auto refused = recover(ended.disk, {.directory = ended.data});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::busy);
  CHECK(refused.error().message.find(segment_name(1)) != std::string::npos);
  CHECK(look_at_hard_state(ended.disk, ended.data)->incarnation == before->incarnation);
}

}  // namespace
}  // namespace lockstep
