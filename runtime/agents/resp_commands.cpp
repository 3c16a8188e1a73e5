// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/resp_commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "runtime/agents/frames.hpp"

namespace lockstep {
namespace {

using resp::Command;

/// Client libraries compare it to decide what they may send; commands this server lacks are refused by name.
constexpr std::string_view spoken_version = "7.0.0";

/// Redis's are positive; the bit that all connections have in common is not needed to tell them apart.
std::int64_t client_id(const RespServerFacts& facts) {
  return static_cast<std::int64_t>(facts.session & ~ephemeral_bit);
}

bool equal_ignoring_case(std::string_view text, std::string_view capitals) {
  return std::ranges::equal(text, capitals, [](char left, char right) {
    return (left >= 'a' && left <= 'z' ? static_cast<char>(left - 'a' + 'A') : left) == right;
  });
}

void answer_ping(Command& command) {
  if (!command.has_arguments(0, 1)) return;
  if (command.arguments().empty())
    command.answer().simple("PONG");
  else
    command.answer().bulk(command.argument(0));
}

void answer_select(Command& command, RespSession& session, const RespServerFacts& facts) {
  if (!command.has_arguments(1)) return;
  const auto index = command.integer(0);
  if (!index) return;
  if (*index < 0 || *index >= facts.databases) {
    command.answer().error("ERR DB index is out of range");
    return;
  }
  session.database = static_cast<std::uint32_t>(*index);
  command.answer().simple("OK");
}

/// No documentation and no key positions are told; clients fall back to what they know.
void answer_command(Command& command) {
  if (!command.arguments().empty() && equal_ignoring_case(command.argument(0), "COUNT"))
    command.answer().integer(0);
  else
    command.answer().array(0);
}

void answer_client(Command& command, RespSession& session, const RespServerFacts& facts) {
  if (!command.has_arguments(1, 64)) return;
  const std::string_view verb = command.argument(0);
  if (equal_ignoring_case(verb, "SETNAME")) {
    if (!command.has_arguments(2)) return;
    constexpr std::size_t longest_name = 256;
    session.name = command.argument(1).substr(0, longest_name);
    command.answer().simple("OK");
  } else if (equal_ignoring_case(verb, "GETNAME")) {
    if (session.name.empty())
      command.answer().nil();
    else
      command.answer().bulk(session.name);
  } else if (equal_ignoring_case(verb, "ID")) {
    command.answer().integer(client_id(facts));
  } else if (equal_ignoring_case(verb, "SETINFO") || equal_ignoring_case(verb, "NO-EVICT") ||
             equal_ignoring_case(verb, "NO-TOUCH")) {
    command.answer().simple("OK");
  } else {
    command.answer().error("ERR this server knows CLIENT SETNAME, GETNAME, ID and SETINFO");
  }
}

/// Just what benchmarks and libraries ask for; everything else has no value here.
void answer_config(Command& command, const RespServerFacts& facts) {
  if (command.arguments().size() < 2 || !equal_ignoring_case(command.argument(0), "GET")) {
    command.answer().error("ERR this server knows CONFIG GET only");
    return;
  }
  const std::string databases = std::to_string(facts.databases);
  const std::array<std::array<std::string_view, 2>, 4> known{
      {{"save", ""}, {"appendonly", "yes"}, {"maxmemory", "0"}, {"databases", databases}}};
  const auto asked = command.arguments().subspan(1);
  const auto is_asked = [&](const std::array<std::string_view, 2>& entry) {
    return std::ranges::any_of(asked, [&](std::string_view name) { return name == "*" || name == entry[0]; });
  };
  resp::Writer out = command.answer();
  out.array(2 * static_cast<std::size_t>(std::ranges::count_if(known, is_asked)));
  for (const auto& entry : known) {
    if (!is_asked(entry)) continue;
    out.bulk(entry[0]);
    out.bulk(entry[1]);
  }
}

void answer_info(Command& command, const RespServerFacts& facts) {
  command.answer().bulk(fmt::format(
      "# Server\r\nredis_version:{}\r\nserver_name:lockstep\r\nredis_mode:standalone\r\nuptime_in_seconds:{}"
      "\r\n\r\n# Clients\r\nconnected_clients:{}\r\n\r\n# Persistence\r\nloading:0\r\naof_enabled:1\r\n\r\n"
      "# Stats\r\ntotal_commands_processed:{}\r\n\r\n# Replication\r\nrole:master\r\n",
      spoken_version, facts.uptime_seconds, facts.connections, facts.commands));
}

void answer_hello(Command& command, const RespServerFacts& facts) {
  if (!command.arguments().empty() && command.argument(0) != "2") {
    command.answer().error("NOPROTO unsupported protocol version");
    return;
  }
  resp::Writer out = command.answer();
  out.array(12);
  out.bulk("server");
  out.bulk("lockstep");
  out.bulk("version");
  out.bulk(spoken_version);
  out.bulk("proto");
  out.integer(2);
  out.bulk("id");
  out.integer(client_id(facts));
  out.bulk("mode");
  out.bulk("standalone");
  out.bulk("role");
  out.bulk("master");
}

}  // namespace

bool answer_server_command(Command& command, RespSession& session, const RespServerFacts& facts) {
  const std::string_view name = command.name();
  if (name == "PING") {
    answer_ping(command);
  } else if (name == "ECHO") {
    if (command.has_arguments(1)) command.answer().bulk(command.argument(0));
  } else if (name == "SELECT") {
    answer_select(command, session, facts);
  } else if (name == "COMMAND") {
    answer_command(command);
  } else if (name == "CLIENT") {
    answer_client(command, session, facts);
  } else if (name == "CONFIG") {
    answer_config(command, facts);
  } else if (name == "INFO") {
    answer_info(command, facts);
  } else if (name == "HELLO") {
    answer_hello(command, facts);
  } else if (name == "QUIT") {
    command.answer().simple("OK");
    return true;
  }
  return false;
}

}  // namespace lockstep
