// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "commands.hpp"
#include "order_book.hpp"

namespace matching {
namespace {

using Levels = flatbuffers::Vector<const DepthLevel*>;

std::string cells(const Levels& levels, flatbuffers::uoffset_t at) {
  if (at >= levels.size()) return fmt::format("{:>8} {:>12} {:>14}", "", "", "");
  const DepthLevel& level = *levels.Get(at);
  return fmt::format("{:>8} {:>12} {:>14}", level.orders(), level.quantity(), level.price());
}

std::string text_of(const Depth& depth) {
  std::string text = fmt::format("{:>8} {:>12} {:>14}   {:>8} {:>12} {:>14}\n", "orders", "quantity", "bid", "orders",
                                 "quantity", "ask");
  const auto rows = std::max(depth.bids()->size(), depth.asks()->size());
  for (flatbuffers::uoffset_t i = 0; i < rows; ++i)
    text += fmt::format("{}   {}\n", cells(*depth.bids(), i), cells(*depth.asks(), i));
  text += fmt::format("{} orders, {} reports{}\n", depth.orders(), depth.reports(), depth.halted() ? ", halted" : "");
  return text;
}

std::string json_of(const Levels& levels) {
  std::string json;
  for (const DepthLevel* level : levels)
    json += fmt::format(R"({}{{"price": {}, "quantity": {}, "orders": {}}})", json.empty() ? "" : ", ", level->price(),
                        level->quantity(), level->orders());
  return fmt::format("[{}]", json);
}

std::string json_of(const Depth& depth) {
  return fmt::format(
      R"({{"schema": "matching.depth/1", "bids": {}, "asks": {}, "orders": {}, "reports": {}, "halted": {}}})",
      json_of(*depth.bids()), json_of(*depth.asks()), depth.orders(), depth.reports(), depth.halted());
}

int print_depth(const BookOptions& at, std::uint32_t levels, bool json) {
  auto client = connect(at.connect);
  if (!client) return report(client.error());
  const auto answer = client->request<GetDepth>(lockstep::ref<OrderBook>(at.symbol), levels);
  if (!answer && answer.error().trap == lockstep::TrapKind::no_actor)
    return report({lockstep::ErrorCode::io, fmt::format("book {} has had no message yet", at.symbol)});
  if (!answer) return report({lockstep::ErrorCode::io, answer.error().message});
  const Depth* const depth = answer->as<Depth>();
  if (depth == nullptr) return report({lockstep::ErrorCode::io, "the node's answer is no Depth"});
  fmt::print("{}", json ? json_of(*depth) + "\n" : text_of(*depth));
  return 0;
}

}  // namespace

int depth_command(int argc, char** argv) {
  CLI::App app{"Print the best prices of a node's book", "matching_engine depth"};
  BookOptions at;
  std::uint32_t levels = 5;
  bool json = false;
  at.add_to(app);
  app.add_option("--levels", levels, "of each side")->check(CLI::Range(1U, most_depth_levels))->capture_default_str();
  app.add_flag("--json", json, "one JSON object on stdout");
  return parse_and_run(app, argc, argv, [&] { return print_depth(at, levels, json); });
}

}  // namespace matching
