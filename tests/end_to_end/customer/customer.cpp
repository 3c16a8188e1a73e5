// SPDX-License-Identifier: Apache-2.0
// A bank's customer by the client library: deposits and transfers without pause, whatever becomes of the node
// meanwhile, then the accounts. Each deposit of 1 into an account is answered with the balance it led to, so the
// answers must be 1, 2, 3, … without a gap or a repetition: had one run twice, or an answer been another's, it would
// show.
//
// usage: customer PORT REQUESTS. Prints a line every 1000 requests; exit 0 if all is right, else 1 and what is not.
#include <fmt/format.h>

#include <cstdlib>
#include <deque>
#include <lockstep/client.hpp>
#include <string>
#include <vector>

#include "bank.hpp"

namespace {

constexpr std::uint64_t deposit_accounts = 64;
constexpr std::uint64_t first_transfer_account = 1000;
constexpr std::uint64_t transfer_accounts = 64;
constexpr std::int64_t capital = 1'000'000;
constexpr std::size_t depth = 256;

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "customer: {}\n", what);
  std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread
}

lockstep::Ref<bank::Branch> branch_of(std::uint64_t account) {
  return lockstep::ref<bank::Branch>(account % bank::branches);
}

class Customer {
 public:
  Customer(lockstep::Client client, std::uint64_t requests)
      : client_(std::move(client)), requests_(requests), deposits_(deposit_accounts) {}

  void run() {
    for (std::uint64_t i = 0; i < transfer_accounts; ++i) {
      const std::uint64_t account = first_transfer_account + i;
      if (!client_.request<bank::Deposit>(branch_of(account), account, capital)) give_up("the capital was refused");
    }
    for (std::uint64_t i = 0; i < requests_; ++i) {
      if (i % 4 == 3)
        transfer(i);
      else
        deposit(i % deposit_accounts);
      if (pending_.size() >= depth) collect();
      if (i % 1000 == 0) fmt::print("{}\n", i);
      std::fflush(stdout);
    }
    while (!pending_.empty()) collect();
    check();
  }

 private:
  struct Pending {
    std::uint64_t number = 0;
    std::uint64_t account = 0;
    std::int64_t balance = 0;  ///< it must lead to; 0: a transfer
  };

  void deposit(std::uint64_t account) {
    const auto number = client_.send<bank::Deposit>(branch_of(account), account, std::int64_t{1});
    if (!number) give_up(number.error().message);
    pending_.push_back({*number, account, ++deposits_[account]});
  }
  void transfer(std::uint64_t i) {
    const std::uint64_t from = first_transfer_account + i * 7 % transfer_accounts;
    const std::uint64_t to = first_transfer_account + i * 13 % transfer_accounts;
    const auto number = client_.send<bank::Transfer>(branch_of(from), from, to, std::int64_t{3});
    if (!number) give_up(number.error().message);
    pending_.push_back({*number, from, 0});
  }
  void collect() {
    const Pending oldest = pending_.front();
    pending_.pop_front();
    const auto answer = client_.collect(oldest.number);
    if (!answer) give_up(fmt::format("request {}: {}", oldest.number, answer.error().message));
    if (oldest.balance == 0) {
      if (answer->as<bank::Transferred>() == nullptr) give_up("a transfer was not answered as one");
      return;
    }
    const auto* const balance = answer->as<bank::Balance>();
    if (balance == nullptr) give_up("a deposit was not answered as one");
    if (balance->amount() != oldest.balance)
      give_up(fmt::format("deposit {} of account {} led to a balance of {}", oldest.balance, oldest.account,
                          balance->amount()));
  }
  std::int64_t balance_of(std::uint64_t account) {
    const auto answer = client_.request<bank::GetBalance>(branch_of(account), account);
    if (!answer || answer->as<bank::Balance>() == nullptr) give_up("a balance was not told");
    return answer->as<bank::Balance>()->amount();
  }
  void check() {
    for (std::uint64_t account = 0; account < deposit_accounts; ++account) {
      if (balance_of(account) != deposits_[account]) give_up(fmt::format("account {} is wrong", account));
    }
    std::int64_t sum = 0;
    for (std::uint64_t i = 0; i < transfer_accounts; ++i) sum += balance_of(first_transfer_account + i);
    if (sum != static_cast<std::int64_t>(transfer_accounts) * capital)
      give_up(fmt::format("the transfers made {} of {}", sum, static_cast<std::int64_t>(transfer_accounts) * capital));
  }

  lockstep::Client client_;
  std::uint64_t requests_;
  std::vector<std::int64_t> deposits_;
  std::deque<Pending> pending_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) give_up("usage: customer PORT REQUESTS");
  lockstep::ClientOptions options;
  options.port = static_cast<std::uint16_t>(std::stoul(argv[1]));
  options.request_timeout = std::chrono::seconds(60);
  auto client = lockstep::Client::connect(options);
  if (!client) give_up(client.error().message);
  Customer(std::move(*client), std::stoull(argv[2])).run();
}
