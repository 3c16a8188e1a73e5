// SPDX-License-Identifier: Apache-2.0
#pragma once

/// RESP: how an application speaks to Redis clients. A node given a resp::Application serves RESP2
/// (https://redis.io/docs/latest/develop/reference/protocol-spec/) beside native frames: each command becomes one
/// message to one actor, and the actor's reply becomes the command's answer. Answers leave in the order of the
/// commands, as RESP clients expect; the codec sees to that. PING, ECHO, SELECT, COMMAND, CLIENT, CONFIG GET, INFO,
/// HELLO 2 and QUIT are answered by the codec for every application.
///
///     void translate(resp::Command& command) {
///       if (command.name() == "GET" && command.has_arguments(1))
///         command.ask<Get>(ref<Database>(command.database()), command.argument(0));
///     }
///     void render(const resp::Reply& reply, resp::Writer& out) {
///       if (const auto* bulk = reply.as<Bulk>()) out.bulk(bulk->value()->string_view());
///     }
///
/// Both run on the perimeter's thread, once per command: they must not block, and decide nothing that the actor should.

#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "lockstep/address.hpp"
#include "lockstep/encode.hpp"
#include "lockstep/message.hpp"
#include "lockstep/query.hpp"

namespace lockstep::resp {

/// Appends RESP2 values to a client's output.
class Writer {
 public:
  explicit Writer(std::string& output) : output_(output) {}

  /// One line; must hold no CR or LF.
  void simple(std::string_view text) { line('+', text); }
  /// "ERR ..." or another code in capitals, then a sentence; one line.
  void error(std::string_view text) { line('-', text); }
  void integer(std::int64_t value) { number(':', value); }
  void bulk(std::string_view bytes) {
    number('$', static_cast<std::int64_t>(bytes.size()));
    output_.append(bytes).append("\r\n", 2);
  }
  void nil() { output_.append("$-1\r\n", 5); }
  /// `count` values follow.
  void array(std::size_t count) { number('*', static_cast<std::int64_t>(count)); }

 private:
  void line(char type, std::string_view text) {
    output_ += type;
    output_.append(text).append("\r\n", 2);
  }
  void number(char type, std::int64_t value) {
    char digits[24];
    digits[0] = type;
    char* const end = std::to_chars(digits + 1, digits + sizeof digits, value).ptr;
    output_.append(digits, static_cast<std::size_t>(end - digits)).append("\r\n", 2);
  }

  std::string& output_;
};

/// One command of a client, and what becomes of it: a message to an actor, an answer on the spot, or (when translate()
/// does neither) an answer by the codec. Lives for one call of translate().
class Command {
 public:
  /// `arguments` has the name first; `name` is the same in capitals.
  Command(std::string_view name, std::span<const std::string_view> arguments, std::uint32_t database,
          MessageBuilder& builder, std::string& answer)
      : name_(name), arguments_(arguments.subspan(1)), database_(database), builder_(builder), answer_(answer) {}
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  /// In capitals.
  [[nodiscard]] std::string_view name() const { return name_; }
  /// Without the name. Any bytes; valid while the command is.
  [[nodiscard]] std::span<const std::string_view> arguments() const { return arguments_; }
  [[nodiscard]] std::string_view argument(std::size_t index) const {
    LOCKSTEP_ASSERT(index < arguments_.size(),
                    "translate() read an argument that the client did not send; ask "
                    "has_arguments() first");
    return arguments_[index];
  }
  /// The client's SELECT; 0 at first.
  [[nodiscard]] std::uint32_t database() const { return database_; }

  /// Whether there are between `least` and `most` arguments; if not, the usual error is the answer.
  [[nodiscard]] bool has_arguments(std::size_t least, std::size_t most) {
    if (arguments_.size() >= least && arguments_.size() <= most) return true;
    fail_arguments();
    return false;
  }
  [[nodiscard]] bool has_arguments(std::size_t count) { return has_arguments(count, count); }
  /// An argument as a whole number; if it is none, or missing, the usual error is the answer.
  [[nodiscard]] std::optional<std::int64_t> integer(std::size_t index) {
    if (index >= arguments_.size()) {
      fail_arguments();
      return std::nullopt;
    }
    const std::string_view text = arguments_[index];
    std::int64_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed == std::errc{} && end == text.data() + text.size()) return value;
    answer().error("ERR value is not an integer or out of range");
    return std::nullopt;
  }

  /// Sends `M`, made from one value a field; the actor's reply is given to render(). Once per command.
  template <Message M, class Actor, class... Args>
  void ask(Ref<Actor> to, const Args&... fields) {
    static_assert(Actor::Receives::template contains<M>,
                  "lockstep: the actor does not receive this message; add it to its Receives, or ask with another");
    static_assert(
        !requires(const Actor& actor, const M& message, Query& query) { actor.on(message, query); },
        "lockstep: a RESP command cannot be a query, since it would not see the commands sent before it; "
        "handle the message with a Context");
    to_ = to.address();
    message_type_ = message_id<M>;
    payload_ = builder_.encode<M>(fields...);
    asked_ = true;
  }

  /// Answers on the spot with what is written to it.
  [[nodiscard]] Writer answer() {
    answered_ = true;
    return Writer(answer_);
  }
  void fail_arguments() {
    std::string text = "ERR wrong number of arguments for '";
    for (const char c : name_) text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    answer().error(text += "' command");
  }

  /// A number that render() is given with the reply: which of several shapes the answer has.
  void set_shape(std::uint32_t shape) { shape_ = shape; }

  // What came of it, for the codec.
  [[nodiscard]] bool is_asked() const { return asked_ && !answered_; }
  [[nodiscard]] bool is_answered() const { return answered_; }
  [[nodiscard]] const Address& to() const { return to_; }
  [[nodiscard]] std::uint32_t message_type() const { return message_type_; }
  [[nodiscard]] std::span<const std::byte> payload() const { return payload_; }
  [[nodiscard]] std::uint32_t shape() const { return shape_; }

 private:
  std::string_view name_;
  std::span<const std::string_view> arguments_;
  std::uint32_t database_;
  MessageBuilder& builder_;
  std::string& answer_;
  Address to_;
  std::uint32_t message_type_ = 0;
  std::span<const std::byte> payload_;
  std::uint32_t shape_ = 0;
  bool asked_ = false;
  bool answered_ = false;
};

/// What an actor replied to a command.
struct Reply {
  std::uint32_t shape = 0;  ///< of the command
  std::uint32_t message_type = 0;
  const std::byte* payload = nullptr;

  /// The reply as an `M`; nullptr when it is another message.
  template <Message M>
  [[nodiscard]] const M* as() const {
    return message_type == message_id<M> ? &decode<M>(payload) : nullptr;
  }
};

struct Application {
  void (*translate)(Command& command) = nullptr;
  /// Must write exactly one value.
  void (*render)(const Reply& reply, Writer& out) = nullptr;
  std::uint32_t databases = 16;  ///< that SELECT accepts
};

}  // namespace lockstep::resp
