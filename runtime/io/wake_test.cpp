// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "runtime/io/test_support.hpp"
#include "runtime/io/waker.hpp"

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::io::test;

namespace {

/// One thread adds to a plain counter and wakes, another sleeps until it has seen each addition; the plain counter
/// shows (to a thread sanitizer too) that a wake publishes what came before it. `wake` and `sleep` as a reactor's.
/// Returns false when a sleep had to be ended by its ten seconds' limit: a lost wake.
template <class Wake, class Sleep>
bool hand_over(int rounds, Wake wake, Sleep sleep) {
  std::atomic<int> given{0}, taken{0};
  int payload = 0;
  bool lost = false;
  std::thread giver([&] {
    std::mt19937 random(1);
    for (int i = 1; i <= rounds; ++i) {
      payload = i;
      given.store(i, std::memory_order_release);  // pairs with the owner's acquire load
      wake();
      if (random() % 4 == 0) wake();
      for (auto spin = random() % 200; spin > 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
      while (taken.load(std::memory_order_acquire) != i) std::this_thread::yield();
    }
  });
  for (int seen = 0; seen < rounds;) {
    const auto before = std::chrono::steady_clock::now();
    sleep();
    const int now = given.load(std::memory_order_acquire);
    if (now == seen && std::chrono::steady_clock::now() - before > std::chrono::seconds(9)) lost = true;
    if (now == seen && !lost) continue;
    if (payload != now) lost = true;
    seen = now;
    taken.store(seen, std::memory_order_release);
    if (lost) break;
  }
  if (lost) taken.store(rounds, std::memory_order_release);
  giver.join();
  return !lost;
}

}  // namespace

TEST_CASE("a wake costs a system call only when the owner sleeps") {
  Waker waker;
  REQUIRE(waker.open());
  for (int i = 0; i < 1000; ++i) waker.wake();
  CHECK(waker.wakes() == 0);
  CHECK(!waker.begin_sleep());
  waker.end_sleep();
  CHECK(waker.begin_sleep());
  waker.wake();
  waker.wake();
  CHECK(waker.wakes() == 1);
  waker.end_sleep();
  CHECK(waker.begin_sleep());
}

TEST_CASE("no wake is lost between looking and falling asleep") {
  Waker waker;
  REQUIRE(waker.open());
  const auto sleep = [&] {
    if (waker.begin_sleep()) {
      pollfd readable{waker.descriptor(), POLLIN, 0};
      ::poll(&readable, 1, 10'000);
      std::uint64_t count = 0;
      if ((readable.revents & POLLIN) != 0) CHECK(::read(waker.descriptor(), &count, sizeof count) == sizeof count);
    }
    waker.end_sleep();
  };
  CHECK(hand_over(20'000, [&] { waker.wake(); }, sleep));
}

TEST_CASE("no wake of a reactor is lost, whatever it waits in") {
  on_each_backend([](Backend backend) {
    const auto reactor = reactor_of(backend);
    const auto sleep = [&] {
      reactor->wait(10'000'000'000);
      reactor->turn();
    };
    CHECK(hand_over(5'000, [&] { reactor->wake(); }, sleep));
  });
}

TEST_CASE("a wake that comes before the wait ends it without sleeping") {
  on_each_backend([](Backend backend) {
    const auto reactor = reactor_of(backend);
    reactor->turn();
    reactor->wake();
    reactor->wait(-1);
    CHECK(reactor->counters().sleeps == 0);
    CHECK(reactor->counters().wakes == 0);
  });
}

TEST_CASE("a reactor may be made and told to listen in one thread, and turned in another") {
  on_each_backend([](Backend backend) {
    auto reactor = reactor_of(backend);
    const auto bound = reactor->network().listen({});
    REQUIRE(bound);
    const Descriptor socket = connect_to(bound->port);
    std::size_t accepted = 0;
    std::thread owner([&] {
      for (int i = 0; i < 1000 && accepted == 0; ++i) {
        reactor->turn();
        accepted += reactor->network().poll().size();
        reactor->wait(10'000'000);
      }
    });
    owner.join();
    CHECK(accepted == 1);
    reactor.reset();  // the owner has ended
  });
}
