// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Client: a program's session with a node, over plain blocking calls: connect, ask, and read the answer as the message
/// it is. It may be used by one thread at a time; make one per thread.
///
///     auto client = lockstep::Client::connect({.port = 7000});
///     auto answer = client->request<Deposit>(lockstep::ref<Bank>(7), account, amount);
///     if (answer && answer->as<Balance>()) use(answer->as<Balance>()->amount());
///
/// Many requests at once: send() queues one and returns its number, collect() waits for the answer to a number; answers
/// may come in any order.
///
/// A request runs once. When the connection is lost, or the node is started again, the call in hand connects anew,
/// resumes the session and sends again what is unanswered; the node answers what it ran before with the answer it gave
/// then. What a timeout left open stays in flight: collect() it later, or abandon() it. Only when the session itself is
/// gone, after HelloOk's session_expiry_ms without a request reaching the node, do unanswered requests end as
/// `unknown`; with none unanswered a new session takes its place unnoticed. A client that only asks queries has no
/// session.
///
/// Wire: lockstep/wire.hpp.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>

#include "lockstep/address.hpp"
#include "lockstep/encode.hpp"
#include "lockstep/message.hpp"
#include "lockstep/query.hpp"
#include "lockstep/trap.hpp"
#include "lockstep/wire.hpp"

namespace lockstep {

struct ClientOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::chrono::milliseconds connect_timeout{2'000};   ///< for the connection and the hello together
  std::chrono::milliseconds request_timeout{10'000};  ///< for one answer, lost connections and all
};

struct ClientError {
  enum class Kind {
    unreachable,  ///< no connection came about at first; the message says why
    timeout,      ///< no answer in time; the request is still in flight
    closed,       ///< the connection was lost, and none came about in time; what is in flight still is
    refused,      ///< the node did not let it in (code says why); it did not run
    trapped,      ///< it ran into a trap and was undone
    answer_lost,  ///< it ran before, and its answer was too much for the node to keep
    unknown,      ///< its session expired, or the node halted: whether it ran cannot be told
    misuse,       ///< the call itself cannot be right: too large, or a number that is not in flight
  };
  Kind kind = Kind::closed;
  wire::WireError code{};          ///< of refused and trapped
  TrapKind trap = TrapKind::none;  ///< of trapped
  std::string message;
};

template <class T>
using ClientResult = std::expected<T, ClientError>;

/// What the node answered to one request.
class Answer {
 public:
  Answer(std::uint64_t request, std::uint32_t message_type, std::span<const std::byte> payload);

  [[nodiscard]] std::uint64_t request() const { return request_; }
  [[nodiscard]] std::uint32_t message_type() const { return message_type_; }
  /// The request ran, and its actor had nothing to say.
  [[nodiscard]] bool is_empty() const { return message_type_ == 0; }
  [[nodiscard]] std::span<const std::byte> payload() const {
    return {reinterpret_cast<const std::byte*>(units_.get()), bytes_};
  }
  /// The answer as an `M`; nullptr when it is another message, or not a valid one. Lives as long as this.
  template <Message M>
  [[nodiscard]] const M* as() const {
    if (message_type_ != message_id<M> || !verify<M>(payload())) return nullptr;
    return &decode<M>(payload().data());
  }

 private:
  struct alignas(16) Unit {
    std::byte bytes[16];
  };
  std::uint64_t request_;
  std::uint32_t message_type_;
  std::size_t bytes_;
  std::unique_ptr<Unit[]> units_;
};

class Client {
 public:
  /// Connects and says hello.
  [[nodiscard]] static ClientResult<Client> connect(const ClientOptions& options);
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  /// Says goodbye without waiting for anything.
  ~Client();

  /// Sends `M`, made from one value a field, and waits for its answer. A message that the actor answers as a query is
  /// sent as one: it runs on committed state and is not journaled. What is not answered in time is abandoned.
  template <Message M, class Actor, class... Args>
  [[nodiscard]] ClientResult<Answer> request(Ref<Actor> to, const Args&... fields) {
    const ClientResult<std::uint64_t> number = send<M>(to, fields...);
    if (!number) return std::unexpected(number.error());
    ClientResult<Answer> answer = collect(*number);
    if (!answer) abandon(*number);
    return answer;
  }

  /// Queues `M` and returns its number. It leaves with the next flush() or collect(), or when enough has gathered.
  template <Message M, class Actor, class... Args>
  [[nodiscard]] ClientResult<std::uint64_t> send(Ref<Actor> to, const Args&... fields) {
    static_assert(Actor::Receives::template contains<M>,
                  "lockstep: the actor does not receive this message; add it to its Receives, or send it another");
    constexpr bool is_query =
        requires(const Actor& actor, const M& message, Query& query) { actor.on(message, query); };
    try {
      return send_encoded(is_query ? wire::FrameKind::query : wire::FrameKind::request, to.address(), message_id<M>,
                          builder().template encode<M>(fields...));
    } catch (const TrapError&) {
      return std::unexpected(too_large());
    }
  }
  /// A message that is encoded already.
  [[nodiscard]] ClientResult<std::uint64_t> send_encoded(wire::FrameKind kind, const Address& to,
                                                         std::uint32_t message_type,
                                                         std::span<const std::byte> payload);

  /// Hands everything queued to the kernel.
  [[nodiscard]] ClientResult<void> flush();
  /// Waits for the answer to `request`. Each can be collected once; a refusal or trap of it is the error. After a
  /// timeout, or while the node is away, it may be tried again.
  [[nodiscard]] ClientResult<Answer> collect(std::uint64_t request);
  /// Waits for whichever answer comes next. `failed`, if given, is the number an error belongs to, or 0.
  [[nodiscard]] ClientResult<Answer> collect_any(std::uint64_t* failed = nullptr);

  /// Wants no answer to `request` any more; whether it runs is then unknown.
  void abandon(std::uint64_t request);

  /// Sent or queued, and not collected.
  [[nodiscard]] std::size_t in_flight() const;
  /// What the node said about itself and its limits.
  [[nodiscard]] const wire::HelloOk& node() const;

 private:
  class Connection;
  explicit Client(std::unique_ptr<Connection> connection);

  [[nodiscard]] MessageBuilder& builder();
  [[nodiscard]] ClientError too_large() const;

  std::unique_ptr<Connection> connection_;
};

}  // namespace lockstep
