// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/io_caps.hpp"

#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/log.hpp"
#include "runtime/io/test_support.hpp"

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::io::test;

namespace {

/// Runs `body` in a child process, which a filter or a lost capability may spoil; its return value, below 128.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(body());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Makes io_uring_setup fail with `error` for this process, as the profiles of container engines do.
bool forbid_io_uring(int error) {
  const auto answer = SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(error) & SECCOMP_RET_DATA);
  sock_filter program[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, __NR_io_uring_setup},
      {BPF_RET | BPF_K, 0, 0, answer},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog filter{4, program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

/// One byte there and back through a reactor, without doctest: for children.
bool echoes(Reactor& reactor) {
  const auto bound = reactor.network().listen({});
  if (!bound) return false;
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  if (!try_connect(socket.get(), bound->port) || ::send(socket.get(), "x", 1, 0) != 1) return false;
  std::byte byte{};
  for (int i = 0; i < 1000; ++i) {
    reactor.turn();
    for (const NetworkEvent& event : reactor.network().poll()) {
      if (event.kind == NetworkEventKind::sent) return ::recv(socket.get(), &byte, 1, 0) == 1 && byte == std::byte{'x'};
      if (event.kind != NetworkEventKind::received) continue;
      byte = event.data[0];
      reactor.network().send(event.connection, {&byte, 1});
    }
    reactor.wait(10'000'000);
  }
  return false;
}

bool drop_lock_capability() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  data[CAP_IPC_LOCK / 32].effective &= ~(1u << (CAP_IPC_LOCK % 32));
  data[CAP_IPC_LOCK / 32].permitted &= ~(1u << (CAP_IPC_LOCK % 32));
  return ::syscall(SYS_capset, &header, data) == 0;
}

}  // namespace

TEST_CASE("the diagnosis names the cause that the surroundings show, and the remedy") {
  const Error seccomp = ring_unavailable(EPERM, {"6.18.44", 0, 2});
  CHECK(seccomp.code == ErrorCode::unsupported);
  CHECK(seccomp.message ==
        "io_uring unavailable: io_uring_setup: EPERM (Operation not permitted) [kernel 6.18.44, "
        "kernel.io_uring_disabled=0, Seccomp: 2] -> blocked by a seccomp profile (the default of Docker and "
        "Kubernetes). Fix: allow io_uring_setup, io_uring_enter and io_uring_register (--security-opt seccomp=...), or "
        "run with --io=epoll.");
  const Error sysctl = ring_unavailable(EPERM, {"6.6.0", 2, 0});
  CHECK(contains(sysctl.message, "Fix: set kernel.io_uring_disabled=0"));
  // The sysctl stops it whatever the filter would say.
  CHECK(contains(ring_unavailable(EPERM, {"6.6.0", 1, 2}).message, "sysctl"));
  CHECK(contains(ring_unavailable(ENOSYS, {"5.0", -1, 0}).message, "absent"));
  CHECK(contains(ring_unavailable(ENOSYS, {"6.1.0", -1, 2}).message, "seccomp"));
  CHECK(contains(ring_unavailable(EINVAL, {"5.10", -1, 0}).message, "Linux 6.1"));
  CHECK(contains(ring_unavailable(EPERM, {"6.6.0", 0, 0}).message, "security module"));
}

TEST_CASE("a shortage is no reason to fall back") {
  CHECK(ring_unavailable(ENOMEM, {"6.18.44", 0, 0}).code == ErrorCode::full);
  CHECK(ring_unavailable(EMFILE, {"6.18.44", 0, 0}).code == ErrorCode::full);
}

TEST_CASE("where a seccomp filter forbids io_uring, automatic runs on epoll and uring fails with the cause") {
  for (const int error : {EPERM, ENOSYS}) {
    CAPTURE(error);
    const int result = in_child([error] {
      if (!forbid_io_uring(error)) return 1;
      const auto automatic = make_reactor(Backend::automatic);
      if (!automatic || (*automatic)->backend() != "epoll") return 2;
      if (!echoes(**automatic)) return 3;
      const auto insisted = make_reactor(Backend::uring);
      if (insisted || insisted.error().code != ErrorCode::unsupported) return 4;
      if (!contains(insisted.error().message, "seccomp")) return 5;
      const auto rows = probe_io_uring();
      if (rows.size() != 1 || rows[0].good || rows[0].instead != "epoll") return 6;
      return 0;
    });
    CHECK(result == 0);
  }
}

TEST_CASE("without CAP_IPC_LOCK and with little lockable memory io_uring still serves") {
  if (!make_reactor(Backend::uring)) return;
  const int result = in_child([] {
    if (!drop_lock_capability()) return 1;
    rlimit limit{};
    ::getrlimit(RLIMIT_MEMLOCK, &limit);
    limit.rlim_cur = 64 << 10;
    if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0) return 2;
    const auto reactor = make_reactor(Backend::uring);
    if (!reactor) return log_line(LogLevel::error, "test", reactor.error().message), 3;
    return echoes(**reactor) ? 0 : 4;
  });
  CHECK(result == 0);
}

TEST_CASE("each row of the report that is not good says what is used instead or what to change") {
  for (const Capability& row : probe_io_uring()) {
    CAPTURE(row.feature);
    CHECK(!row.here.empty());
    CHECK((row.good || !row.instead.empty() || !row.remedy.empty()));
  }
}
