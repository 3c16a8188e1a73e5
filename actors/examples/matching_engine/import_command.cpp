// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "commands.hpp"
#include "lobster.hpp"
#include "order_book.hpp"

namespace matching {
namespace {

using Type = LobsterMessage::Type;

/// What the lines of one type came to.
struct Tally {
  std::uint64_t lines = 0;
  std::uint64_t sent = 0;
  std::uint64_t refused = 0;
};

struct Summary {
  Tally by_type[8];                   ///< the type's number is the index
  std::uint64_t named = 0;            ///< executions that traded with the order of their line, and no other
  std::uint64_t others = 0;           ///< that traded with another
  std::uint64_t none = 0;             ///< that found nothing to trade with
  std::uint64_t traded_at_entry = 0;  ///< new orders that met a resting one, as they did not on the exchange

  [[nodiscard]] Tally& of(Type type) { return by_type[static_cast<std::size_t>(type)]; }
  [[nodiscard]] const Tally& of(Type type) const { return by_type[static_cast<std::size_t>(type)]; }
};

/// Counts what a message came to.
void count(const LobsterMessage& message, const Reports& answer, Summary& summary) {
  std::uint64_t trades = 0;
  std::uint64_t with_named = 0;
  for (const ExecutionReport* report : *answer.reports()) {
    if (report->event() == Event::Refused) summary.of(message.type).refused += 1;
    if (report->event() != Event::Traded) continue;
    trades += 1;
    with_named += report->resting_account() == resting_account &&
                          report->resting_order() == static_cast<std::uint64_t>(message.order)
                      ? 1U
                      : 0U;
  }
  if (message.type == Type::new_order) summary.traded_at_entry += trades != 0 ? 1U : 0U;
  if (message.type != Type::execution) return;
  if (trades == 0) {
    summary.none += 1;
  } else {
    (trades == with_named ? summary.named : summary.others) += 1;
  }
}

/// Sends a file's messages in order, some ahead of their answers.
class Importer {
 public:
  Importer(lockstep::Client client, std::uint64_t symbol) : client_(std::move(client)), book_{symbol} {}

  lockstep::Result<Summary> run(const std::vector<LobsterMessage>& messages) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      Tally& tally = summary_.of(messages[i].type);
      tally.lines += 1;
      const auto message = to_book(messages[i], i + 1);
      if (!message) continue;
      const auto sent =
          as_request(*message, [&]<class M>(const auto&... fields) { return client_.send<M>(book_, fields...); });
      if (!sent) return failed(i, pending_.empty() ? i : pending_.front().message, i, sent.error());
      tally.sent += 1;
      pending_.push_back({*sent, i});
      if (pending_.size() < most_pending) continue;
      if (auto collected = collect(messages); !collected) return std::unexpected(collected.error());
    }
    while (!pending_.empty())
      if (auto collected = collect(messages); !collected) return std::unexpected(collected.error());
    return summary_;
  }

 private:
  static constexpr std::size_t most_pending = 256;
  struct Pending {
    std::uint64_t request = 0;
    std::size_t message = 0;
  };

  lockstep::Result<void> collect(const std::vector<LobsterMessage>& messages) {
    const Pending oldest = pending_.front();
    const std::size_t last_sent = pending_.back().message;
    pending_.pop_front();
    const auto answer = client_.collect(oldest.request);
    if (!answer) return failed(oldest.message, oldest.message, last_sent, answer.error());
    const Reports* const reports = answer->as<Reports>();
    if (reports == nullptr)
      return lockstep::fail(lockstep::ErrorCode::io, fmt::format("line {}: not answered by reports; is this a matching "
                                                                 "engine of the same version?",
                                                                 oldest.message + 1));
    count(messages[oldest.message], *reports, summary_);
    return {};
  }
  /// `open` is the first message without an answer, `last_sent` the last one that may have reached the node.
  static std::unexpected<lockstep::Error> failed(std::size_t message, std::size_t open, std::size_t last_sent,
                                                 const lockstep::ClientError& error) {
    return lockstep::fail(
        lockstep::ErrorCode::io,
        fmt::format("line {}: {}; the lines before line {} were answered, any of lines {} to {} may have run",
                    message + 1, error.message, open + 1, open + 1, last_sent + 1));
  }

  lockstep::Client client_;
  lockstep::Ref<OrderBook> book_;
  std::deque<Pending> pending_;
  Summary summary_;
};

std::string text_of(const Summary& summary) {
  const auto line = [&](const char* name, Type type, const std::string& more) {
    const Tally& tally = summary.of(type);
    return fmt::format("{:<22}{:>10} lines {:>10} sent {:>10} refused{}\n", name, tally.lines, tally.sent,
                       tally.refused, more);
  };
  return line("1 new order", Type::new_order, fmt::format(", {} traded at once", summary.traded_at_entry)) +
         line("2 partial cancel", Type::partial_cancel, "") + line("3 deletion", Type::deletion, "") +
         line("4 execution", Type::execution,
              fmt::format(": {} with the order named, {} with others, {} with none", summary.named, summary.others,
                          summary.none)) +
         line("5 hidden execution", Type::hidden_execution, "") + line("6 cross trade", Type::cross, "") +
         line("7 trading halt", Type::halt, "");
}

std::string json_of(const Summary& summary) {
  const auto object = [&](const char* name, Type type) {
    const Tally& tally = summary.of(type);
    return fmt::format(R"("{}": {{"lines": {}, "sent": {}, "refused": {}}}, )", name, tally.lines, tally.sent,
                       tally.refused);
  };
  std::string json = R"({"schema": "matching.import/1", )";
  json += object("new_order", Type::new_order);
  json += object("partial_cancel", Type::partial_cancel);
  json += object("deletion", Type::deletion);
  json += object("execution", Type::execution);
  json += object("hidden_execution", Type::hidden_execution);
  json += object("cross", Type::cross);
  json += object("halt", Type::halt);
  json += fmt::format(R"("executed_named": {}, "executed_others": {}, "executed_none": {}, "traded_at_entry": {}}})",
                      summary.named, summary.others, summary.none, summary.traded_at_entry);
  return json + "\n";
}

int import_file(const std::string& path, const BookOptions& to, bool json) {
  const auto messages = read_lobster(path);
  if (!messages) return report(messages.error());
  auto client = connect(to.connect);
  if (!client) return report(client.error());
  const auto summary = Importer(std::move(*client), to.symbol).run(*messages);
  if (!summary) return report({summary.error().code, fmt::format("{}: {}", path, summary.error().message)});
  fmt::print("{}", json ? json_of(*summary) : text_of(*summary));
  return 0;
}

constexpr const char* mapping =
    "A LOBSTER message file tells what became of the orders of one stock; the book is sent what leads there:\n"
    "  1 new order          the limit order\n"
    "  2 partial cancel     a reduction by the line's size; the order keeps its place in the queue\n"
    "  3 deletion           a cancel\n"
    "  4 execution          an immediate-or-cancel order of the other side, at the line's price and size: in a book "
    "that\n"
    "                       is as the exchange's was, it trades with the very order that the line names\n"
    "  5 hidden execution   nothing: the visible book does not change\n"
    "  6 cross trade        nothing\n"
    "  7 trading halt       price -1 halts the book, 0 (quoting resumes) and 1 (trading resumes) open it: there is no\n"
    "                       auction here\n"
    "The orders are account 1's, under their numbers; those that trade with them account 2's, numbered by line. A "
    "file\n"
    "that begins with a book that is not empty names orders it never entered: their cancels are refused, and their\n"
    "executions trade with others, or none; all are counted. Nothing is sent if any line cannot be read.";

}  // namespace

int import_command(int argc, char** argv) {
  CLI::App app{"Send a LOBSTER message file to a node's book", "matching_engine import"};
  std::string path;
  BookOptions to;
  bool json = false;
  app.add_option("FILE", path, "TICKER_DATE_..._message_LEVEL.csv, or one that `generate` wrote")->required();
  to.add_to(app);
  app.add_flag("--json", json, "one JSON object on stdout");
  app.footer(mapping);
  return parse_and_run(app, argc, argv, [&] { return import_file(path, to, json); });
}

}  // namespace matching
