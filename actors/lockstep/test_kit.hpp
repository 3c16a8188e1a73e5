// SPDX-License-Identifier: Apache-2.0
#pragma once

/// TestKit: an application under test, on the production executor and a clock that moves when told to. It needs no
/// sockets, no disk and no test framework.
///
///     lockstep::TestKit<Bank> kit;
///     const auto bank = lockstep::ref<Bank>(7);
///     kit.send<Deposit>(bank, 1u, 100);
///     kit.expect<Balance>([](const Balance& b) { CHECK(b.amount() == 100); });
///     kit.advance(48h);
///
/// It keeps the history it makes, and in its destructor runs it again, at other addresses and on three executors;
/// state, effects and chain must come out the same bits. So every test of an actor is also a test of its determinism.
///
/// What is not as expected goes to on_failure(); by default expectations throw TestFailure, and a replay that differs
/// prints what differs first and aborts. One thread.

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "lockstep/actor.hpp"
#include "lockstep/encode.hpp"

namespace lockstep {

class TestFailure : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

struct TestKitOptions {
  std::uint64_t seed = 1;                                                     ///< of Context::random
  Time start = Time(std::chrono::sys_days{std::chrono::year{2026} / 1 / 1});  ///< the first stamp
};

/// TestKit without the list of actor types.
class TestKitCore {
 public:
  TestKitCore(const Application& application, const TestKitOptions& options);
  ~TestKitCore();
  TestKitCore(const TestKitCore&) = delete;
  TestKitCore& operator=(const TestKitCore&) = delete;

  /// Stamps a client's message and runs it, with all that follows from it, to the end.
  template <Message M, class A, class... Args>
  void send(Ref<A> to, const Args&... fields) {
    if constexpr (detail::check_received<A, M>())
      send_bytes(to.address(), message_id<M>, builder_.encode<M>(fields...));
  }

  /// Puts what `sends` sends into one batch instead of one each.
  template <class Sends>
  void together(Sends&& sends) {
    open_batch();
    sends();
    close_batch();
  }

  /// Runs a query on the state as it is.
  template <Message M, class A, class... Args>
  void query(Ref<A> to, const Args&... fields) {
    if constexpr (detail::check_received<A, M>())
      query_bytes(to.address(), message_id<M>, builder_.encode<M>(fields...));
  }

  /// Takes the oldest reply that was not taken yet: it must be an M. Returns whether it was.
  template <Message M, class Check>
  bool expect(Check&& check) {
    const std::byte* const payload = take_reply(message_id<M>, M::GetFullyQualifiedName());
    if (payload == nullptr) return false;
    check(decode<M>(payload));
    return true;
  }
  template <Message M>
  bool expect() {
    return expect<M>([](const M&) {});
  }
  /// As expect, for a trap of this kind; no_reply for a request that came to nothing.
  bool expect_trap(TrapKind kind);
  bool expect_no_reply();
  /// No reply is left.
  bool expect_none();

  /// Moves the clock, stopping at every timer that falls due on the way.
  void advance(Duration by);
  [[nodiscard]] Time now() const;
  /// Root of the state.
  [[nodiscard]] Digest hash() const;

  /// Called with one line instead of throwing or aborting.
  void on_failure(std::function<void(const std::string&)> handler);

 private:
  struct Core;

  void send_bytes(const Address& to, std::uint32_t message_type, std::span<const std::byte> payload);
  void query_bytes(const Address& to, std::uint32_t message_type, std::span<const std::byte> payload);
  void open_batch();
  void close_batch();
  [[nodiscard]] const std::byte* take_reply(std::uint32_t message_type, const char* name);

  MessageBuilder builder_;
  std::unique_ptr<Core> core_;
};

template <class... As>
class TestKit : public TestKitCore {
 public:
  explicit TestKit(const TestKitOptions& options = {}) : TestKitCore(application<As...>(), options) {}
};

}  // namespace lockstep
