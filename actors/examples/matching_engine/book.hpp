// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Book: one symbol's resting orders, and how an incoming one meets them: at the best price first, at one price the
/// oldest first, at the price of the one that rests. Plain state in an arena; it knows time and sequence numbers only
/// from the Moment it is handed, so it runs in an actor and outside of one alike.
///
///     levels[Buy], levels[Sell]   rank → Level              rank: what sorts best first on both sides
///     Level                       first ⇄ … ⇄ last          its orders, oldest first, linked through
///     orders                      Pool<Order>               where they lie, and never move
///     index                       (account, order) → Order
///
/// Holds after each call: no bid at or above an ask; no empty level; a level's quantity and count are those of its
/// orders; each order stands in one level and in the index; at most most_orders of them.
///
/// Each call adds to `reports` what happened, in order: one report a trade, and at the end what became of the message.
/// Belongs to the thread of the current arena.

#include <lockstep/actor.hpp>

#include <compare>
#include <cstdint>
#include <utility>

#include "execution_report.hpp"
#include "matching_engine_generated.h"

namespace matching {

inline constexpr std::int64_t largest_price = 1'000'000'000'000;  ///< in ticks
inline constexpr std::uint32_t largest_quantity = 1'000'000'000;
/// What the index holds in 2^17 slots: it grows no further, and a growth moves all of it at once.
inline constexpr std::uint32_t most_orders = 98'304;

[[nodiscard]] inline Side opposite(Side side) {
  return side == Side::Buy ? Side::Sell : Side::Buy;
}

struct OrderKey {
  std::uint64_t account = 0;
  std::uint64_t order = 0;
  friend auto operator<=>(const OrderKey&, const OrderKey&) = default;
};

/// An order as it comes in.
struct Entry {
  OrderKey key;
  Side side = Side::Buy;
  OrderKind kind = OrderKind::Limit;
  std::int64_t price = 0;
  std::uint32_t quantity = 0;
};

/// Where in history a call stands.
struct Moment {
  std::uint64_t symbol = 0;
  std::uint64_t seq = 0;
  std::int64_t time_ns = 0;
};

/// An order that rests. Its rank is its price, negative when it buys.
struct Order {
  OrderKey key;
  std::int64_t rank = 0;
  std::uint32_t remaining = 0;
  std::uint32_t executed = 0;
  lockstep::Handle<Order> older;
  lockstep::Handle<Order> younger;

  [[nodiscard]] Side side() const { return rank < 0 ? Side::Buy : Side::Sell; }
  [[nodiscard]] std::int64_t price() const { return rank < 0 ? -rank : rank; }
};

struct Level {
  lockstep::Handle<Order> first;
  lockstep::Handle<Order> last;
  std::uint64_t quantity = 0;
  std::uint64_t orders = 0;
};

struct Book {
  using Levels = lockstep::Map<std::int64_t, Level>;

  lockstep::Array<Levels, 2> levels;
  lockstep::Pool<Order> orders;
  lockstep::HashMap<OrderKey, lockstep::Handle<Order>> index;
  std::uint64_t reported = 0;  // reports so far
  std::uint64_t halted = 0;    // 1: takes no orders

  void enter(const Entry& entry, const Moment& moment, ReportList& reports);
  void cancel(const OrderKey& key, const Moment& moment, ReportList& reports);
  /// Takes `by` off what remains, or the whole order when no more does. What is left keeps its place.
  void reduce(const OrderKey& key, std::uint32_t by, const Moment& moment, ReportList& reports);
  void set_halted(bool now_halted, const Moment& moment, ReportList& reports);

  [[nodiscard]] const Levels& side(Side side) const { return levels[static_cast<std::size_t>(side)]; }
  /// 0 when there is none.
  [[nodiscard]] std::int64_t best_price(Side of) const;
  /// Null when it does not rest here.
  [[nodiscard]] const Order* find(const OrderKey& key) const;

 private:
  struct Subject;
  struct Happening;

  [[nodiscard]] Levels& levels_of(Side side) { return levels[static_cast<std::size_t>(side)]; }
  [[nodiscard]] Reason fault_of(const Entry& entry) const;
  [[nodiscard]] bool can_fill(const Subject& incoming) const;
  void trade(Subject& incoming, Level& level, const Moment& moment, ReportList& reports);
  void rest(const Subject& incoming);
  void remove(lockstep::Handle<Order> handle, const Order& order, Level& level);
  void take_off(lockstep::Handle<Order> handle, std::uint32_t by, const Moment& moment, ReportList& reports);
  void report(const Subject& subject, const Happening& what, const Moment& moment, ReportList& reports);
};

}  // namespace matching
