// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/zero_copy.hpp"

#include <fmt/format.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>

#include "base/descriptor.hpp"
#include "base/system_error.hpp"
#include "runtime/io/uring_abi.hpp"

namespace lockstep::io {
namespace {

/// A ring for one trial.
class TrialRing {
 public:
  explicit TrialRing(unsigned flags) : error_(-io_uring_queue_init(8, &ring_, flags)) {}
  ~TrialRing() {
    if (error_ == 0) io_uring_queue_exit(&ring_);
  }
  TrialRing(const TrialRing&) = delete;
  TrialRing& operator=(const TrialRing&) = delete;

  [[nodiscard]] int error() const { return error_; }
  [[nodiscard]] io_uring* get() { return &ring_; }

 private:
  io_uring ring_{};
  int error_;
};

/// Two ends of a TCP connection; SEND_ZC does not work on other kinds of socket pairs.
struct Connected {
  Descriptor near, far;
};
std::optional<Connected> connect_over_loopback() {
  const Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.get(), generic, length) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), generic, &length) != 0)
    return {};
  Connected connected{Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), {}};
  if (::connect(connected.near.get(), generic, length) != 0) return {};
  connected.far.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!connected.far.is_open()) return {};
  return connected;
}

struct Outcome {
  int result = 0;
  unsigned flags = 0;
};
/// The next completion, within a second.
std::optional<Outcome> next_completion(io_uring* ring) {
  __kernel_timespec timeout{1, 0};
  io_uring_cqe* entry = nullptr;
  if (io_uring_wait_cqe_timeout(ring, &entry, &timeout) != 0) return {};
  const Outcome outcome{entry->res, entry->flags};
  io_uring_cqe_seen(ring, entry);
  return outcome;
}

bool is_known(io_uring* ring, int operation) {
  const std::unique_ptr<io_uring_probe, decltype(&io_uring_free_probe)> probe(io_uring_get_probe_ring(ring),
                                                                              &io_uring_free_probe);
  return probe != nullptr && io_uring_opcode_supported(probe.get(), operation) != 0;
}

constexpr std::uint32_t no_such_queue = 0xffff'fffe;  // the kernel takes ~0 for none at all

int ask_for_receive_queue(io_uring* ring, unsigned interface_index, std::byte* memory, std::size_t page_bytes) {
  abi::ZeroCopyArea area{};
  area.address = reinterpret_cast<std::uintptr_t>(memory);
  area.bytes = page_bytes;
  abi::RegionDescription region{};
  region.user_address = reinterpret_cast<std::uintptr_t>(memory + page_bytes);
  region.bytes = page_bytes;
  region.flags = abi::region_is_user_memory;
  abi::ZeroCopyInterfaceQueue queue{};
  queue.interface_index = interface_index;
  queue.queue_index = no_such_queue;
  queue.refill_entries = 8;
  queue.area = reinterpret_cast<std::uintptr_t>(&area);
  queue.region = reinterpret_cast<std::uintptr_t>(&region);
  return -io_uring_register(static_cast<unsigned>(ring->ring_fd), abi::register_zcrx_ifq, &queue, 1);
}

}  // namespace

int try_zero_copy_send() {
  TrialRing ring(0);
  if (ring.error() != 0) return ring.error();
  if (!is_known(ring.get(), IORING_OP_SEND_ZC)) return EOPNOTSUPP;
  const auto connected = connect_over_loopback();
  if (!connected) return errno;
  const std::array<char, 64> bytes{};
  io_uring_sqe* entry = io_uring_get_sqe(ring.get());
  io_uring_prep_send_zc(entry, connected->near.get(), bytes.data(), bytes.size(), MSG_WAITALL, 0);
  io_uring_submit(ring.get());
  const auto sent = next_completion(ring.get());
  if (!sent) return ETIME;
  if (sent->result < 0) return -sent->result;
  if ((sent->flags & IORING_CQE_F_MORE) == 0) return EIO;
  const auto notified = next_completion(ring.get());
  return notified && (notified->flags & IORING_CQE_F_NOTIF) != 0 ? 0 : ETIME;
}

ZeroCopyReceiveTrial try_zero_copy_receive() {
  ZeroCopyReceiveTrial trial;
  TrialRing ring(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQE32);
  if (ring.error() != 0 || !is_known(ring.get(), abi::op_recv_zc)) return trial;
  trial.known = true;
  const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const memory =
      ::mmap(nullptr, 2 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  const std::unique_ptr<struct if_nameindex, decltype(&::if_freenameindex)> interfaces(::if_nameindex(),
                                                                                       &::if_freenameindex);
  if (memory == MAP_FAILED || interfaces == nullptr) return trial;
  for (const struct if_nameindex* each = interfaces.get(); each->if_index != 0; ++each) {
    const int error = ask_for_receive_queue(ring.get(), each->if_index, static_cast<std::byte*>(memory), page_bytes);
    trial.interfaces.push_back({each->if_name, error});
  }
  ::munmap(memory, 2 * page_bytes);
  return trial;
}

Capability judge_zero_copy_send(int error) {
  return {"zero-copy send (SEND_ZC), not used", true, error == 0 ? "works" : errno_text(error),
          "plain sends: for replies a copy is cheaper than a notification", ""};
}

Capability judge_zero_copy_receive(const ZeroCopyReceiveTrial& trial) {
  Capability row{"zero-copy receive (RECV_ZC), not used", true, "", "receives into provided buffers", ""};
  const auto say = [&](int error) {
    return std::ranges::any_of(trial.interfaces, [error](const auto& each) { return each.error == error; });
  };
  if (!trial.known) {
    row.here = "unknown to this kernel (6.15 is the first)";
  } else if (say(EPERM)) {
    row.here = "not known: asking needs CAP_NET_ADMIN";
  } else {
    std::string names;
    for (const auto& each : trial.interfaces) {
      if (each.error == ERANGE) names += fmt::format("{}{}", names.empty() ? "" : ", ", each.name);
    }
    row.here = names.empty() ? "no interface has it" : fmt::format("could be had on {}", names);
  }
  return row;
}

}  // namespace lockstep::io
