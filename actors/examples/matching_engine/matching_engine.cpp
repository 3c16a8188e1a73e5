// SPDX-License-Identifier: Apache-2.0
#include <lockstep/run.hpp>

#include "commands.hpp"
#include "order_book.hpp"
#include "order_flow.hpp"

namespace {

/// The traders of `bench`: 64 books, each with a flow of its own.
void load(std::uint64_t index, lockstep::LoadCommand& command) {
  constexpr std::uint64_t books = 64;
  const std::uint64_t symbol = index % books;
  const auto book = lockstep::ref<matching::OrderBook>(symbol);
  matching::as_request(matching::OrderFlow(symbol).at(index / books),
                       [&]<class M>(const auto&... fields) { command.ask<M>(book, fields...); });
}

constexpr lockstep::ProgramCommand commands[] = {
    {"import", "Send a LOBSTER message file to a node's book", matching::import_command},
    {"generate", "Write a LOBSTER message file of a made-up order flow", matching::generate_command},
    {"depth", "Print the best prices of a node's book", matching::depth_command},
};

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run<matching::OrderBook>(argc, argv, {.load = load, .commands = commands});
}
