// SPDX-License-Identifier: Apache-2.0
#pragma once

/// EventQueue: network events between the turn that gathers them and the poll() that hands them out. Two arrays swap
/// places, so that a batch handed out stays whole while the next is gathered. One thread.

#include <algorithm>
#include <span>
#include <vector>

#include "runtime/io/network.hpp"

namespace lockstep::io {

class EventQueue {
 public:
  [[nodiscard]] bool empty() const { return gathered_.empty(); }
  /// A batch handed out may still hold buffers.
  [[nodiscard]] bool has_handed_out() const { return !handed_out_.empty(); }

  void push(const NetworkEvent& event) { gathered_.push_back(event); }

  /// Ends the batch handed out before: `release(data)` for the bytes of each `received` in it. Then hands out the next.
  template <class Release>
  [[nodiscard]] std::span<const NetworkEvent> take(Release&& release) {
    for (const NetworkEvent& event : handed_out_) {
      if (event.kind == NetworkEventKind::received) release(event.data);
    }
    handed_out_.clear();
    std::swap(handed_out_, gathered_);
    return handed_out_;
  }

  /// Takes back a connection's events that nobody has been handed yet, where `take_back(event)` agrees.
  template <class TakeBack>
  void withdraw(ConnectionId connection, TakeBack&& take_back) {
    std::erase_if(gathered_,
                  [&](const NetworkEvent& event) { return event.connection == connection && take_back(event); });
  }

 private:
  std::vector<NetworkEvent> gathered_;
  std::vector<NetworkEvent> handed_out_;
};

}  // namespace lockstep::io
