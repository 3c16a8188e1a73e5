// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/io_caps.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include <cerrno>
#include <fstream>
#include <memory>

#include "base/descriptor.hpp"
#include "base/system_error.hpp"
#include "runtime/io/buffer_ring.hpp"
#include "runtime/io/proc_files.hpp"
#include "runtime/io/ring.hpp"
#include "runtime/io/uring_abi.hpp"
#include "runtime/io/zero_copy.hpp"

namespace lockstep::io {
namespace {

RingSurroundings look_around() {
  utsname name{};
  ::uname(&name);
  return {name.release, static_cast<int>(number_in("/proc/sys/kernel/io_uring_disabled").value_or(-1)),
          static_cast<int>(status_field("Seccomp").value_or(0))};
}

struct Cause {
  std::string what;
  std::string remedy;
};

Cause cause_of(int error, const RingSurroundings& around) {
  if (error == EPERM && around.io_uring_disabled > 0)
    return {"switched off by the sysctl kernel.io_uring_disabled", "set kernel.io_uring_disabled=0"};
  if ((error == EPERM || error == ENOSYS) && around.seccomp == 2)
    return {"blocked by a seccomp profile (the default of Docker and Kubernetes)",
            "allow io_uring_setup, io_uring_enter and io_uring_register (--security-opt seccomp=...)"};
  if (error == EPERM) return {"forbidden by a security module or a sandbox", "permit io_uring to this process"};
  if (error == ENOSYS) return {"this kernel was built without it, or is older than 5.1", "use Linux 6.1 or newer"};
  return {"this kernel is too old for the way lockstep uses it", "use Linux 6.1 or newer"};
}

/// One ring with two buffers and a socket pair, for trying out.
class Trial {
 public:
  Result<void> open() {
    if (const int result = ring_.open(8, 64); result != 0) return std::unexpected(ring_unavailable(-result));
    if (auto mapped = buffers_.map(2, 64); !mapped) return mapped;
    if (auto opened = buffer_ring_.open(ring_, buffers_, 0); !opened) return opened;
    if (const int result = ring_.bind_to_this_thread(); result != 0)
      return system_failure("enable", "an io_uring", -result);
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      return system_failure("socketpair", "for a trial", errno);
    near_.reset(pair[0]);
    far_.reset(pair[1]);
    return {};
  }
  ~Trial() { ring_.close(); }

  /// Sends a byte from the far end; true when the armed receive brings it and stays armed.
  bool receives_and_goes_on() {
    if (::send(far_.get(), "x", 1, MSG_NOSIGNAL) != 1) return false;
    ring_.submit_and_sleep(1'000'000'000);
    bool good = false;
    ring_.reap([&](const RingCompletion& completion) {
      constexpr unsigned wanted = IORING_CQE_F_BUFFER | IORING_CQE_F_MORE;
      good = completion.result == 1 && (completion.flags & wanted) == wanted;
    });
    return good;
  }

  void arm_receive() {
    ring_.queue({.kind = TagKind::receive}, [this](io_uring_sqe* entry) {
      io_uring_prep_recv_multishot(entry, near_.get(), nullptr, 0, 0);
      entry->flags |= IOSQE_BUFFER_SELECT;
      entry->buf_group = buffer_ring_.group();
    });
  }

  Ring& ring() { return ring_; }

 private:
  ReceiveBuffers buffers_;
  BufferRing buffer_ring_;
  Descriptor near_, far_;
  Ring ring_;
};

Capability present(std::string feature, bool good, std::string instead, std::string remedy) {
  if (good) return {std::move(feature), true, "yes", "", ""};
  return {std::move(feature), false, "no", std::move(instead), std::move(remedy)};
}

constexpr const char* newer_kernel = "use Linux 6.1 or newer";

void add_setup(std::vector<Capability>& rows, const Ring& ring) {
  const unsigned flags = ring.setup_flags();
  rows.push_back({"io_uring", true, setup_flags_text(flags), "", ""});
  rows.push_back(present("deferred completions (DEFER_TASKRUN)", (flags & IORING_SETUP_DEFER_TASKRUN) != 0,
                         (flags & IORING_SETUP_COOP_TASKRUN) != 0 ? "COOP_TASKRUN" : "interrupts to the owner",
                         newer_kernel));
  rows.push_back(present("ring made in one thread, used in another (R_DISABLED)",
                         (flags & IORING_SETUP_R_DISABLED) != 0, "shared ring checks", newer_kernel));
  rows.push_back(present("completions kept when the queue is full (NODROP)",
                         (ring.features() & IORING_FEAT_NODROP) != 0, "a larger queue", newer_kernel));
}

void add_opcodes(std::vector<Capability>& rows, Ring& ring) {
  struct Use {
    int opcode;
    const char* feature;
  };
  constexpr Use uses[] = {{IORING_OP_ACCEPT, "accept"},       {IORING_OP_RECV, "receive"},
                          {IORING_OP_SEND, "send"},           {IORING_OP_ASYNC_CANCEL, "cancel"},
                          {IORING_OP_WRITEV, "vector write"}, {IORING_OP_FSYNC, "fdatasync"},
                          {IORING_OP_READ, "read (wakes)"}};
  const std::unique_ptr<io_uring_probe, decltype(&io_uring_free_probe)> probe(io_uring_get_probe_ring(ring.native()),
                                                                              &io_uring_free_probe);
  for (const Use& use : uses) {
    const bool known = probe != nullptr && io_uring_opcode_supported(probe.get(), use.opcode) != 0;
    rows.push_back(present(fmt::format("operation: {}", use.feature), known, "--io=epoll", newer_kernel));
  }
}

/// Registered buffers are charged to the user's locked memory; lockstep does without.
void add_locked_memory(std::vector<Capability>& rows, Ring& ring) {
  constexpr std::size_t trial_bytes = std::size_t{16} << 20;
  const auto memory = std::make_unique<std::byte[]>(trial_bytes);
  const iovec buffer{memory.get(), trial_bytes};
  const int result = io_uring_register_buffers(ring.native(), &buffer, 1);
  if (result == 0) io_uring_unregister_buffers(ring.native());
  Capability row{"16 MiB of registered buffers", true, result == 0 ? "yes" : errno_text(-result), "", ""};
  if (result != 0) row.instead = "plain buffers, which lockstep uses anyway";
  rows.push_back(std::move(row));
}

}  // namespace

Error ring_unavailable(int error, const RingSurroundings& around) {
  const bool forbidden = error == EPERM || error == ENOSYS || error == EINVAL;
  if (!forbidden) return system_error("io_uring_setup", "for a reactor", error);
  const Cause cause = cause_of(error, around);
  const std::string sysctl = around.io_uring_disabled < 0 ? "absent" : std::to_string(around.io_uring_disabled);
  return {ErrorCode::unsupported,
          fmt::format("io_uring unavailable: io_uring_setup: {} [kernel {}, kernel.io_uring_disabled={}, Seccomp: {}] "
                      "-> {}. Fix: {}, or run with --io=epoll.",
                      errno_text(error), around.kernel, sysctl, around.seccomp, cause.what, cause.remedy)};
}

Error ring_unavailable(int error) {
  return ring_unavailable(error, look_around());
}

Result<void> try_multishot_receive() {
  Trial trial;
  if (auto opened = trial.open(); !opened) return opened;
  trial.arm_receive();
  if (trial.receives_and_goes_on() && trial.receives_and_goes_on()) return {};
  return fail(ErrorCode::unsupported,
              fmt::format("io_uring unavailable: multishot receive into a buffer ring does not work on kernel {}. "
                          "Fix: {}, or run with --io=epoll.",
                          look_around().kernel, newer_kernel));
}

std::vector<Capability> probe_io_uring() {
  std::vector<Capability> rows;
  Ring ring;
  if (const int result = ring.open(1024, 32768); result != 0) {
    const Error error = ring_unavailable(-result);
    rows.push_back({"io_uring", false, errno_text(-result), "epoll", error.message});
    return rows;
  }
  add_setup(rows, ring);
  rows.push_back({"completion queue", ring.completion_entries() >= 32768,
                  fmt::format("{} entries", ring.completion_entries()), "", ""});
  const auto receive = try_multishot_receive();
  rows.push_back(present("multishot receive, buffer ring", receive.has_value(), "--io=epoll", newer_kernel));
  add_opcodes(rows, ring);
  add_locked_memory(rows, ring);
  rows.push_back(judge_zero_copy_send(try_zero_copy_send()));
  rows.push_back(judge_zero_copy_receive(try_zero_copy_receive()));
  return rows;
}

}  // namespace lockstep::io
