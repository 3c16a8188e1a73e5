// SPDX-License-Identifier: Apache-2.0
/// The runtime that one writes first: actors with a mailbox under a mutex, and threads that wait on a condition
/// variable for actors that have mail.

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "base/cpu_relax.hpp"
#include "bench/actors/actor_runtime.hpp"

namespace lockstep::bench {
namespace {

struct Message {
  Transaction transaction;
  bool accepted = false;  ///< of an answer
};

class Actor {
 public:
  Actor() = default;
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;
  virtual ~Actor() = default;
  virtual void on(const Message& message) = 0;

 private:
  friend class Pool;
  std::mutex mutex_;
  std::deque<Message> mail_;
  bool has_thread_ = false;  // or waits for one
};

class Pool {
 public:
  explicit Pool(unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Pool() {
    {
      const std::scoped_lock lock(mutex_);
      stopped_ = true;
    }
    ready_changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void post(Actor& actor, const Message& message) {
    {
      const std::scoped_lock lock(actor.mutex_);
      actor.mail_.push_back(message);
      if (actor.has_thread_) return;
      actor.has_thread_ = true;
    }
    make_ready(actor);
  }

 private:
  /// Messages of one actor before another gets the thread.
  static constexpr int messages_per_turn = 64;

  void make_ready(Actor& actor) {
    {
      const std::scoped_lock lock(mutex_);
      ready_.push_back(&actor);
    }
    ready_changed_.notify_one();
  }

  void work() {
    while (true) {
      std::unique_lock lock(mutex_);
      ready_changed_.wait(lock, [this] { return stopped_ || !ready_.empty(); });
      if (stopped_) return;
      Actor& actor = *ready_.front();
      ready_.pop_front();
      lock.unlock();
      if (take_turn(actor)) make_ready(actor);
    }
  }

  /// True when the actor has mail left.
  static bool take_turn(Actor& actor) {
    for (int i = 0; i < messages_per_turn; ++i) {
      Message message;
      {
        const std::scoped_lock lock(actor.mutex_);
        if (actor.mail_.empty()) {
          actor.has_thread_ = false;
          return false;
        }
        message = actor.mail_.front();
        actor.mail_.pop_front();
      }
      actor.on(message);
    }
    return true;
  }

  std::mutex mutex_;
  std::condition_variable ready_changed_;
  std::deque<Actor*> ready_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

class Receiver final : public Actor {
 public:
  explicit Receiver(Answers& answers) : answers_(answers) {}
  void on(const Message& message) override { answers_.take(message.transaction.number, message.accepted); }

 private:
  Answers& answers_;
};

class Teller final : public Actor {
 public:
  Teller(Pool& pool, Receiver& receiver) : pool_(pool), receiver_(receiver) {}
  void on(const Message& message) override {
    pool_.post(receiver_, {message.transaction, accounts_.apply(message.transaction)});
  }
  [[nodiscard]] const Accounts& accounts() const { return accounts_; }

 private:
  Pool& pool_;
  Receiver& receiver_;
  Accounts accounts_;
};

class MutexPool final : public ActorRuntime {
 public:
  MutexPool(Answers& answers, unsigned threads) : receiver_(answers), teller_(pool_, receiver_), pool_(threads) {}
  bool send(const Transaction& transaction) override {
    pool_.post(teller_, {transaction, false});
    return true;
  }
  void turn() override { cpu_relax(); }
  std::vector<std::int64_t> balances() override { return teller_.accounts().balances(); }

 private:
  Receiver receiver_;
  Teller teller_;
  Pool pool_;  // the last: its threads end before the actors do
};

}  // namespace

std::unique_ptr<ActorRuntime> make_mutex_pool(Answers& answers, unsigned threads) {
  return std::make_unique<MutexPool>(answers, threads);
}

}  // namespace lockstep::bench
