// SPDX-License-Identifier: Apache-2.0
#include "kv_resp.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include "kv.hpp"

namespace kv {
namespace {

using lockstep::resp::Command;
using lockstep::resp::Reply;
using lockstep::resp::Writer;

constexpr std::size_t any_number = std::numeric_limits<std::size_t>::max();

/// How a command wants its reply written where the message alone does not say.
enum Shape : std::uint32_t { as_is = 0, ok_as_integer = 1 };

lockstep::Ref<Database> database(const Command& command) {
  return lockstep::ref<Database>(command.database());
}

bool same_word(std::string_view given, std::string_view upper) {
  return std::ranges::equal(given, upper,
                            [](char a, char b) { return (a >= 'a' && a <= 'z' ? a - 'a' + 'A' : a) == b; });
}

/// A time to live in milliseconds from argument `index`, in units of `unit_ms`; refused as Redis does when it is not
/// positive or too large.
std::optional<std::int64_t> positive_ttl_ms(Command& command, std::size_t index, std::int64_t unit_ms) {
  const auto value = command.integer(index);
  if (!value) return std::nullopt;
  if (*value > 0 && *value <= std::numeric_limits<std::int64_t>::max() / unit_ms) return *value * unit_ms;
  command.answer().error("ERR invalid expire time");
  return std::nullopt;
}

/// SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | KEEPTTL]
void set(Command& command) {
  if (!command.has_arguments(2, 8)) return;
  auto condition = Condition::Always;
  bool want_old = false;
  bool keep_ttl = false;
  std::int64_t ttl_ms = 0;
  for (std::size_t i = 2; i < command.arguments().size(); ++i) {
    const std::string_view word = command.argument(i);
    const bool has_value = i + 1 < command.arguments().size();
    const bool seconds = same_word(word, "EX");
    if ((seconds || same_word(word, "PX")) && has_value && ttl_ms == 0 && !keep_ttl) {
      const auto given_ms = positive_ttl_ms(command, ++i, seconds ? 1000 : 1);
      if (!given_ms) return;
      ttl_ms = *given_ms;
    } else if (same_word(word, "KEEPTTL") && ttl_ms == 0) {
      keep_ttl = true;
    } else if (same_word(word, "NX") && condition == Condition::Always) {
      condition = Condition::IfMissing;
    } else if (same_word(word, "XX") && condition == Condition::Always) {
      condition = Condition::IfPresent;
    } else if (same_word(word, "GET")) {
      want_old = true;
    } else {
      return command.answer().error("ERR syntax error");
    }
  }
  command.ask<Set>(database(command), command.argument(0), command.argument(1), ttl_ms, keep_ttl, condition, want_old);
}

/// SETEX key seconds value, PSETEX key milliseconds value
void set_with_ttl(Command& command, std::int64_t unit_ms) {
  if (!command.has_arguments(3)) return;
  if (const auto ttl_ms = positive_ttl_ms(command, 1, unit_ms))
    command.ask<Set>(database(command), command.argument(0), command.argument(2), *ttl_ms, false, Condition::Always,
                     false);
}

void mset(Command& command) {
  if (command.arguments().empty() || command.arguments().size() % 2 != 0) return command.fail_arguments();
  command.ask<Mset>(database(command), command.arguments());
}

template <class M>
void on_keys(Command& command) {
  if (command.has_arguments(1, any_number)) command.ask<M>(database(command), command.arguments());
}

template <class M, class... Args>
void on_key(Command& command, const Args&... args) {
  if (command.has_arguments(1)) command.ask<M>(database(command), command.argument(0), args...);
}

void increment(Command& command, std::int64_t sign) {
  if (!command.has_arguments(2)) return;
  const auto by = command.integer(1);
  if (!by) return;
  if (sign < 0 && *by == std::numeric_limits<std::int64_t>::min())
    return command.answer().error("ERR decrement would overflow");
  command.ask<IncrBy>(database(command), command.argument(0), *by * sign);
}

void expire(Command& command, std::int64_t unit_ms) {
  if (!command.has_arguments(2)) return;
  const auto value = command.integer(1);
  if (!value) return;
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  if (*value > largest / unit_ms || *value < -largest / unit_ms)
    return command.answer().error("ERR invalid expire time in 'expire' command");
  command.ask<Expire>(database(command), command.argument(0), *value * unit_ms);
}

void translate(Command& command) {
  const std::string_view name = command.name();
  if (name == "GET") return on_key<Get>(command);
  if (name == "SET") return set(command);
  if (name == "INCR") return on_key<IncrBy>(command, std::int64_t{1});
  if (name == "MSET") return mset(command);
  if (name == "MGET") return on_keys<Mget>(command);
  if (name == "DEL" || name == "UNLINK") return on_keys<Del>(command);
  if (name == "EXISTS") return on_keys<Exists>(command);
  if (name == "INCRBY") return increment(command, 1);
  if (name == "DECRBY") return increment(command, -1);
  if (name == "DECR") return on_key<IncrBy>(command, std::int64_t{-1});
  if (name == "EXPIRE") return expire(command, 1000);
  if (name == "PEXPIRE") return expire(command, 1);
  if (name == "PERSIST") return on_key<Persist>(command);
  if (name == "TTL") return on_key<Ttl>(command, Unit::Seconds);
  if (name == "PTTL") return on_key<Ttl>(command, Unit::Milliseconds);
  if (name == "SETEX") return set_with_ttl(command, 1000);
  if (name == "PSETEX") return set_with_ttl(command, 1);
  if (name == "SETNX") {
    if (!command.has_arguments(2)) return;
    command.set_shape(ok_as_integer);
    return command.ask<Set>(database(command), command.argument(0), command.argument(1), std::int64_t{0}, false,
                            Condition::IfMissing, false);
  }
  if (name == "GETSET") {
    if (!command.has_arguments(2)) return;
    return command.ask<Set>(database(command), command.argument(0), command.argument(1), std::int64_t{0}, false,
                            Condition::Always, true);
  }
  if (name == "DBSIZE") {
    if (command.has_arguments(0)) command.ask<Size>(database(command));
    return;
  }
  if (name == "FLUSHDB") {
    if (command.has_arguments(0, 1)) command.ask<Flush>(database(command));
    return;
  }
}

void render_values(const Values& values, Writer& out) {
  out.array(values.values()->size());
  for (flatbuffers::uoffset_t i = 0; i < values.values()->size(); ++i) {
    if (values.present()->Get(i) != 0) {
      out.bulk(values.values()->Get(i)->string_view());
    } else {
      out.nil();
    }
  }
}

std::string_view fault_text(Fault fault) {
  switch (fault) {
    case Fault::NotAnInteger:
      return "ERR value is not an integer or out of range";
    case Fault::Overflow:
      return "ERR increment or decrement would overflow";
  }
  return "ERR the command failed";
}

void render(const Reply& reply, Writer& out) {
  const bool integer = reply.shape == ok_as_integer;
  if (const auto* bulk = reply.as<Bulk>()) return out.bulk(bulk->value()->string_view());
  if (reply.as<Ok>() != nullptr) return integer ? out.integer(1) : out.simple("OK");
  if (reply.as<Nil>() != nullptr) return integer ? out.integer(0) : out.nil();
  if (const auto* number = reply.as<Integer>()) return out.integer(number->value());
  if (const auto* values = reply.as<Values>()) return render_values(*values, out);
  const auto* failure = reply.as<Failure>();
  out.error(failure != nullptr ? fault_text(failure->fault())
                               : "ERR the node answered in a way this one does not know");
}

}  // namespace

const lockstep::resp::Application resp_application{.translate = translate, .render = render};

}  // namespace kv
