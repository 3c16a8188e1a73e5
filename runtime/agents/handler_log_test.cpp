// SPDX-License-Identifier: Apache-2.0
// What becomes of the lines that handlers log.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "lockstep/actor.hpp"
#include "lockstep/encode.hpp"
#include "runtime/agents/frames.hpp"
#include "runtime/agents/memory_history.hpp"
#include "runtime/agents/replica.hpp"
#include "test_messages_generated.h"

namespace lockstep {
namespace {

using namespace testing;

/// Deposits are logged; a withdrawal is, and then throws.
struct Talker {
  static constexpr auto name = "talker";
  using Receives = lockstep::Receives<Deposit, Withdraw, Pass>;
  using Sends = lockstep::Sends<Pass>;

  std::int64_t total = 0;

  void on(const Deposit& m, Context& cx) {
    total += m.amount();
    cx.log("has {}", total);
    if (m.amount() == 7) cx.send<Pass>(ref<Talker>(m.account() + 1), 1U, m.account(), 0U);
  }
  void on(const Withdraw& m, Context& cx) {
    total -= m.amount();
    cx.log("has {}", total);
    throw std::runtime_error("as asked");
  }
  void on(const Pass& m, Context& cx) { cx.log("heard of {}", m.a()); }
};

/// What a text does that is long, or hostile.
struct Writer {
  static constexpr auto name = "writer";
  using Receives = lockstep::Receives<Do>;
  void on(const Do& m, Context& cx) {
    if (m.op() == 0) cx.log("{}", m.text()->string_view());
    if (m.op() == 1) cx.log("{:{}}", 1, -static_cast<int>(m.a()));  // throws when it is formatted
    cx.reply<Done>(0U, 0U, 0U);
  }
};

struct Lines final : LogSink {
  void write(std::string_view line) override { all.emplace_back(line); }
  std::vector<std::string> all;
};

/// Requests in one batch, from seq 2 on: genesis is the first.
class History {
 public:
  explicit History(const Application& application)
      : application_(application), history_({.application = application.digest()}, 0, 0), builder_(8192) {}

  template <class M, class A, class... Args>
  void add(Ref<A> to, const Args&... fields) {
    history_.add({.target = to.address(), .message_type = message_id<M>, .session = session_number(0, 0, 1)},
                 builder_.encode<M>(fields...), 0);
  }
  /// Runs it, and gives what it comes to.
  Checkpoint run(LogSink* sink) {
    if (!sealed_) history_.seal(0);
    sealed_ = true;
    Replica replica(application_, history_.genesis(), {.executors = 1, .log = sink});
    for (std::size_t i = 0; i < history_.size(); ++i) replica.run(history_.batch(i));
    return replica.end();
  }

 private:
  const Application& application_;
  MemoryHistory history_;
  MessageBuilder builder_;
  bool sealed_ = false;
};

}  // namespace

TEST_CASE("a line has the seq of its cause and its actor in front, in every round of the batch") {
  History history(application<Talker>());
  history.add<Deposit>(ref<Talker>(3), 3U, 5);
  history.add<Deposit>(ref<Talker>(4), 4U, 7);
  Lines lines;
  history.run(&lines);
  const std::vector<std::string> expected{"2 talker/3 has 5\n", "3 talker/4 has 7\n", "3 talker/5 heard of 4\n"};
  CHECK(lines.all == expected);
}

TEST_CASE("the lines of a handler that traps stay, and one more says that it was undone") {
  History history(application<Talker>());
  history.add<Deposit>(ref<Talker>(3), 3U, 5);
  history.add<Withdraw>(ref<Talker>(3), 3U, 2);
  history.add<Deposit>(ref<Talker>(3), 3U, 1);
  Lines lines;
  history.run(&lines);
  const std::vector<std::string> expected{"2 talker/3 has 5\n", "3 talker/3 has 3\n",
                                          "3 talker/3 -- undone: it threw an exception\n", "4 talker/3 has 6\n"};
  CHECK(lines.all == expected);
}

TEST_CASE("state and effects are the same whether lines are kept or not, a text that cannot be formatted included") {
  History history(application<Writer>());
  history.add<Do>(ref<Writer>(1), 0U, 0U, 0U, "text");
  history.add<Do>(ref<Writer>(1), 1U, 5U, 0U, "");
  Lines lines;
  CHECK(history.run(&lines) == history.run(nullptr));
  const std::vector<std::string> expected{"2 writer/1 text\n", "3 writer/1 (a text that cannot be formatted)\n"};
  CHECK(lines.all == expected);
}

TEST_CASE("a long text is cut at the bound, and no text begins a line of its own") {
  History history(application<Writer>());
  history.add<Do>(ref<Writer>(1), 0U, 0U, 0U, "one\n2 writer/1 two\t\x1b[31mred");
  history.add<Do>(ref<Writer>(1), 0U, 0U, 0U, std::string(max_log_line_bytes, 'x'));
  history.add<Do>(ref<Writer>(1), 0U, 0U, 0U,
                  std::string(max_log_line_bytes - 1 - std::string("4 writer/1 ").size(), 'y'));
  Lines lines;
  history.run(&lines);
  REQUIRE(lines.all.size() == 3);
  CHECK(lines.all[0] == "2 writer/1 one 2 writer/1 two  [31mred\n");
  CHECK(lines.all[1].size() == max_log_line_bytes);
  CHECK(lines.all[1].ends_with("xxx...\n"));
  CHECK(lines.all[2].size() == max_log_line_bytes);
  CHECK(lines.all[2].ends_with("yyyyyy\n"));
}

}  // namespace lockstep
