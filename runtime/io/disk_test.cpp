// SPDX-License-Identifier: Apache-2.0
#include "journal/disk.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include "runtime/io/test_support.hpp"

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::io::test;

namespace {

/// A directory of its own under the working directory (the build tree, a real file system), removed at the end.
struct Directory {
  Directory() {
    std::string name = "disk_test.XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = std::filesystem::absolute(name).string();
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string path;
};

/// Turns the reactor until `count` operations have completed; their results by token.
std::map<std::uint64_t, std::int64_t> results_of(Reactor& reactor, std::size_t count) {
  std::map<std::uint64_t, std::int64_t> results;
  for (int i = 0; i < 1000 && results.size() < count; ++i) {
    reactor.turn();
    for (const DiskCompletion& completion : reactor.disk().poll()) {
      CHECK(!results.contains(completion.token));
      results[completion.token] = completion.result;
    }
    if (results.size() < count) reactor.wait(10'000'000);
  }
  REQUIRE(results.size() == count);
  return results;
}

std::int64_t result_of(Reactor& reactor, std::uint64_t token) {
  return results_of(reactor, 1).at(token);
}

struct alignas(4096) Page {
  std::byte bytes[4096];
};

std::vector<std::byte> content_of(Disk& disk, const std::string& path) {
  auto file = disk.open(path, OpenMode::read);
  REQUIRE(file);
  std::vector<std::byte> bytes(disk.size(*file).value() + 100);
  const auto got = disk.read(*file, 0, bytes);
  REQUIRE(got);
  bytes.resize(*got);
  disk.close(*file);
  return bytes;
}

}  // namespace

TEST_CASE("pieces written past the page cache and synced read back") {
  on_each_backend([](Backend backend) {
    const Directory directory;
    const auto reactor = reactor_of(backend);
    Disk& disk = reactor->disk();
    const std::string path = directory.path + "/segment";
    auto file = disk.open(path, OpenMode::create_direct);
    REQUIRE(file);
    REQUIRE(disk.zero_fill(*file, 1 << 20));
    CHECK(disk.size(*file).value() == 1 << 20);

    const auto pages = std::make_unique<Page[]>(3);
    const auto bytes = pattern(3 * sizeof(Page), 7);
    std::memcpy(pages.get(), bytes.data(), bytes.size());
    {
      // The list of pieces, unlike the bytes, need not outlive the call.
      const iovec pieces[] = {{&pages[0], sizeof(Page)}, {&pages[1], 2 * sizeof(Page)}};
      disk.submit_write(*file, 8192, pieces, 1);
    }
    CHECK(result_of(*reactor, 1) == 3 * sizeof(Page));
    disk.submit_sync(*file, 2);
    CHECK(result_of(*reactor, 2) == 0);
    disk.close(*file);

    const auto back = content_of(disk, path);
    REQUIRE(back.size() == 1 << 20);
    CHECK(std::equal(bytes.begin(), bytes.end(), back.begin() + 8192));
    CHECK(back[8191] == std::byte{0});
    CHECK(back[8192 + bytes.size()] == std::byte{0});
  });
}

TEST_CASE("many writes in flight all complete, each once, with its own token") {
  on_each_backend([](Backend backend) {
    const Directory directory;
    // Fewer submission entries than writes.
    const auto reactor = reactor_of(backend, {.submission_entries = 8});
    Disk& disk = reactor->disk();
    auto file = disk.open(directory.path + "/segment", OpenMode::create_direct);
    REQUIRE(file);
    constexpr std::size_t count = 200;
    REQUIRE(disk.zero_fill(*file, count * sizeof(Page)));
    const auto pages = std::make_unique<Page[]>(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::memset(&pages[i], static_cast<int>(i), sizeof(Page));
      const iovec piece{&pages[i], sizeof(Page)};
      disk.submit_write(*file, i * sizeof(Page), {&piece, 1}, 1000 + i);
    }
    for (const auto& [token, result] : results_of(*reactor, count)) CHECK(result == sizeof(Page));
    disk.close(*file);
    const auto back = content_of(disk, directory.path + "/segment");
    for (std::size_t i = 0; i < count; ++i) CHECK(back[i * sizeof(Page) + 17] == static_cast<std::byte>(i));
  });
}

TEST_CASE("a write that the file size limit cuts is reported short, and one beyond it as EFBIG") {
  std::signal(SIGXFSZ, SIG_IGN);
  on_each_backend([](Backend backend) {
    const Directory directory;
    const auto reactor = reactor_of(backend);
    Disk& disk = reactor->disk();
    auto file = disk.open(directory.path + "/segment", OpenMode::create_direct);
    REQUIRE(file);
    const auto pages = std::make_unique<Page[]>(3);
    const iovec piece{pages.get(), 3 * sizeof(Page)};
    {
      const LowerLimit limit(RLIMIT_FSIZE, 2 * sizeof(Page));
      disk.submit_write(*file, 0, {&piece, 1}, 1);
      disk.submit_write(*file, 4 * sizeof(Page), {&piece, 1}, 2);
      const auto results = results_of(*reactor, 2);
      CHECK(results.at(1) == 2 * sizeof(Page));
      CHECK(results.at(2) == -EFBIG);
      const auto blocking = disk.write(*file, 0, std::as_bytes(std::span(pages.get(), 3)));
      REQUIRE(!blocking);
      CHECK(blocking.error().code == ErrorCode::full);
      CHECK(blocking.error().message.find("/segment") != std::string::npos);
    }
    disk.close(*file);
  });
  std::signal(SIGXFSZ, SIG_DFL);
}

TEST_CASE("a file closed with a write under way is closed after it, and its number is not given to another meanwhile") {
  on_each_backend([](Backend backend) {
    const Directory directory;
    const std::size_t descriptors = open_descriptors();
    {
      const auto reactor = reactor_of(backend);
      Disk& disk = reactor->disk();
      auto file = disk.open(directory.path + "/first", OpenMode::create_direct);
      REQUIRE(file);
      const auto page = std::make_unique<Page>();
      std::memset(page.get(), 0x5A, sizeof(Page));
      const iovec piece{page.get(), sizeof(Page)};
      disk.submit_write(*file, 0, {&piece, 1}, 1);
      disk.submit_sync(*file, 2);
      disk.close(*file);
      auto other = disk.open(directory.path + "/second", OpenMode::create_direct);
      REQUIRE(other);
      CHECK(*other != *file);
      const auto results = results_of(*reactor, 2);
      CHECK(results.at(1) == sizeof(Page));
      CHECK(results.at(2) == 0);
      CHECK(disk.size(*other).value() == 0);
      CHECK(!disk.size(*file));
      disk.close(*other);
      CHECK(content_of(disk, directory.path + "/first").size() == sizeof(Page));
    }
    CHECK(open_descriptors() == descriptors);
  });
}

TEST_CASE("an operation on a file that is not open completes with EBADF") {
  on_each_backend([](Backend backend) {
    const auto reactor = reactor_of(backend);
    const auto page = std::make_unique<Page>();
    const iovec piece{page.get(), sizeof(Page)};
    reactor->disk().submit_write(FileId{1'000'000}, 0, {&piece, 1}, 1);
    reactor->disk().submit_sync(FileId::none, 2);
    const auto results = results_of(*reactor, 2);
    CHECK(results.at(1) == -EBADF);
    CHECK(results.at(2) == -EBADF);
  });
}

TEST_CASE("background work runs on another thread, and its completion ends the owner's sleep") {
  on_each_backend([](Backend backend) {
    const Directory directory;
    const auto reactor = reactor_of(backend);
    const auto owner = std::this_thread::get_id();
    const std::string path = directory.path + "/spare";
    std::thread::id worker;
    const auto make_spare = [&](Disk& disk) -> Result<void> {
      worker = std::this_thread::get_id();
      auto file = disk.open(path, OpenMode::create_direct);
      if (!file) return std::unexpected(file.error());
      auto filled = disk.zero_fill(*file, 64 << 10);
      disk.close(*file);
      return filled;
    };
    reactor->disk().submit_background(make_spare, 7);
    std::int64_t result = -1;
    for (bool done = false; !done;) {
      reactor->turn();
      for (const DiskCompletion& completion : reactor->disk().poll()) {
        CHECK(completion.token == 7);
        result = completion.result;
        done = true;
      }
      if (!done) reactor->wait(-1);
    }
    CHECK(result == 0);
    CHECK(worker != owner);
    CHECK(std::filesystem::file_size(path) == 64 << 10);

    // The file is there already.
    reactor->disk().submit_background(make_spare, 8);
    CHECK(result_of(*reactor, 8) == -EIO);
  });
}

TEST_CASE("a reactor destroyed with writes in flight waits for them") {
  on_each_backend([](Backend backend) {
    const Directory directory;
    const std::size_t descriptors = open_descriptors();
    auto reactor = reactor_of(backend);
    auto file = reactor->disk().open(directory.path + "/segment", OpenMode::create_direct);
    REQUIRE(file);
    auto pages = std::make_unique<Page[]>(256);
    std::memset(pages.get(), 0x5A, 256 * sizeof(Page));
    const iovec piece{pages.get(), 256 * sizeof(Page)};
    reactor->disk().submit_write(*file, 0, {&piece, 1}, 1);
    reactor->turn();
    reactor.reset();
    pages.reset();
    ::close(static_cast<int>(*file));
    CHECK(open_descriptors() == descriptors);
  });
}

TEST_CASE("the blocking calls do what they say and name the file when they fail") {
  on_each_backend([](Backend backend) {
    const Directory directory;
    const auto reactor = reactor_of(backend);
    Disk& disk = reactor->disk();
    const std::string folder = directory.path + "/folder";
    REQUIRE(disk.make_directory(folder));
    CHECK(disk.make_directory(folder).has_value());
    CHECK(disk.make_directory(directory.path + "/with/parents"));

    const auto missing = disk.open(folder + "/missing", OpenMode::read);
    REQUIRE(!missing);
    CHECK(missing.error().message.find(folder + "/missing: ENOENT") != std::string::npos);

    for (const char* name : {"/b", "/a"}) {
      auto file = disk.open(folder + name, OpenMode::append);
      REQUIRE(file);
      const auto half = pattern(100, 1);
      // An append goes to the end, whatever the offset says.
      REQUIRE(disk.write(*file, 0, half));
      REQUIRE(disk.write(*file, 0, half));
      REQUIRE(disk.sync(*file));
      CHECK(disk.size(*file).value() == 200);
      REQUIRE(disk.truncate(*file, 150));
      disk.close(*file);
    }
    CHECK(content_of(disk, folder + "/a").size() == 150);
    CHECK(disk.list(folder).value() == std::vector<std::string>{"a", "b"});
    REQUIRE(disk.rename(folder + "/a", folder + "/c"));
    REQUIRE(disk.remove(folder + "/b"));
    REQUIRE(disk.sync_directory(folder));
    CHECK(disk.list(folder).value() == std::vector<std::string>{"c"});
    CHECK(!disk.list(folder + "/c"));
    CHECK(!disk.remove(folder + "/b"));
    CHECK(!disk.open(folder + "/c", OpenMode::create_direct));
  });
}

TEST_CASE("a directory that somebody holds locked is busy") {
  on_each_backend([](Backend backend) {
    const Directory directory;
    const auto reactor = reactor_of(backend);
    Disk& disk = reactor->disk();
    const auto first = disk.open_directory(directory.path);
    const auto second = disk.open_directory(directory.path);
    REQUIRE((first && second));
    REQUIRE(disk.lock(*first));
    const auto refused = disk.lock(*second);
    REQUIRE(!refused);
    CHECK(refused.error().code == ErrorCode::busy);
    CHECK(refused.error().message.find(directory.path) != std::string::npos);
    disk.close(*first);
    CHECK(disk.lock(*second).has_value());
    disk.close(*second);
  });
}
