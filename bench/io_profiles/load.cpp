// SPDX-License-Identifier: Apache-2.0
#include "bench/io_profiles/load.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/system_error.hpp"

namespace lockstep::bench {
namespace {

constexpr std::int64_t no_time = -1;
constexpr std::int64_t longest_wait_ns = 5'000'000'000;
constexpr std::size_t receive_bytes = 16'384;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "bench_io_profiles: client: {}\n", why);
  std::exit(1);
}

Descriptor connect_to(std::uint16_t port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    give_up(fmt::format("connect 127.0.0.1:{}: {}", port, errno_text(errno)));
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

std::string with_commas(std::uint64_t number) {
  std::string text = fmt::format("{}", number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

}  // namespace

std::string load_name(const Load& load) {
  const std::string work = load.work_ns == 0 ? "no work" : fmt::format("{} us of work", load.work_ns / 1000);
  const std::string pace =
      load.rate == 0 ? "flat out" : fmt::format("{}/s", with_commas(static_cast<std::uint64_t>(load.rate)));
  return fmt::format("{} x {}, {}, {}", load.connections, load.depth, work, pace);
}

LoadClient::LoadClient(std::uint16_t port, const Load& load) : load_(load), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  ::prctl(PR_SET_TIMERSLACK, 1);  // or the kernel may be 50 us late for a planned request
  links_.resize(load.connections);
  for (Link& link : links_) {
    link.socket = connect_to(port);
    link.asked.resize(load.depth);
    link.received.resize(receive_bytes);
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &link}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, link.socket.get(), &event) != 0)
      give_up(fmt::format("epoll_ctl: {}", errno_text(errno)));
  }
}

Window LoadClient::run(double seconds) {
  window_ = {};
  planned_ = 0;
  start_ns_ = now_ns();
  end_ns_ = start_ns_ + static_cast<std::int64_t>(seconds * 1e9);
  if (load_.rate == 0) {
    for (Link& link : links_) ask_flat_out(link);
  }
  for (;;) {
    const std::int64_t due_ns = load_.rate == 0 ? no_time : ask_as_planned();
    for (Link& link : links_) send(link);
    if (under_way_ == 0 && now_ns() >= end_ns_) break;
    wait(due_ns);
  }
  window_.seconds = static_cast<double>(now_ns() - start_ns_) / 1e9;
  return std::exchange(window_, {});
}

void LoadClient::ask(Link& link, std::int64_t since_ns) {
  link.asked[(link.first + link.under_way) % load_.depth] = {next_number_, since_ns};
  link.to_send.push_back(request_of(next_number_++));
  ++link.under_way;
  ++under_way_;
}

void LoadClient::ask_flat_out(Link& link) {
  const std::int64_t now = now_ns();
  if (now >= end_ns_) return;
  while (link.under_way < load_.depth) ask(link, now);
}

std::int64_t LoadClient::ask_as_planned() {
  const auto plan_ns = [this] {
    return start_ns_ + static_cast<std::int64_t>(static_cast<double>(planned_) / load_.rate * 1e9);
  };
  const std::int64_t now = now_ns();
  while (plan_ns() <= now && plan_ns() < end_ns_) {
    Link* const link = link_with_room();
    if (link == nullptr) return no_time;
    ask(*link, plan_ns());
    ++planned_;
  }
  return plan_ns() < end_ns_ ? plan_ns() : under_way_ > 0 ? no_time : end_ns_;
}

LoadClient::Link* LoadClient::link_with_room() {
  for (std::size_t tried = 0; tried < links_.size(); ++tried) {
    Link& link = links_[next_link_];
    next_link_ = (next_link_ + 1) % links_.size();
    if (link.under_way < load_.depth) return &link;
  }
  return nullptr;
}

void LoadClient::send(Link& link) {
  if (link.to_send.empty()) return;
  const std::size_t bytes = link.to_send.size() * message_bytes;
  // It always fits: what is under way is less than a socket's buffer.
  if (::send(link.socket.get(), link.to_send.data(), bytes, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes))
    give_up(fmt::format("send: {}", errno_text(errno)));
  link.to_send.clear();
}

void LoadClient::wait(std::int64_t until_ns) {
  const std::int64_t wait_ns = until_ns == no_time ? longest_wait_ns : std::max<std::int64_t>(0, until_ns - now_ns());
  const timespec timeout{wait_ns / 1'000'000'000, wait_ns % 1'000'000'000};
  std::array<epoll_event, 256> events{};
  const int count = ::epoll_pwait2(epoll_.get(), events.data(), static_cast<int>(events.size()), &timeout, nullptr);
  if (count < 0 && errno != EINTR) give_up(fmt::format("epoll_pwait2: {}", errno_text(errno)));
  if (count == 0 && until_ns == no_time) give_up(fmt::format("no reply for 5 s to {} requests under way", under_way_));
  for (int i = 0; i < count; ++i) receive(*static_cast<Link*>(events[static_cast<std::size_t>(i)].data.ptr));
}

void LoadClient::receive(Link& link) {
  const ssize_t bytes = ::recv(link.socket.get(), link.received.data() + link.received_bytes,
                               link.received.size() - link.received_bytes, MSG_DONTWAIT);
  if (bytes <= 0) {
    if (bytes < 0 && errno == EAGAIN) return;
    give_up(bytes == 0 ? "the server closed a connection" : fmt::format("recv: {}", errno_text(errno)));
  }
  link.received_bytes += static_cast<std::size_t>(bytes);
  const std::int64_t now = now_ns();
  std::size_t taken = 0;
  for (; link.received_bytes - taken >= message_bytes; taken += message_bytes) {
    Message reply;
    std::memcpy(&reply, link.received.data() + taken, sizeof reply);
    take(link, reply, now);
  }
  link.received_bytes -= taken;
  std::memmove(link.received.data(), link.received.data() + taken, link.received_bytes);
  if (load_.rate == 0) ask_flat_out(link);
}

void LoadClient::take(Link& link, const Message& reply, std::int64_t now_ns) {
  if (link.under_way == 0) give_up("a reply came that nobody asked for");
  const Asked& asked = link.asked[link.first];
  const Message request = request_of(asked.number);
  if (!is_well_formed(reply, MessageKind::reply) || reply.number != request.number ||
      reply.payload != request.payload || reply.answer != answer_to(request))
    give_up(fmt::format("request {} got a wrong reply: number {}, answer {:#x} instead of {:#x}", request.number,
                        reply.number, reply.answer, answer_to(request)));
  window_.latencies_ns.add(static_cast<std::uint64_t>(now_ns - asked.since_ns));
  ++window_.requests;
  link.first = (link.first + 1) % load_.depth;
  --link.under_way;
  --under_way_;
}

}  // namespace lockstep::bench
