// SPDX-License-Identifier: Apache-2.0
#include "runtime/agents/resp_parser.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

using namespace lockstep;
using Status = RespParsed::Status;
using Words = std::vector<std::string>;

namespace {

Words words_of(const RespParser& parser) {
  return {parser.arguments().begin(), parser.arguments().end()};
}

std::string array_of(const Words& words) {
  std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  return bytes;
}

}  // namespace

TEST_CASE("an array of bulk strings is its arguments, any bytes in them") {
  RespParser parser({});
  RespScan scan;
  const Words words{"SET", "key", std::string("\0\r\n*1\r\n", 7), ""};
  const std::string bytes = array_of(words);
  const std::string with_next = bytes + "*1\r\n";
  const RespParsed parsed = parser.parse(with_next, scan);
  REQUIRE(parsed.status == Status::complete);
  CHECK(parsed.bytes == bytes.size());
  CHECK(words_of(parser) == words);
}

TEST_CASE("a command that arrives byte by byte is the same command") {
  RespParser parser({});
  for (const std::string& bytes :
       {array_of({"MSET", "a", "1", "b", std::string(100, 'x')}), std::string("PING  x\r\n")}) {
    RespScan scan;
    for (std::size_t length = 0; length != bytes.size(); ++length)
      REQUIRE(parser.parse(std::string_view(bytes).substr(0, length), scan).status == Status::incomplete);
    const RespParsed parsed = parser.parse(bytes, scan);
    REQUIRE(parsed.status == Status::complete);
    CHECK(parsed.bytes == bytes.size());
    CHECK(scan.at == 0);
    CHECK(parser.arguments().size() == (bytes[0] == '*' ? 5 : 2));
    CHECK(parser.arguments().back().size() == (bytes[0] == '*' ? 100 : 1));
  }
}

TEST_CASE("an unfinished command is gone on with where it stopped") {
  RespParser parser({});
  RespScan scan;
  const std::string bytes = array_of({"SET", "k", "value"});
  CHECK(parser.parse(std::string_view(bytes).substr(0, 14), scan).status == Status::incomplete);
  CHECK(scan.at == 13);
  CHECK(scan.arguments_left == 2);
}

TEST_CASE("inline commands are split at spaces, with Redis' quoting") {
  RespParser parser({});
  RespScan scan;
  const auto split = [&](std::string_view line) {
    REQUIRE(parser.parse(line, scan).status == Status::complete);
    return words_of(parser);
  };
  CHECK(split("PING\r\n") == Words{"PING"});
  CHECK(split("  set  a\tb \n") == Words{"set", "a", "b"});
  CHECK(split("\r\n").empty());
  CHECK(split("set \"a b\" 'c d'\r\n") == Words{"set", "a b", "c d"});
  CHECK(split("echo \"\\x41\\n\\\"\" 'it\\'s' \"\"\r\n") == Words{"echo", "A\n\"", "it's", ""});
}

TEST_CASE("what is not RESP is refused with Redis' complaint") {
  RespParser parser({.max_arguments = 4, .max_command_bytes = 100, .max_inline_bytes = 20});
  const auto complaint_of = [&](std::string_view bytes) {
    RespScan scan;
    const RespParsed parsed = parser.parse(bytes, scan);
    CHECK(parsed.status == Status::broken);
    return std::string(parsed.complaint);
  };
  CHECK(complaint_of("*x\r\n").find("invalid multibulk length") != std::string::npos);
  CHECK(complaint_of("*5\r\n").find("invalid multibulk length") != std::string::npos);
  CHECK(complaint_of("*99999999999999999999999\r\n").find("invalid multibulk length") != std::string::npos);
  CHECK(complaint_of("*1" + std::string(40, '1')).find("invalid multibulk length") != std::string::npos);
  CHECK(complaint_of("*1\r\n:1\r\n").find("expected '$'") != std::string::npos);
  CHECK(complaint_of("*1\r\n$-1\r\n").find("invalid bulk length") != std::string::npos);
  CHECK(complaint_of("*1\r\n$1x\r\n").find("invalid bulk length") != std::string::npos);
  CHECK(complaint_of("*1\r\n$101\r\n").find("larger") != std::string::npos);
  CHECK(complaint_of("*1\r\n$999999999999999999\r\n").find("larger") != std::string::npos);
  CHECK(complaint_of("*1\r\n$1\r\nabc").find("CRLF") != std::string::npos);
  CHECK(complaint_of(std::string(20, 'a')).find("too big inline") != std::string::npos);
  CHECK(complaint_of("a \"b\r\n").find("unbalanced") != std::string::npos);
  CHECK(complaint_of("a \"b\"c\r\n").find("unbalanced") != std::string::npos);
}

TEST_CASE("an empty or negative array is passed over") {
  RespParser parser({});
  RespScan scan;
  for (const std::string_view bytes : {"*0\r\n", "*-1\r\n"}) {
    const RespParsed parsed = parser.parse(bytes, scan);
    CHECK(parsed.status == Status::complete);
    CHECK(parsed.bytes == bytes.size());
    CHECK(parser.arguments().empty());
  }
}

TEST_CASE("any cut of any stream of commands gives the same commands") {
  std::mt19937_64 random(7);
  RespParser parser({});
  for (int round = 0; round != 200; ++round) {
    std::vector<Words> sent;
    std::string bytes;
    for (std::uint64_t commands = 1 + random() % 8; commands != 0; --commands) {
      Words words(1 + random() % 5);
      for (std::string& word : words)
        for (std::uint64_t left = random() % 40; left != 0; --left) word += static_cast<char>(random());
      bytes += array_of(words);
      sent.push_back(words);
    }
    std::vector<Words> read;
    std::string held;
    RespScan scan;
    for (std::size_t at = 0; at != bytes.size();) {
      const std::size_t chunk = std::min<std::size_t>(1 + random() % 30, bytes.size() - at);
      held.append(bytes, at, chunk);
      at += chunk;
      for (RespParsed parsed = parser.parse(held, scan); parsed.status == Status::complete;
           parsed = parser.parse(held, scan)) {
        read.push_back(words_of(parser));
        held.erase(0, parsed.bytes);
      }
    }
    REQUIRE(read == sent);
    CHECK(held.empty());
  }
}
