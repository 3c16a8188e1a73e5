// SPDX-License-Identifier: Apache-2.0
/// The C++ Actor Framework (0.17, as Debian has it): an event-based actor each for the accounts and for the answers,
/// on CAF's work-stealing scheduler. Messages are CAF's own tuples.

#include <caf/all.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/cpu_relax.hpp"
#include "bench/actors/actor_runtime.hpp"

namespace lockstep::bench {
namespace {

using Apply = caf::atom_constant<caf::atom("apply")>;
using Answer = caf::atom_constant<caf::atom("answer")>;

caf::behavior teller(caf::event_based_actor*, Accounts* accounts) {
  return {[accounts](Apply, std::uint64_t number, std::uint64_t from, std::uint64_t to, std::int64_t amount) {
    return caf::make_message(Answer::value, number, accounts->apply({number, from, to, amount}));
  }};
}

caf::behavior receiver(caf::event_based_actor*, Answers* answers) {
  return {[answers](Answer, std::uint64_t number, bool accepted) { answers->take(number, accepted); }};
}

caf::actor_system_config& with_threads(caf::actor_system_config& config, unsigned threads) {
  config.set("scheduler.max-threads", static_cast<std::size_t>(threads));
  return config;
}

class CafRuntime final : public ActorRuntime {
 public:
  CafRuntime(Answers& answers, unsigned threads)
      : system_(with_threads(config_, threads)),
        teller_(system_.spawn(teller, &accounts_)),
        receiver_(system_.spawn(receiver, &answers)) {}
  ~CafRuntime() override {
    caf::anon_send_exit(teller_, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(receiver_, caf::exit_reason::user_shutdown);
  }

  /// In the receiver's name, so that the answer goes to it.
  bool send(const Transaction& transaction) override {
    caf::send_as(receiver_, teller_, Apply::value, transaction.number, transaction.from, transaction.to,
                 transaction.amount);
    return true;
  }
  void turn() override { cpu_relax(); }
  std::vector<std::int64_t> balances() override { return accounts_.balances(); }

 private:
  Accounts accounts_;
  caf::actor_system_config config_;
  caf::actor_system system_;  // its destructor waits for the actors
  caf::actor teller_;
  caf::actor receiver_;
};

}  // namespace

std::unique_ptr<ActorRuntime> make_caf(Answers& answers, unsigned threads) {
  return std::make_unique<CafRuntime>(answers, threads);
}

}  // namespace lockstep::bench
