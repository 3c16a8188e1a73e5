// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ReactorCounts: what the owner of a reactor counts while it works, so that any thread may read it.

#include "runtime/io/reactor.hpp"
#include "runtime/metrics.hpp"

namespace lockstep::io {

struct ReactorCounts {
  Counter enters;  ///< of epoll; an io_uring counts its own
  Counter sleeps;
  Counter completions;
  Counter buffer_shortages;
  Counter receives_rearmed;
  Counter partial_sends;
  Counter accept_pauses;
  Counter refused_connections;

  /// Without what a backend's own parts count.
  [[nodiscard]] ReactorCounters read() const {
    return {.enters = enters.value(),
            .sleeps = sleeps.value(),
            .completions = completions.value(),
            .buffer_shortages = buffer_shortages.value(),
            .receives_rearmed = receives_rearmed.value(),
            .partial_sends = partial_sends.value(),
            .accept_pauses = accept_pauses.value(),
            .refused_connections = refused_connections.value()};
  }
};

}  // namespace lockstep::io
