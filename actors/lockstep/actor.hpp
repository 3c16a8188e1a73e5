// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What an actor's author includes: messages, Context and Query, addresses, the containers of state.
///
///     struct Counter {
///       static constexpr auto name = "counter";
///       using Receives = lockstep::Receives<Add>;
///       std::int64_t total = 0;
///       void on(const Add& m, lockstep::Context& cx) { cx.reply<Total>(total += m.amount()); }
///     };

#include "lockstep/address.hpp"
#include "lockstep/application.hpp"
#include "lockstep/array.hpp"
#include "lockstep/context.hpp"
#include "lockstep/fixed.hpp"
#include "lockstep/hash_map.hpp"
#include "lockstep/map.hpp"
#include "lockstep/optional.hpp"
#include "lockstep/pool.hpp"
#include "lockstep/query.hpp"
#include "lockstep/receives.hpp"
#include "lockstep/ring.hpp"
#include "lockstep/string.hpp"
#include "lockstep/trap.hpp"
#include "lockstep/vector.hpp"
