// SPDX-License-Identifier: Apache-2.0
#include "order_flow.hpp"

namespace matching {
namespace {

// The stream is cut into blocks of 40 messages. Each block has one message of each slot, shuffled:
//   0 … 16   enters an order that lives lifetimes[slot] blocks
//   17 … 33  cancels the order of slot - 17, so many blocks after it was entered
//   34, 35   reduce the orders of reduced_slots half-way through their lives
//   36 … 39  trade at once
constexpr std::uint64_t block_messages = 40;
constexpr std::uint64_t lasting_slots = 17;
constexpr std::uint64_t first_reduce_slot = 2 * lasting_slots;
constexpr std::uint64_t first_impatient_slot = first_reduce_slot + 2;
constexpr std::uint64_t lifetimes[lasting_slots] = {3, 3, 4, 4, 5, 6, 8, 10, 14, 20, 30, 50, 90, 160, 300, 600, 1200};
constexpr std::uint64_t reduced_slots[2] = {8, 12};

/// A block's messages are shuffled by position → position × stride + shift, modulo 40; these have no divisor with it.
constexpr std::uint64_t strides[16] = {1, 3, 7, 9, 11, 13, 17, 19, 21, 23, 27, 29, 31, 33, 37, 39};

/// The middle is a sum of these, each a value drawn every `period` messages, with straight lines between.
struct Wave {
  std::uint64_t period;
  std::int64_t height_steps;
};
constexpr Wave waves[] = {{65'536, 300}, {8'192, 60}, {1'024, 15}, {64, 3}};
constexpr std::int64_t mean_price = 1'000'000;

/// What the dice are for: each has numbers of its own.
enum Stream : std::uint64_t { of_shuffle = 0, of_account = 1, of_order = 2, of_first_wave = 3 };

/// Takes numbers from one throw of 64 bits; every bound is far below 2^16, so the bias is nothing here.
class Throw {
 public:
  explicit Throw(std::uint64_t bits) : bits_(bits) {}
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t value = bits_ % bound;
    bits_ /= bound;
    return value;
  }

 private:
  std::uint64_t bits_;
};

std::int64_t signed_of(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

}  // namespace

/// SplitMix64's mixing: https://prng.di.unimi.it/splitmix64.c.
std::uint64_t OrderFlow::dice(std::uint64_t stream, std::uint64_t at) const {
  std::uint64_t mixed = seed_ ^ stream * 0xD1B54A32D192ED03ULL;
  for (const std::uint64_t word : {at, stream}) {
    mixed += word + 0x9E3779B97F4A7C15ULL;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9ULL;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBULL;
    mixed ^= mixed >> 31;
  }
  return mixed;
}

std::int64_t OrderFlow::middle_at(std::uint64_t index) const {
  std::int64_t steps = 0;
  std::uint64_t stream = of_first_wave;
  for (const auto& [period, height] : waves) {
    const auto drawn = [&](std::uint64_t at) {
      return signed_of(dice(stream, at) % static_cast<std::uint64_t>(2 * height + 1)) - height;
    };
    const std::int64_t passed = signed_of(index % period);
    const std::int64_t left = signed_of(period) - passed;
    steps += (drawn(index / period) * left + drawn(index / period + 1) * passed) / signed_of(period);
    ++stream;
  }
  return mean_price + steps * price_step;
}

OrderKey OrderFlow::key_of(std::uint64_t number) const {
  constexpr std::uint64_t accounts = 1'000;
  return {1 + dice(of_account, number) % accounts, number + 1};
}

Entry OrderFlow::lasting(std::uint64_t block, std::uint64_t slot) const {
  const std::uint64_t number = block * block_messages + slot;
  Throw random(dice(of_order, number));
  const Side side = random.below(2) == 0 ? Side::Buy : Side::Sell;
  const std::int64_t away = signed_of(1 + random.below(2 + slot * slot)) * price_step;
  const std::int64_t price = middle_at(number) + (side == Side::Buy ? -away : away);
  const std::uint64_t quantity = random.below(4) == 0 ? 1 + random.below(99) : 100 * (1 + random.below(5));
  return {key_of(number), side, OrderKind::Limit, price, static_cast<std::uint32_t>(quantity)};
}

Entry OrderFlow::impatient(std::uint64_t block, std::uint64_t slot) const {
  constexpr OrderKind kinds[8] = {OrderKind::Market,
                                  OrderKind::FillOrKill,
                                  OrderKind::ImmediateOrCancel,
                                  OrderKind::ImmediateOrCancel,
                                  OrderKind::ImmediateOrCancel,
                                  OrderKind::ImmediateOrCancel,
                                  OrderKind::ImmediateOrCancel,
                                  OrderKind::ImmediateOrCancel};
  constexpr std::int64_t reach = 8 * price_step;
  const std::uint64_t number = block * block_messages + slot;
  Throw random(dice(of_order, number));
  const Side side = random.below(2) == 0 ? Side::Buy : Side::Sell;
  const std::int64_t price = middle_at(number) + (side == Side::Buy ? reach : -reach);
  const OrderKind kind = kinds[random.below(8)];
  return {key_of(number), side, kind, price, static_cast<std::uint32_t>(10 + random.below(140))};
}

BookMessage OrderFlow::at(std::uint64_t index) const {
  using Kind = BookMessage::Kind;
  const std::uint64_t block = index / block_messages;
  Throw shuffle(dice(of_shuffle, block));
  const std::uint64_t stride = strides[shuffle.below(16)];
  const std::uint64_t slot = (index % block_messages * stride + shuffle.below(block_messages)) % block_messages;
  if (slot < lasting_slots) return {Kind::enter, lasting(block, slot)};
  if (slot >= first_impatient_slot) return {Kind::enter, impatient(block, slot)};
  const bool reduces = slot >= first_reduce_slot;
  const std::uint64_t target = reduces ? reduced_slots[slot - first_reduce_slot] : slot - lasting_slots;
  const std::uint64_t age = reduces ? lifetimes[target] / 2 : lifetimes[target];
  // Before the beginning there are numbers too: the book will not know them.
  const OrderKey key = key_of(block * block_messages + target - age * block_messages);
  return {reduces ? Kind::reduce : Kind::cancel, {.key = key}, reduces ? 10U : 0U};
}

}  // namespace matching
