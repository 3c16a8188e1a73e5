// SPDX-License-Identifier: Apache-2.0
#include "lobster.hpp"

#include <doctest/doctest.h>
#include <lockstep/testing/arena_fixture.hpp>

#include <fstream>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "flow_run.hpp"
#include "journal/testing/scratch_directory.hpp"

namespace matching {
namespace {

using Type = LobsterMessage::Type;
using Levels = std::vector<std::tuple<std::int64_t, std::uint64_t, std::uint64_t>>;

Levels levels_of(const Book& book, Side side) {
  Levels levels;
  for (const auto& [rank, level] : book.side(side)) levels.emplace_back(rank, level.quantity, level.orders);
  return levels;
}

std::string write_file(const lockstep::ScratchDirectory& directory, const std::string& text) {
  const std::string path = directory.file("message.csv");
  std::ofstream(path) << text;
  return path;
}

}  // namespace

TEST_CASE("a line of LOBSTER's documentation is read as it says") {
  const auto message = parse_lobster("34713.685155243,1,206833312,100,118600,-1");
  REQUIRE(message);
  CHECK(*message == LobsterMessage{34'713'685'155'243, Type::new_order, 206'833'312, 100, 118'600, -1});
  CHECK(parse_lobster("34200,7,0,0,-1,-1\r")->price == -1);
  CHECK(parse_lobster("34200.5,6,-1,100,1,1")->time_ns == 34'200'500'000'000);
}

TEST_CASE("any message is read back as it was written") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) {
    const auto type = static_cast<Type>(1 + random() % 6);
    const LobsterMessage message{static_cast<std::int64_t>(random() % 86'400'000'000'000),
                                 type,
                                 static_cast<std::int64_t>(1 + random() % 1'000'000'000'000),
                                 static_cast<std::uint32_t>(1 + random() % largest_quantity),
                                 static_cast<std::int64_t>(1 + random() % largest_price),
                                 static_cast<std::int8_t>(random() % 2 == 0 ? 1 : -1)};
    const auto read = parse_lobster(format_lobster(message));
    REQUIRE(read);
    REQUIRE(*read == message);
  }
}

TEST_CASE("a line that cannot be right is refused with what is wrong") {
  const std::pair<const char*, const char*> lines[] = {
      {"", "six fields"},
      {"34200.1,1,5,100,1000", "six fields"},
      {"34200.1,1,5,100,1000,1,7", "six fields"},
      {"x,1,5,100,1000,1", "time 'x'"},
      {"-1,1,5,100,1000,1", "time"},
      {"34200.,1,5,100,1000,1", "time"},
      {"34200.1234567891,1,5,100,1000,1", "time"},
      {"86401,1,5,100,1000,1", "time"},
      {"34200.1,0,5,100,1000,1", "type 0"},
      {"34200.1,8,5,100,1000,1", "type 8"},
      {"34200.1,,5,100,1000,1", "type ''"},
      {"34200.1,1,0,100,1000,1", "order 0"},
      {"34200.1,1,5x,100,1000,1", "order '5x'"},
      {"34200.1,1,5,0,1000,1", "size 0"},
      {"34200.1,1,5,-3,1000,1", "size '-3'"},
      {"34200.1,1,5,99999999999,1000,1", "size"},
      {"34200.1,1,5,2000000000,1000,1", "size"},
      {"34200.1,4,5,100,0,1", "price 0"},
      {"34200.1,1,5,100,1e5,1", "price '1e5'"},
      {"34200.1,1,5,100,1000,0", "direction '0'"},
      {"34200.1,1,5,100,1000,+1", "direction '+1'"},
      {"34200.1,7,0,0,2,-1", "halt"},
      {"34200.1,1,5,100,1000,1 ", "direction"},
  };
  for (const auto& [line, words] : lines) {
    CAPTURE(line);
    const auto message = parse_lobster(line);
    REQUIRE(!message);
    CHECK(message.error().find(words) != std::string::npos);
  }
}

TEST_CASE("a file with bad lines is refused with the places of the first ten") {
  const lockstep::ScratchDirectory directory;
  std::string text = "34200.2,1,1,100,1000,1\n34200.1,1,2,100,1000,1\nnonsense\n";
  auto read = read_lobster(write_file(directory, text));
  REQUIRE(!read);
  CHECK(read.error().code == lockstep::ErrorCode::usage);
  CHECK(read.error().message.find("message.csv:2: its time is before") != std::string::npos);
  CHECK(read.error().message.find("message.csv:3: it has not six") != std::string::npos);
  for (int i = 0; i < 10; ++i) text += "nonsense\n";
  read = read_lobster(write_file(directory, text));
  REQUIRE(!read);
  CHECK(read.error().message.find("message.csv:11:") != std::string::npos);
  CHECK(read.error().message.find("message.csv:12:") == std::string::npos);
  CHECK(read.error().message.find("and 2 lines more") != std::string::npos);
  read = read_lobster(directory.file("missing.csv"));
  REQUIRE(!read);
  CHECK(read.error().message.find("ENOENT") != std::string::npos);
}

TEST_CASE("a book that was written as a LOBSTER file and read from it is the same, order by order") {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    CAPTURE(seed);
    FlowRun run(seed);
    std::vector<LobsterMessage> messages;
    for (int i = 0; i < 20'000; ++i) {
      for (const ExecutionReport& report : run.next()) {
        const auto message = of_report(report);
        if (!message) continue;
        const auto read = parse_lobster(format_lobster(*message));
        REQUIRE(read);
        messages.push_back(*read);
      }
    }
    const Levels bids = levels_of(run.book(), Side::Buy);
    const Levels asks = levels_of(run.book(), Side::Sell);

    lockstep::testing::ArenaFixture arena(std::uint64_t{16} << 20);
    Book book;
    ReportList reports;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const auto message = to_book(messages[i], i + 1);
      REQUIRE(message);
      reports.clear();
      apply(*message, {1, i + 1, messages[i].time_ns}, book, reports);
      REQUIRE(reports.view().size() == 1);
      REQUIRE(reports.view()[0].event() != Event::Refused);
      if (messages[i].type == Type::execution) {
        REQUIRE(reports.view()[0].resting_order() == static_cast<std::uint64_t>(messages[i].order));
        REQUIRE(reports.view()[0].remaining() == 0);
      }
      arena.commit();
    }
    CHECK(levels_of(book, Side::Buy) == bids);
    CHECK(levels_of(book, Side::Sell) == asks);
  }
}

TEST_CASE("what a visible book does not show is nothing to it") {
  CHECK(!to_book(*parse_lobster("34200.1,5,0,100,1000,1"), 1));
  CHECK(!to_book(*parse_lobster("34200.1,6,-1,100,1000,1"), 1));
  CHECK(to_book(*parse_lobster("34200.1,7,0,0,-1,-1"), 1)->kind == BookMessage::Kind::halt);
  CHECK(to_book(*parse_lobster("34200.1,7,0,0,0,-1"), 1)->kind == BookMessage::Kind::resume);
  CHECK(to_book(*parse_lobster("34200.1,7,0,0,1,-1"), 1)->kind == BookMessage::Kind::resume);
}

}  // namespace matching
