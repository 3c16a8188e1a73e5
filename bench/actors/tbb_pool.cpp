// SPDX-License-Identifier: Apache-2.0
/// Actors on oneTBB's work-stealing threads: a mailbox is TBB's concurrent queue, and an actor that gets its first
/// message is enqueued as a task.

#include <oneapi/tbb/concurrent_queue.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <atomic>
#include <utility>
#include <vector>

#include "base/cpu_relax.hpp"
#include "bench/actors/actor_runtime.hpp"

namespace lockstep::bench {
namespace {

struct Message {
  Transaction transaction;
  bool accepted = false;  ///< of an answer
};

/// Runs `handler` for each message, on one thread at a time.
template <class Handler>
class Actor {
 public:
  Actor(tbb::task_arena& arena, Handler handler) : arena_(arena), handler_(std::move(handler)) {}
  /// The answer to the last message may be out before its task has counted down; after that it touches nothing here.
  ~Actor() {
    while (waiting_.load(std::memory_order_acquire) != 0) cpu_relax();  // pairs with work()
  }
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;

  void post(const Message& message) {
    mail_.push(message);
    // Release: the message is in before it is counted. Acquire: the task that counted down to 0 has done its last one.
    if (waiting_.fetch_add(1, std::memory_order_acq_rel) == 0) start();
  }

 private:
  /// Messages of one task, so that other actors get the thread.
  static constexpr int messages_per_task = 64;

  void start() {
    arena_.enqueue([this] { work(); });
  }

  void work() {
    for (int i = 0; i < messages_per_task; ++i) {
      Message message;
      while (!mail_.try_pop(message)) cpu_relax();  // it is counted: its push has ended or is about to
      handler_(message);
      if (waiting_.fetch_sub(1, std::memory_order_acq_rel) == 1) return;  // pairs with post() and the destructor
    }
    start();
  }

  tbb::task_arena& arena_;
  Handler handler_;
  tbb::concurrent_queue<Message> mail_;
  std::atomic<int> waiting_{0};
};

class TbbPool final : public ActorRuntime {
 public:
  TbbPool(Answers& answers, unsigned threads)
      : parallelism_(tbb::global_control::max_allowed_parallelism, threads + 1),
        arena_(static_cast<int>(threads), 0),
        receiver_(arena_, Receive{answers}),
        teller_(arena_, Apply{accounts_, receiver_}) {}

  bool send(const Transaction& transaction) override {
    teller_.post({transaction, false});
    return true;
  }
  void turn() override { cpu_relax(); }
  std::vector<std::int64_t> balances() override { return accounts_.balances(); }

 private:
  struct Receive {
    Answers& answers;
    void operator()(const Message& message) const { answers.take(message.transaction.number, message.accepted); }
  };
  struct Apply {
    Accounts& accounts;
    Actor<Receive>& receiver;
    void operator()(const Message& message) const {
      receiver.post({message.transaction, accounts.apply(message.transaction)});
    }
  };

  tbb::global_control parallelism_;
  tbb::task_arena arena_;
  Accounts accounts_;
  Actor<Receive> receiver_;
  Actor<Apply> teller_;
};

}  // namespace

std::unique_ptr<ActorRuntime> make_tbb_pool(Answers& answers, unsigned threads) {
  return std::make_unique<TbbPool>(answers, threads);
}

}  // namespace lockstep::bench
