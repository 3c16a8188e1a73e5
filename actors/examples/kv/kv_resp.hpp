// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How the store speaks to Redis clients: commands to messages, replies to RESP. Runs on the perimeter's thread.

#include <lockstep/resp.hpp>

namespace kv {

/// GET SET SETEX PSETEX SETNX GETSET DEL UNLINK EXISTS INCR DECR INCRBY DECRBY MGET MSET EXPIRE PEXPIRE PERSIST TTL
/// PTTL DBSIZE FLUSHDB; what is about the connection (PING, SELECT, …) the codec answers.
extern const lockstep::resp::Application resp_application;

}  // namespace kv
