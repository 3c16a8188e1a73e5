// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ModelBook: the book's rules once more, as plainly as they can be said: one vector of orders, sorted anew whenever
/// one is added. What the book's reports are compared with. Test code only.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "book_message.hpp"

namespace matching {

class ModelBook {
 public:
  struct Resting {
    OrderKey key;
    Side side = Side::Buy;
    std::int64_t price = 0;
    std::uint64_t remaining = 0;
    std::uint64_t executed = 0;
    std::uint64_t arrival = 0;
  };

  /// Best first, of one price the oldest first.
  [[nodiscard]] std::vector<Resting> of(Side side) const {
    std::vector<Resting> orders;
    for (const Resting& order : resting_)
      if (order.side == side) orders.push_back(order);
    std::ranges::sort(orders, [side](const Resting& a, const Resting& b) {
      if (a.price != b.price) return side == Side::Buy ? a.price > b.price : a.price < b.price;
      return a.arrival < b.arrival;
    });
    return orders;
  }
  [[nodiscard]] std::size_t size() const { return resting_.size(); }
  [[nodiscard]] const Resting* find(const OrderKey& key) const {
    const auto at = std::ranges::find(resting_, key, &Resting::key);
    return at == resting_.end() ? nullptr : &*at;
  }

  std::vector<ExecutionReport> apply(const BookMessage& message, const Moment& moment) {
    reports_.clear();
    moment_ = moment;
    switch (message.kind) {
      case BookMessage::Kind::enter:
        enter(message.entry);
        break;
      case BookMessage::Kind::cancel:
        take_off(message.entry.key, largest_quantity, 0);
        break;
      case BookMessage::Kind::reduce:
        take_off(message.entry.key, message.by, message.by);
        break;
      case BookMessage::Kind::halt:
      case BookMessage::Kind::resume:
        halted_ = message.kind == BookMessage::Kind::halt;
        report({}, OrderKind::Limit, halted_ ? Event::Halted : Event::Resumed, Reason::None, 0, 0);
        break;
    }
    return reports_;
  }

 private:
  static bool accepts(const Entry& entry, std::int64_t price) {
    if (entry.kind == OrderKind::Market) return true;
    return entry.side == Side::Buy ? price <= entry.price : price >= entry.price;
  }

  Reason fault_of(const Entry& entry) const {
    if (entry.side != Side::Buy && entry.side != Side::Sell) return Reason::BadSide;
    if (static_cast<unsigned>(entry.kind) > 3) return Reason::BadKind;
    if (entry.kind != OrderKind::Market && (entry.price < 1 || entry.price > largest_price)) return Reason::BadPrice;
    if (entry.quantity < 1 || entry.quantity > largest_quantity) return Reason::BadQuantity;
    if (halted_) return Reason::TradingHalted;
    if (find(entry.key) != nullptr) return Reason::DuplicateOrder;
    if (entry.kind == OrderKind::Limit && resting_.size() == most_orders) return Reason::BookFull;
    if (entry.kind != OrderKind::FillOrKill) return Reason::None;
    std::uint64_t available = 0;
    std::uint64_t orders = 0;
    for (const Resting& order : of(opposite(entry.side)))
      if (accepts(entry, order.price) && orders++ < most_trades) available += order.remaining;
    return available >= entry.quantity ? Reason::None : Reason::NotFillable;
  }

  void enter(const Entry& entry) {
    Resting incoming{entry.key, entry.side, entry.price, entry.quantity, 0, moment_.seq};
    Reason why = fault_of(entry);
    if (why != Reason::None) {
      incoming.remaining = 0;
      return report(incoming, entry.kind, Event::Refused, why, entry.price, entry.quantity);
    }
    std::uint32_t trades = 0;
    for (const Resting& met : of(opposite(entry.side))) {
      if (incoming.remaining == 0 || trades == most_trades || !accepts(entry, met.price)) break;
      trade(incoming, entry.kind, met.key);
      ++trades;
    }
    const std::uint64_t left = incoming.remaining;
    if (left == 0) return;
    if (entry.kind == OrderKind::Limit && trades < most_trades) {
      resting_.push_back(incoming);
      return report(incoming, entry.kind, Event::Entered, Reason::None, entry.price, left);
    }
    incoming.remaining = 0;
    why = trades < most_trades ? Reason::NothingToTrade : Reason::TooManyTrades;
    report(incoming, entry.kind, Event::Cancelled, why, entry.price, left);
  }

  void trade(Resting& incoming, OrderKind kind, const OrderKey& with) {
    const auto met = std::ranges::find(resting_, with, &Resting::key);
    const std::uint64_t quantity = std::min(incoming.remaining, met->remaining);
    incoming.remaining -= quantity;
    incoming.executed += quantity;
    met->remaining -= quantity;
    met->executed += quantity;
    const Resting after = *met;
    if (after.remaining == 0) resting_.erase(met);
    report(incoming, kind, Event::Traded, Reason::None, after.price, quantity, after.key, after.remaining);
  }

  void take_off(const OrderKey& key, std::uint32_t by, std::uint32_t asked) {
    const auto at = std::ranges::find(resting_, key, &Resting::key);
    if (at == resting_.end())
      return report({.key = key}, OrderKind::Limit, Event::Refused, Reason::UnknownOrder, 0, asked);
    if (by == 0) return report(*at, OrderKind::Limit, Event::Refused, Reason::BadQuantity, at->price, 0);
    const std::uint64_t quantity = std::min<std::uint64_t>(by, at->remaining);
    at->remaining -= quantity;
    const Resting after = *at;
    if (after.remaining == 0) resting_.erase(at);
    report(after, OrderKind::Limit, after.remaining == 0 ? Event::Cancelled : Event::Reduced, Reason::None, after.price,
           quantity);
  }

  void report(const Resting& subject, OrderKind kind, Event event, Reason reason, std::int64_t price,
              std::uint64_t quantity, const OrderKey& met = {}, std::uint64_t met_remaining = 0) {
    std::int64_t bid = 0;
    std::int64_t ask = 0;
    for (const Resting& order : resting_) {
      if (order.side == Side::Buy) bid = std::max(bid, order.price);
      if (order.side == Side::Sell) ask = ask == 0 ? order.price : std::min(ask, order.price);
    }
    reports_.emplace_back(++reported_, moment_.seq, moment_.time_ns, moment_.symbol, subject.key.account,
                          subject.key.order, price, quantity, subject.remaining, subject.executed, met.account,
                          met.order, met_remaining, bid, ask, event, subject.side, kind, reason, 0U);
  }

  std::vector<Resting> resting_;
  std::vector<ExecutionReport> reports_;
  Moment moment_;
  std::uint64_t reported_ = 0;
  bool halted_ = false;
};

}  // namespace matching
