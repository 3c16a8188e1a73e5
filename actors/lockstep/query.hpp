// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Query: what a read-only handler, `void on(const M&, Query&) const`, may see and do. It runs on the executed state
/// between batches, is no part of history, and changes nothing. Belongs to one run, on its executor's thread.

#include "lockstep/context.hpp"

namespace lockstep {

class Query {
 public:
  Query(Address self, Time now, const EffectHeader& effect, EffectStage& stage)
      : self_(self), now_(now), effect_(effect), stage_(stage) {}
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  /// The last stamp of the batches executed so far.
  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] Address self() const { return self_; }

  template <Message M, class... Args>
  void reply(const Args&... fields) {
    stage_.add<M>(effect_, fields...);
  }

 private:
  Address self_;
  Time now_;
  EffectHeader effect_;
  EffectStage& stage_;
};

}  // namespace lockstep
