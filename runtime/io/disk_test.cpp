// SPDX-License-Identifier: Apache-2.0
#include "journal/disk.hpp"

#include <cstring>
#include <filesystem>

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

/// Turns the reactor until `token` completes; its result.
std::int64_t result_of(Reactor& reactor, std::uint64_t token) {
  for (int i = 0; i < 1000; ++i) {
    reactor.turn();
    for (const DiskCompletion& completion : reactor.disk().poll()) {
      if (completion.token == token) return completion.result;
    }
    reactor.wait(10'000'000);
  }
  FAIL("a submitted operation never completed");
  return 0;
}

struct alignas(4096) Page {
  std::byte bytes[4096];
};

}  // namespace

TEST_CASE("bytes written past the page cache and synced read back") {
  on_each_backend([](Backend backend) {
    const Directory directory;
    const auto reactor = reactor_of(backend);
    Disk& disk = reactor->disk();
    const std::string path = directory.path + "/segment";
    auto file = disk.open(path, OpenMode::create_direct);
    REQUIRE(file);
    REQUIRE(disk.zero_fill(*file, 1 << 20));
    CHECK(disk.size(*file).value() == 1 << 20);

    auto pages = std::make_unique<Page[]>(3);
    const auto bytes = pattern(3 * sizeof(Page), 7);
    std::memcpy(pages.get(), bytes.data(), bytes.size());
    const iovec pieces[] = {{&pages[0], sizeof(Page)}, {&pages[1], 2 * sizeof(Page)}};
    disk.submit_write(*file, 8192, pieces, 1);
    CHECK(result_of(*reactor, 1) == 3 * sizeof(Page));
    disk.submit_sync(*file, 2);
    CHECK(result_of(*reactor, 2) == 0);
    disk.close(*file);

    auto reader = disk.open(path, OpenMode::read);
    REQUIRE(reader);
    std::vector<std::byte> back(bytes.size());
    CHECK(disk.read(*reader, 8192, back).value() == back.size());
    CHECK(back == bytes);
    disk.close(*reader);
  });
}
