// SPDX-License-Identifier: Apache-2.0
#include "runtime/runner.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>

#include "base/assert.hpp"
#include "base/cpu_relax.hpp"
#include "base/futex.hpp"
#include "base/log.hpp"

namespace lockstep {
namespace {

void pin_this_thread(const std::string& name, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (const int error = pthread_setaffinity_np(pthread_self(), sizeof set, &set); error != 0)
    log(LogLevel::warning, "runner", "{}: cannot pin to cpu {} (errno {}); it runs unpinned", name, cpu, error);
}

}  // namespace

Runner::Runner(RunnerOptions options, Clock& clock, io::Reactor* reactor, std::vector<Agent*> agents)
    : options_(std::move(options)), clock_(clock), reactor_(reactor), agents_(std::move(agents)) {}

Runner::~Runner() {
  request_stop();
  join();
}

void Runner::start() {
  LOCKSTEP_ASSERT(!thread_.joinable(), "a runner is started once");
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), options_.name.substr(0, 15).c_str());
    if (options_.cpu >= 0) pin_this_thread(options_.name, options_.cpu);
    loop();
    if (on_stop_) on_stop_();
  });
}

void Runner::request_stop() {
  stop_.store(true, std::memory_order_release);  // pairs with the acquire load in loop()
  notify();
}

void Runner::join() {
  if (thread_.joinable()) thread_.join();
}

int Runner::turn() {
  const Now now{clock_.real_ns(), clock_.steady_ns()};
  int done = reactor_ != nullptr ? reactor_->turn() : 0;
  for (Agent* agent : agents_) done += agent->do_work(now);
  return done;
}

void Runner::loop() {
  std::int64_t idle_since_ns = -1;
  while (!stop_.load(std::memory_order_acquire)) {  // pairs with request_stop()
    if (turn() > 0) {
      idle_since_ns = -1;
      wake_peers();
      continue;
    }
    const std::int64_t now_ns = clock_.steady_ns();
    if (idle_since_ns < 0) idle_since_ns = now_ns;
    if (now_ns - idle_since_ns < options_.spin_ns) {
      cpu_relax();
      continue;
    }
    sched_yield();
    asleep_.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence in wake_peers() and notify()
    if (turn() > 0) {
      asleep_.store(0, std::memory_order_relaxed);
      idle_since_ns = -1;
      wake_peers();
      continue;
    }
    const std::int64_t deadline_ns = next_deadline_ns();
    const std::int64_t timeout_ns = deadline_ns == INT64_MAX ? -1 : std::max<std::int64_t>(0, deadline_ns - now_ns);
    if (!stop_.load(std::memory_order_acquire)) sleep(timeout_ns);
    asleep_.store(0, std::memory_order_relaxed);
    idle_since_ns = -1;
  }
}

void Runner::sleep(std::int64_t timeout_ns) {
  sleeps_.store(sleeps_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (reactor_ != nullptr)
    reactor_->wait(timeout_ns);
  else
    futex_wait(asleep_, 1, timeout_ns);
}

void Runner::notify() {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence in loop()
  if (asleep_.load(std::memory_order_relaxed) == 0) return;
  if (asleep_.exchange(0, std::memory_order_relaxed) == 0) return;  // somebody else is waking it
  if (reactor_ != nullptr)
    reactor_->wake();
  else
    futex_wake(asleep_);
}

void Runner::introduce(std::span<const std::unique_ptr<Runner>> runners) {
  for (const auto& runner : runners) {
    runner->peers_.clear();
    for (const auto& peer : runners)
      if (peer != runner) runner->peers_.push_back(peer.get());
  }
}

void Runner::wake_peers() {
  for (Runner* peer : peers_) peer->notify();
}

std::int64_t Runner::next_deadline_ns() const {
  std::int64_t earliest_ns = INT64_MAX;
  for (const Agent* agent : agents_) earliest_ns = std::min(earliest_ns, agent->deadline_ns());
  return earliest_ns;
}

}  // namespace lockstep
