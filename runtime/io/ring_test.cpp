// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/ring.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <vector>

#include "base/descriptor.hpp"
#include "runtime/io/buffer_ring.hpp"

using namespace lockstep;
using namespace lockstep::io;

namespace {

/// Opens a small ring, or says that this host has none.
bool open_or_leave_out(Ring& ring, std::uint32_t submissions, std::uint32_t completions) {
  const int result = ring.open(submissions, completions);
  if (result == -EPERM || result == -ENOSYS) {
    MESSAGE("left out: this host forbids io_uring");
    return false;
  }
  REQUIRE(result == 0);
  return true;
}

void queue_nops(Ring& ring, std::uint32_t first, std::uint32_t count) {
  for (std::uint32_t i = first; i < first + count; ++i) {
    ring.queue({TagKind::sync, 0, i}, [](io_uring_sqe* entry) { io_uring_prep_nop(entry); });
  }
}

/// The slots of the completions that come until `count` have, in order.
std::vector<std::uint32_t> slots_of(Ring& ring, std::size_t count) {
  std::vector<std::uint32_t> slots;
  for (int turn = 0; slots.size() < count && turn < 1000; ++turn) {
    ring.submit_and_gather();
    ring.reap([&](const RingCompletion& completion) { slots.push_back(completion.tag.slot); });
  }
  return slots;
}

std::vector<std::uint32_t> up_to(std::uint32_t count) {
  std::vector<std::uint32_t> all(count);
  for (std::uint32_t i = 0; i < count; ++i) all[i] = i;
  return all;
}

}  // namespace

TEST_CASE("a tag survives the trip through 64 bits and knows a newer generation") {
  const Tag tag{TagKind::send, 0x01ABCDEF, 0xFFFF'FFFE};
  const Tag back = Tag::unpack(tag.packed());
  CHECK(back.kind == TagKind::send);
  CHECK(back.slot == 0xFFFF'FFFE);
  CHECK(back.matches(0x01ABCDEF));
  CHECK(!back.matches(0x01ABCDF0));
}

TEST_CASE("the ring opens on a step of the ladder") {
  Ring ring;
  if (!open_or_leave_out(ring, 8, 64)) return;
  CHECK(std::ranges::count(setup_ladder(), ring.setup_flags()) == 1);
  CHECK(setup_flags_text(ring.setup_flags()).find("CQSIZE") != std::string::npos);
}

TEST_CASE("more submissions than the queue holds all complete, in order") {
  Ring ring;
  if (!open_or_leave_out(ring, 4, 1024)) return;
  REQUIRE(ring.bind_to_this_thread() == 0);
  queue_nops(ring, 0, 500);
  CHECK(slots_of(ring, 500) == up_to(500));
}

TEST_CASE("what was queued before the ring was enabled runs first, in order, in the thread that enables it") {
  Ring ring;
  if (!open_or_leave_out(ring, 4, 1024)) return;
  queue_nops(ring, 0, 50);
  std::vector<std::uint32_t> slots;
  std::thread owner([&] {
    const int bound = ring.bind_to_this_thread();
    queue_nops(ring, 50, 10);
    if (bound == 0) slots = slots_of(ring, 60);
  });
  owner.join();
  CHECK(slots == up_to(60));
}

TEST_CASE("an overflown completion queue loses nothing, keeps the order, and is counted") {
  Ring ring;
  if (!open_or_leave_out(ring, 4, 8)) return;
  REQUIRE(ring.bind_to_this_thread() == 0);
  // Each flush of the full submission queue adds completions that nobody reaps.
  queue_nops(ring, 0, 200);
  CHECK(slots_of(ring, 200) == up_to(200));
  CHECK(ring.overflows() > 0);
}

TEST_CASE("a thread that does not own the ring is refused by the kernel") {
  Ring ring;
  if (!open_or_leave_out(ring, 8, 64)) return;
  if ((ring.setup_flags() & IORING_SETUP_SINGLE_ISSUER) == 0) return;
  REQUIRE(ring.bind_to_this_thread() == 0);
  int result = 0;
  std::thread stranger([&] {
    const int fd = ring.native()->ring_fd;
    result = io_uring_enter(static_cast<unsigned>(fd), 0, 0, IORING_ENTER_GETEVENTS, nullptr);
  });
  stranger.join();
  CHECK(result == -EEXIST);
}

TEST_CASE("closing a ring from a stranger's thread leaves the stranger's own ring registered") {
  Ring own;
  if (!open_or_leave_out(own, 8, 64)) return;
  REQUIRE(own.bind_to_this_thread() == 0);
  Ring other;
  REQUIRE(other.open(8, 64) == 0);
  std::thread owner([&] { CHECK(other.bind_to_this_thread() == 0); });
  owner.join();
  other.close();
  queue_nops(own, 0, 3);
  CHECK(slots_of(own, 3) == up_to(3));
}

TEST_CASE("a sleep with nothing to come ends by its limit") {
  Ring ring;
  if (!open_or_leave_out(ring, 8, 64)) return;
  REQUIRE(ring.bind_to_this_thread() == 0);
  ring.submit_and_sleep(1'000'000);
  CHECK(ring.reap([](const RingCompletion&) {}) == 0);
}

TEST_CASE("a multishot receive that finds no buffer ends with ENOBUFS, and the bytes come after a refill") {
  ReceiveBuffers buffers;
  BufferRing buffer_ring;
  Ring ring;
  if (!open_or_leave_out(ring, 8, 64)) return;
  REQUIRE(buffers.map(4, 64));
  REQUIRE(buffer_ring.open(ring, buffers, 0));
  REQUIRE(ring.bind_to_this_thread() == 0);
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
  const Descriptor near(pair[0]), far(pair[1]);

  std::vector<RingCompletion> seen;
  const auto arm = [&] {
    ring.queue({.kind = TagKind::receive}, [&](io_uring_sqe* entry) {
      io_uring_prep_recv_multishot(entry, near.get(), nullptr, 0, 0);
      entry->flags |= IOSQE_BUFFER_SELECT;
      entry->buf_group = buffer_ring.group();
    });
  };
  const auto gather = [&] {
    ring.submit_and_sleep(1'000'000'000);
    ring.reap([&](const RingCompletion& completion) {
      seen.push_back(completion);
      if ((completion.flags & IORING_CQE_F_BUFFER) != 0) buffer_ring.consumed();
    });
  };
  const std::byte five_buffers_full[5 * 64] = {};
  REQUIRE(::send(far.get(), five_buffers_full, sizeof five_buffers_full, 0) == sizeof five_buffers_full);
  arm();
  for (int i = 0; i < 10 && (seen.empty() || (seen.back().flags & IORING_CQE_F_MORE) != 0); ++i) gather();
  REQUIRE(seen.size() == 5);
  CHECK(seen[3].result == 64);
  CHECK(seen[4].result == -ENOBUFS);
  CHECK(buffer_ring.available() == 0);

  buffer_ring.give_back(2);
  buffer_ring.publish();
  CHECK(buffer_ring.available() == 1);
  arm();
  gather();
  REQUIRE(seen.size() >= 6);
  CHECK(seen[5].result == 64);
  CHECK((seen[5].flags >> IORING_CQE_BUFFER_SHIFT) == 2);
  ring.close();
}
