// SPDX-License-Identifier: Apache-2.0
#include "book.hpp"

#include <algorithm>
#include <limits>

namespace matching {

/// The order that a message is about, as it stands.
struct Book::Subject {
  OrderKey key;
  Side side = Side::Buy;
  OrderKind kind = OrderKind::Limit;
  std::int64_t price = 0;
  std::uint32_t remaining = 0;
  std::uint32_t executed = 0;

  [[nodiscard]] static Subject of(const Order& order) {
    return {order.key, order.side(), OrderKind::Limit, order.price(), order.remaining, order.executed};
  }
  [[nodiscard]] std::int64_t rank() const { return side == Side::Buy ? -price : price; }
  /// The last rank of the other side that it trades with.
  [[nodiscard]] std::int64_t limit() const {
    return kind == OrderKind::Market ? std::numeric_limits<std::int64_t>::max() : -rank();
  }
};

/// What a report tells beside its subject.
struct Book::Happening {
  Event event = Event::Refused;
  Reason reason = Reason::None;
  std::int64_t price = 0;
  std::uint32_t quantity = 0;
  OrderKey resting = {};
  std::uint32_t resting_remaining = 0;
};

std::int64_t Book::best_price(Side of) const {
  const Levels& ranked = side(of);
  if (ranked.empty()) return 0;
  const std::int64_t rank = ranked.begin()->key();
  return rank < 0 ? -rank : rank;
}

const Order* Book::find(const OrderKey& key) const {
  const auto* const handle = index.peek(key);
  return handle == nullptr ? nullptr : orders.peek(*handle);
}

void Book::enter(const Entry& entry, const Moment& moment, ReportList& reports) {
  Subject incoming{entry.key, entry.side, entry.kind, entry.price, entry.quantity, 0};
  Reason why = fault_of(entry);
  if (why == Reason::None && entry.kind == OrderKind::FillOrKill && !can_fill(incoming)) why = Reason::NotFillable;
  if (why != Reason::None) {
    incoming.remaining = 0;
    return report(incoming, {Event::Refused, why, entry.price, entry.quantity}, moment, reports);
  }

  Levels& met = levels_of(opposite(entry.side));
  std::uint32_t trades = 0;
  for (; incoming.remaining != 0 && trades < most_trades && !met.empty(); ++trades) {
    const std::int64_t best = std::as_const(met).begin()->key();
    if (best > incoming.limit()) break;
    trade(incoming, *met.find(best), moment, reports);
  }
  if (incoming.remaining == 0) return;

  const std::uint32_t rest_quantity = incoming.remaining;
  if (trades < most_trades && entry.kind == OrderKind::Limit) {
    rest(incoming);
    return report(incoming, {Event::Entered, Reason::None, entry.price, rest_quantity}, moment, reports);
  }
  incoming.remaining = 0;
  why = trades < most_trades ? Reason::NothingToTrade : Reason::TooManyTrades;
  report(incoming, {Event::Cancelled, why, entry.price, rest_quantity}, moment, reports);
}

void Book::cancel(const OrderKey& key, const Moment& moment, ReportList& reports) {
  const auto* const handle = index.peek(key);
  if (handle != nullptr) return take_off(*handle, largest_quantity, moment, reports);
  report({.key = key}, {Event::Refused, Reason::UnknownOrder}, moment, reports);
}

void Book::reduce(const OrderKey& key, std::uint32_t by, const Moment& moment, ReportList& reports) {
  const auto* const handle = index.peek(key);
  if (handle == nullptr) return report({.key = key}, {Event::Refused, Reason::UnknownOrder, 0, by}, moment, reports);
  if (by != 0) return take_off(*handle, by, moment, reports);
  const Subject subject = Subject::of(*orders.peek(*handle));
  report(subject, {Event::Refused, Reason::BadQuantity, subject.price, by}, moment, reports);
}

void Book::set_halted(bool now_halted, const Moment& moment, ReportList& reports) {
  halted = now_halted ? 1 : 0;
  report({}, {now_halted ? Event::Halted : Event::Resumed}, moment, reports);
}

/// Enums come from outside: a byte of a message may be none of them.
Reason Book::fault_of(const Entry& entry) const {
  if (entry.side > Side::MAX) return Reason::BadSide;
  if (entry.kind > OrderKind::MAX) return Reason::BadKind;
  const bool priced = entry.kind != OrderKind::Market;
  if (priced && (entry.price < 1 || entry.price > largest_price)) return Reason::BadPrice;
  if (entry.quantity < 1 || entry.quantity > largest_quantity) return Reason::BadQuantity;
  if (halted != 0) return Reason::TradingHalted;
  if (index.contains(entry.key)) return Reason::DuplicateOrder;
  if (entry.kind == OrderKind::Limit && orders.size() >= most_orders) return Reason::BookFull;
  return Reason::None;
}

/// Whether it would trade whole, within its limit and within most_trades.
bool Book::can_fill(const Subject& incoming) const {
  const Levels& met = side(opposite(incoming.side));
  std::uint64_t found = 0;
  std::uint32_t trades = 0;
  for (auto level = met.begin(); level != met.end() && level->key() <= incoming.limit(); ++level) {
    for (auto handle = level->value().first; !handle.is_null(); ++trades) {
      if (trades == most_trades) return false;
      const Order& order = orders[handle];
      found += order.remaining;
      if (found >= incoming.remaining) return true;
      handle = order.younger;
    }
  }
  return false;
}

/// With the oldest order of the level, which goes with its last one.
void Book::trade(Subject& incoming, Level& level, const Moment& moment, ReportList& reports) {
  const lockstep::Handle<Order> handle = level.first;
  Order& resting = orders[handle];
  const std::uint32_t quantity = std::min(incoming.remaining, resting.remaining);
  incoming.remaining -= quantity;
  incoming.executed += quantity;
  resting.remaining -= quantity;
  resting.executed += quantity;
  level.quantity -= quantity;
  const Happening what{Event::Traded, Reason::None, resting.price(), quantity, resting.key, resting.remaining};
  if (resting.remaining == 0) remove(handle, resting, level);
  report(incoming, what, moment, reports);
}

/// Behind the others of its price.
void Book::rest(const Subject& incoming) {
  Level& level = levels_of(incoming.side)[incoming.rank()];
  const lockstep::Handle<Order> handle = orders.insert({.key = incoming.key,
                                                        .rank = incoming.rank(),
                                                        .remaining = incoming.remaining,
                                                        .executed = incoming.executed,
                                                        .older = level.last,
                                                        .younger = {}});
  if (level.last.is_null()) {
    level.first = handle;
  } else {
    orders[level.last].younger = handle;
  }
  level.last = handle;
  level.quantity += incoming.remaining;
  level.orders += 1;
  index.insert(incoming.key, handle);
}

/// An order, and its level if that was the last one there.
void Book::remove(lockstep::Handle<Order> handle, const Order& order, Level& level) {
  (order.older.is_null() ? level.first : orders[order.older].younger) = order.younger;
  (order.younger.is_null() ? level.last : orders[order.younger].older) = order.older;
  level.orders -= 1;
  if (level.orders == 0) levels_of(order.side()).erase(order.rank);
  index.erase(order.key);
  orders.erase(handle);
}

/// At most what remains of it.
void Book::take_off(lockstep::Handle<Order> handle, std::uint32_t by, const Moment& moment, ReportList& reports) {
  Order& order = orders[handle];
  Level& level = *levels_of(order.side()).find(order.rank);
  const std::uint32_t quantity = std::min(by, order.remaining);
  order.remaining -= quantity;
  level.quantity -= quantity;
  const Subject subject = Subject::of(order);
  if (order.remaining == 0) remove(handle, order, level);
  const Event event = subject.remaining == 0 ? Event::Cancelled : Event::Reduced;
  report(subject, {event, Reason::None, subject.price, quantity}, moment, reports);
}

void Book::report(const Subject& subject, const Happening& what, const Moment& moment, ReportList& reports) {
  reports.add(ExecutionReport(++reported, moment.seq, moment.time_ns, moment.symbol, subject.key.account,
                              subject.key.order, what.price, what.quantity, subject.remaining, subject.executed,
                              what.resting.account, what.resting.order, what.resting_remaining, best_price(Side::Buy),
                              best_price(Side::Sell), what.event, subject.side, subject.kind, what.reason, 0));
}

}  // namespace matching
