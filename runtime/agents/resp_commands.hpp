// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The commands every RESP server is expected to answer, whatever its application: those that are about the connection
/// and the server, not about data. Called on the perimeter's thread.

#include <cstdint>

#include "lockstep/resp.hpp"
#include "runtime/agents/resp_session.hpp"

namespace lockstep {

/// What INFO and HELLO tell.
struct RespServerFacts {
  std::uint64_t connections = 0;
  std::uint64_t commands = 0;
  std::uint64_t uptime_seconds = 0;
  std::uint32_t databases = 16;
  std::uint64_t session = 0;  ///< of the connection
};

/// Answers `command` if it is one of them; true if the client asked to end.
[[nodiscard]] bool answer_server_command(resp::Command& command, RespSession& session, const RespServerFacts& facts);

}  // namespace lockstep
