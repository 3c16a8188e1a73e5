// SPDX-License-Identifier: Apache-2.0
#include "bank.hpp"

#include <lockstep/run.hpp>

namespace {

/// The customers of `bench`: 100,000 accounts; half deposits, a fifth withdrawals, the rest transfers, most of them
/// between branches.
void load(std::uint64_t index, lockstep::LoadCommand& command) {
  constexpr std::uint64_t accounts = 100'000;
  std::uint64_t random = index * 0x9E3779B97F4A7C15ULL;
  random = (random ^ random >> 31) * 0xBF58476D1CE4E5B9ULL;
  random ^= random >> 29;
  const std::uint64_t account = random % accounts;
  const auto amount = static_cast<std::int64_t>(1 + (random >> 20) % 1000);
  const auto branch = lockstep::ref<bank::Branch>(account % bank::branches);
  const std::uint64_t dice = (random >> 40) % 10;
  if (dice < 5) return command.ask<bank::Deposit>(branch, account, amount);
  if (dice < 7) return command.ask<bank::Withdraw>(branch, account, amount);
  command.ask<bank::Transfer>(branch, account, (random >> 7) % accounts, amount);
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run<bank::Branch>(argc, argv, {.load = load});
}
