// SPDX-License-Identifier: Apache-2.0
#pragma once

/// LoadCommand: how a program says what its `bench` subcommand sends. The program gives lockstep::run a function that
/// is asked for request 0, 1, 2, …, each once, and says for each which message goes to which actor:
///
///     void load(std::uint64_t index, lockstep::LoadCommand& command) {
///       command.ask<Deposit>(lockstep::ref<Branch>(index % 16), index, std::int64_t{1});
///     }
///
/// It should be a function of the index, so that two runs send the same. Called on the load generator's threads.

#include <cstdint>
#include <span>

#include "lockstep/address.hpp"
#include "lockstep/encode.hpp"
#include "lockstep/message.hpp"
#include "lockstep/query.hpp"

namespace lockstep {

class LoadCommand {
 public:
  explicit LoadCommand(MessageBuilder& builder) : builder_(builder) {}

  /// Sends `M`, made from one value a field; as a query when the actor answers it as one. Once per request.
  template <Message M, class Actor, class... Args>
  void ask(Ref<Actor> to, const Args&... fields) {
    static_assert(Actor::Receives::template contains<M>,
                  "lockstep: the actor does not receive this message; add it to its Receives, or ask with another");
    to_ = to.address();
    message_type_ = message_id<M>;
    is_query_ = requires(const Actor& actor, const M& message, Query& query) { actor.on(message, query); };
    payload_ = builder_.encode<M>(fields...);
  }

  [[nodiscard]] const Address& to() const { return to_; }
  [[nodiscard]] std::uint32_t message_type() const { return message_type_; }
  [[nodiscard]] bool is_query() const { return is_query_; }
  [[nodiscard]] std::span<const std::byte> payload() const { return payload_; }

 private:
  MessageBuilder& builder_;
  Address to_;
  std::uint32_t message_type_ = 0;
  bool is_query_ = false;
  std::span<const std::byte> payload_;
};

}  // namespace lockstep
