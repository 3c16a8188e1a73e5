// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a hostile client may do to a perimeter, and what must hold whatever it does: it gets errors or its connection
/// is closed; every sealed batch stands its checks; what the node writes is of the protocol; a client beside it is
/// served as if nothing had happened. Breaking one of these aborts the process, so that libFuzzer and the deterministic
/// test share the same drivers.

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::testing {

/// What a native client sends. The first byte's bits say: 0, after a proper hello; 1, sound frames with the rest of the
/// input as patches instead of the rest itself; the others, how the bytes are cut on the way.
void drive_native(std::span<const std::uint8_t> input);

/// The same for a RESP client.
void drive_resp(std::span<const std::uint8_t> input);

/// A message payload: verified, and if it is accepted, read to its last field.
void drive_verify(std::span<const std::uint8_t> input);

}  // namespace lockstep::testing
