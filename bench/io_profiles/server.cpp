// SPDX-License-Identifier: Apache-2.0
#include "bench/io_profiles/server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <semaphore>
#include <thread>

#include "base/system_error.hpp"
#include "bench/io_profiles/service.hpp"
#include "bench/support/cpu.hpp"

namespace lockstep::bench {
namespace {

bool read_all(int fd, void* to, std::size_t bytes) {
  return ::recv(fd, to, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}

void write_all(int fd, const void* from, std::size_t bytes) {
  if (::send(fd, from, bytes, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes)) server_failed("answer the bench", errno);
}

std::uint16_t listen_on_loopback(const Descriptor& listener) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.get(), generic, length) != 0 || ::listen(listener.get(), SOMAXCONN) != 0 ||
      ::getsockname(listener.get(), generic, &length) != 0)
    server_failed("listen on 127.0.0.1", errno);
  return ntohs(address.sin_port);
}

std::byte* map_memory(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) server_failed("mmap", errno);
  return static_cast<std::byte*>(memory);
}

/// The process ends without closing them.
void accept_all(const Descriptor& listener, ServiceState& state) {
  for (std::uint32_t i = 0; i < state.plan.connections; ++i) {
    const int fd = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) server_failed("accept", errno);
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    state.connections.emplace_back(fd, state.memory + i * Connection::memory_bytes);
  }
}

std::unique_ptr<Service> make_service(ServiceState& state) {
  switch (state.plan.profile) {
    case Profile::epoll_pool:
      return make_epoll_pool(state);
    case Profile::shared_ring:
      return make_shared_ring(state);
    default:
      return make_own_rings(state);
  }
}

void start_worker(Service& service, const ServerPlan& plan, std::size_t worker) {
  std::binary_semaphore serves(0);
  std::thread([&service, &serves, worker, cpu = plan.worker_cpus[worker]] {
    if (!pin_to_cpu(cpu)) server_failed("pin a worker", errno);
    service.run(worker, [&serves] { serves.release(); });
  }).detach();
  serves.acquire();
}

std::int64_t nanoseconds(const timeval& time) {
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_usec * std::int64_t{1000};
}

ServerUsage usage_of(const ServiceState& state) {
  ServerUsage usage;
  for (std::uint32_t i = 0; i < state.plan.workers; ++i) {
    usage.requests += state.counts[i].requests.load(std::memory_order_relaxed);
    usage.system_calls += state.counts[i].system_calls.load(std::memory_order_relaxed);
  }
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  usage.voluntary_switches = used.ru_nvcsw;
  usage.involuntary_switches = used.ru_nivcsw;
  usage.cpu_ns = nanoseconds(used.ru_utime) + nanoseconds(used.ru_stime);
  return usage;
}

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "bench_io_profiles: {}\n", why);
  std::exit(1);
}

}  // namespace

void server_failed(std::string_view operation, int error) {
  fmt::print(stderr, "bench_io_profiles: server: {}: {}\n", operation, errno_text(error));
  std::_Exit(1);
}

int serve(int control) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ServiceState state;
  if (!read_all(control, &state.plan, sizeof state.plan)) return 1;
  state.counts = std::make_unique<WorkerCounts[]>(state.plan.workers);
  state.memory = map_memory(state.plan.connections * Connection::memory_bytes);
  const Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const std::uint16_t port = listen_on_loopback(listener);
  write_all(control, &port, sizeof port);
  accept_all(listener, state);
  const std::unique_ptr<Service> service = make_service(state);
  for (std::uint32_t i = 0; i < state.plan.workers; ++i) start_worker(*service, state.plan, i);
  for (char question = 0; read_all(control, &question, sizeof question);) {
    const ServerUsage usage = usage_of(state);
    write_all(control, &usage, sizeof usage);
  }
  std::_Exit(0);  // the workers never end by themselves
}

ServerProcess::ServerProcess(const ServerPlan& plan) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    give_up(fmt::format("socketpair: {}", errno_text(errno)));
  control_.reset(pair[0]);
  const Descriptor servers_end(pair[1]);
  const Descriptor inherited(::dup(servers_end.get()));  // without CLOEXEC: it survives exec
  const std::string number = fmt::format("{}", inherited.get());
  pid_ = ::fork();
  if (pid_ < 0) give_up(fmt::format("fork: {}", errno_text(errno)));
  if (pid_ == 0) {
    ::execl("/proc/self/exe", "bench_io_profiles", serve_option, number.c_str(), nullptr);
    ::_exit(127);
  }
  write_all(control_.get(), &plan, sizeof plan);
  receive(&port_, sizeof port_);
}

void ServerProcess::wait_until_ready() {
  static_cast<void>(usage());  // it answers once all workers serve
}

ServerUsage ServerProcess::usage() {
  const char question = '?';
  write_all(control_.get(), &question, sizeof question);
  ServerUsage answer;
  receive(&answer, sizeof answer);
  return answer;
}

void ServerProcess::receive(void* to, std::size_t bytes) {
  if (!read_all(control_.get(), to, bytes)) give_up("the server ended before its time; see what it said above");
}

void ServerProcess::stop() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace lockstep::bench
