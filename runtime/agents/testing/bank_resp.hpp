// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The test application's RESP commands.

#include <string>

#include "lockstep/resp.hpp"
#include "runtime/agents/testing/bank_application.hpp"

namespace lockstep::testing {

/// DEPOSIT account amount -> the amount as an integer; BIG n -> a message of n bytes and more.
inline void translate_bank(resp::Command& command) {
  if (command.name() == "DEPOSIT") {
    if (!command.has_arguments(2)) return;
    const auto account = command.integer(0);
    if (!account) return;
    const auto amount = command.integer(1);
    if (!amount) return;
    command.set_shape(command.database());
    command.ask<Deposit>(ref<Teller>(static_cast<std::uint64_t>(*account)), static_cast<std::uint64_t>(*account),
                         *amount);
  } else if (command.name() == "BIG") {
    const auto bytes = command.integer(0);
    if (!bytes) return;
    if (*bytes < 0 || *bytes > 1'000'000) return command.answer().error("ERR value is out of range");
    const std::string memo(static_cast<std::size_t>(*bytes), 'm');
    command.ask<Order>(ref<Teller>(1), std::uint64_t{1}, std::int64_t{1}, memo, absent, absent, absent, Side::Buy,
                       absent, absent, absent, false, 1.0, std::uint8_t{1});
  }
}

inline void render_bank(const resp::Reply& reply, resp::Writer& out) {
  if (const auto* deposit = reply.as<Deposit>())
    out.integer(deposit->amount() * (reply.shape == 0 ? 1 : 1000));
  else
    out.bulk("other");
}

inline resp::Application bank_resp_application() {
  return {translate_bank, render_bank, 16};
}

}  // namespace lockstep::testing
