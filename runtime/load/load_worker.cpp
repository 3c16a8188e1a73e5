// SPDX-License-Identifier: Apache-2.0
#include "runtime/load/load_worker.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

#include "base/clock.hpp"

namespace lockstep {
namespace {

/// Frames gathered before they are written, so that a deep pipeline does not wait in this process.
constexpr int sends_per_flush = 32;
constexpr std::int64_t longest_wait_ns = 100'000'000;

std::int64_t steady_ns() {
  return SystemClock().steady_ns();
}

}  // namespace

LoadWorker::LoadWorker(const LoadOptions& options, std::unique_ptr<Workload> workload)
    : options_(options), workload_(std::move(workload)), interval_ns_(options.rate > 0 ? 1e9 / options.rate : 0) {}

LoadWorker::~LoadWorker() {
  if (epoll_ >= 0) ::close(epoll_);
}

Result<std::unique_ptr<LoadWorker>> LoadWorker::open(const LoadOptions& options, std::uint32_t thread,
                                                     std::unique_ptr<Workload> workload) {
  std::unique_ptr<LoadWorker> worker(new LoadWorker(options, std::move(workload)));
  worker->epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (worker->epoll_ < 0) return fail(ErrorCode::io, "epoll_create1: " + std::generic_category().message(errno));
  for (std::uint32_t index = thread; index < options.connections; index += options.threads) {
    auto connection = LoadConnection::open(options);
    if (!connection) return std::unexpected(connection.error());
    worker->members_.push_back({std::move(*connection), index});
    epoll_event event{EPOLLIN, {.u64 = worker->members_.size() - 1}};
    if (::epoll_ctl(worker->epoll_, EPOLL_CTL_ADD, worker->members_.back().connection.descriptor(), &event) != 0)
      return fail(ErrorCode::io, "epoll_ctl: " + std::generic_category().message(errno));
  }
  return worker;
}

void LoadWorker::run(std::int64_t start_ns) {
  start_ns_ = last_answer_ns_ = start_ns;
  while (!is_done()) {
    const std::int64_t now_ns = steady_ns();
    const std::int64_t next_plan_ns = send_due(now_ns);
    if (in_flight() != 0 && now_ns - silent_since_ns_ > options_.patience_ns) {
      for (Member& member : members_) count_out(member);
      break;
    }
    wait(next_plan_ns);
  }
  for (Member& member : members_) member.connection.say_goodbye();
}

std::int64_t LoadWorker::plan_ns(std::uint64_t index) const {
  return start_ns_ + static_cast<std::int64_t>(static_cast<double>(index) * interval_ns_);
}

std::int64_t LoadWorker::send_due(std::int64_t now_ns) {
  std::int64_t next_plan_ns = INT64_MAX;
  for (std::size_t i = 0; i != members_.size(); ++i) {
    Member& member = members_[i];
    int gathered = 0;
    while (member.next_index < options_.requests && member.connection.can_send() && member.is_writable) {
      const std::int64_t planned_ns = plan_ns(member.next_index);
      if (planned_ns > now_ns) {
        next_plan_ns = std::min(next_plan_ns, planned_ns);
        break;
      }
      // Warm-up requests carry a plan before the start: they are answered, not measured.
      const bool measured = member.next_index >= options_.warmup;
      const std::int64_t timed_from_ns = interval_ns_ == 0 ? now_ns : planned_ns;
      if (in_flight() == 0) silent_since_ns_ = now_ns;
      if (measured) measured_from_ns_ = std::min(measured_from_ns_, timed_from_ns);
      member.connection.send(workload_->make(member.next_index), measured ? timed_from_ns : -timed_from_ns);
      member.next_index += options_.connections;
      ++result_.sent;
      if (++gathered % sends_per_flush == 0) watch(i, !member.connection.flush());
    }
    if (member.is_writable && gathered % sends_per_flush != 0) watch(i, !member.connection.flush());
    if (member.connection.is_over()) count_out(member);
  }
  return next_plan_ns;
}

/// Asks to be told when a connection that took no more can be written again; its next requests wait until then.
void LoadWorker::watch(std::size_t index, bool for_write) {
  Member& member = members_[index];
  if (member.is_writable != for_write) return;
  member.is_writable = !for_write;
  epoll_event event{EPOLLIN | (for_write ? std::uint32_t{EPOLLOUT} : 0U), {.u64 = index}};
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, member.connection.descriptor(), &event);
}

void LoadWorker::wait(std::int64_t until_ns) {
  const std::int64_t left_ns = std::clamp<std::int64_t>(until_ns - steady_ns(), 0, longest_wait_ns);
  const timespec timeout{0, left_ns};
  std::array<epoll_event, 256> events;
  const int ready = ::epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), &timeout, nullptr);
  for (int i = 0; i < ready; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    Member& member = members_[event.data.u64];
    if ((event.events & EPOLLOUT) != 0) watch(event.data.u64, !member.connection.flush());
    receive(member);
  }
}

void LoadWorker::receive(Member& member) {
  member.connection.receive();
  const std::int64_t now_ns = steady_ns();
  while (const auto answer = member.connection.next_answer()) count(*answer, now_ns);
  if (member.connection.is_over()) count_out(member);
}

void LoadWorker::count(const LoadConnection::Answer& answer, std::int64_t now_ns) {
  last_answer_ns_ = silent_since_ns_ = now_ns;
  answers_.fetch_add(1, std::memory_order_relaxed);
  if (answer.planned_ns >= 0) result_.latency_ns.add(static_cast<std::uint64_t>(now_ns - answer.planned_ns));
  if (answer.is_reply) {
    ++result_.answered;
    return;
  }
  ++(answer.error.code == wire::WireError::trapped ? result_.trapped : result_.refused);
  if (result_.first_error.empty()) result_.first_error = answer.text;
}

/// What a connection that has ended, or a run without patience, still owed.
void LoadWorker::count_out(Member& member) {
  if (std::exchange(member.is_counted_out, true)) return;
  result_.lost += member.connection.in_flight();
  const bool had_all = member.connection.in_flight() == 0 && member.next_index >= options_.requests;
  if (!had_all) {
    result_.disconnected |= member.connection.is_over();
    if (result_.ended_by.empty())
      result_.ended_by = member.connection.is_over()
                             ? member.connection.reason()
                             : fmt::format("no answer within {:g} s", static_cast<double>(options_.patience_ns) / 1e9);
  }
  member.next_index = options_.requests;
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, member.connection.descriptor(), nullptr);
}

/// What was sent and is still waited for.
std::uint64_t LoadWorker::in_flight() const {
  return result_.sent - result_.answered - result_.refused - result_.trapped - result_.lost;
}

bool LoadWorker::is_done() const {
  return std::ranges::all_of(members_, [&](const Member& member) {
    return member.is_counted_out || (member.next_index >= options_.requests && member.connection.in_flight() == 0);
  });
}

}  // namespace lockstep
