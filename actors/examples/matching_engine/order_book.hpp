// SPDX-License-Identifier: Apache-2.0
#pragma once

/// OrderBook: the book of one symbol as an actor; the symbol's number is its key. Every order, cancel and reduction is
/// one atomic step of history, answered with what it led to. Whoever's order lay in the book learns of a trade by
/// asking, or from a log of reports: an answer goes to the client that asked for something.

#include <lockstep/actor.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "book.hpp"
#include "matching_engine_bfbs_generated.h"
#include "matching_engine_generated.h"

namespace matching {

/// Of each side, in one answer.
inline constexpr std::uint32_t most_depth_levels = 100;

struct OrderBook {
  static constexpr auto name = "matching.OrderBook";
  static constexpr std::uint64_t arena_bytes = std::uint64_t{64} << 20;  // most_orders orders, each at its own price
  using Receives = lockstep::Receives<NewOrder, Cancel, Reduce, SetTrading, GetOrder, GetDepth>;
  using Schema = NewOrderBinarySchema;

  Book book;

  void on(const NewOrder& m, lockstep::Context& cx) {
    const Entry entry{{m.account(), m.order()}, m.side(), m.kind(), m.price(), m.quantity()};
    ReportList reports;
    book.enter(entry, moment(cx), reports);
    cx.reply<Reports>(reports.view());
  }

  void on(const Cancel& m, lockstep::Context& cx) {
    ReportList reports;
    book.cancel({m.account(), m.order()}, moment(cx), reports);
    cx.reply<Reports>(reports.view());
  }

  void on(const Reduce& m, lockstep::Context& cx) {
    ReportList reports;
    book.reduce({m.account(), m.order()}, m.by(), moment(cx), reports);
    cx.reply<Reports>(reports.view());
  }

  void on(const SetTrading& m, lockstep::Context& cx) {
    ReportList reports;
    book.set_halted(m.halted(), moment(cx), reports);
    cx.reply<Reports>(reports.view());
  }

  void on(const GetOrder& m, lockstep::Query& q) const {
    const Order* const order = book.find({m.account(), m.order()});
    if (order == nullptr) return q.reply<NoOrder>();
    q.reply<OpenOrder>(order->side(), order->price(), order->remaining, order->executed);
  }

  void on(const GetDepth& m, lockstep::Query& q) const {
    std::array<DepthLevel, most_depth_levels> bids;
    std::array<DepthLevel, most_depth_levels> asks;
    q.reply<Depth>(best(Side::Buy, m.levels(), bids), best(Side::Sell, m.levels(), asks), book.orders.size(),
                   book.reported, book.halted != 0);
  }

 private:
  static Moment moment(const lockstep::Context& cx) {
    return {cx.self().key, cx.seq(), cx.now().time_since_epoch().count()};
  }

  [[nodiscard]] std::span<const DepthLevel> best(Side side, std::uint32_t wanted, std::span<DepthLevel> room) const {
    std::size_t filled = 0;
    for (const auto& [rank, level] : book.side(side)) {
      if (filled == std::min<std::size_t>(wanted, room.size())) break;
      room[filled++] = DepthLevel(side == Side::Buy ? -rank : rank, level.quantity, level.orders);
    }
    return room.first(filled);
  }
};

}  // namespace matching
