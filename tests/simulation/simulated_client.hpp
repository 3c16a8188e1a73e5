// SPDX-License-Identifier: Apache-2.0
#pragma once

/// SimulatedClient: a bank's customer over a FakeNetwork who does all that a bad network and an impatient client do:
/// sends the same request twice, again, or out of order, cuts connections before the answers came, resumes, sends what
/// is unanswered once more. It deposits 1 at a time into an account of its own, so the balance in an answer tells how
/// many deposits had run; and it holds every answer against the first it got for that number.

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "bank.hpp"
#include "lockstep/encode.hpp"
#include "lockstep/wire.hpp"
#include "runtime/agents/testing/fake_network.hpp"

namespace lockstep::testing {

class SimulatedClient {
 public:
  SimulatedClient(std::uint64_t account, std::uint64_t seed) : account_(account), random_(seed) {}

  /// Does something, or nothing. Reads first: what a closed connection brought last may say why it was closed, and a
  /// client that misses it would try to resume an ended session for ever.
  void act(FakeNetwork& network) {
    read(network);
    if (!connected_ || !network.is_open(connection_)) return connect(network);
    if (!greeted_) return;
    switch (below(8)) {
      case 0:
        if (below(4) == 0) cut(network);
        return;
      case 1:
        return send_again(network);
      case 2:
      case 3:
        return;
      default:
        if (next_ - oldest() < 40) send(network, next_++);
    }
  }
  /// Until all is answered: no more requests.
  void finish(FakeNetwork& network) {
    read(network);
    if (!connected_ || !network.is_open(connection_)) return connect(network);
    if (greeted_ && below(4) == 0) send_again(network);
  }
  /// The node is gone, and with it the connection.
  void node_lost() { connected_ = greeted_ = false; }
  void read(FakeNetwork& network) {
    if (!connected_) return;  // another life's network has given the connection's number to somebody else
    input_ += network.client_reads(connection_);
    while (input_.size() >= sizeof(wire::FrameHeader)) {
      wire::FrameHeader header;
      std::memcpy(&header, input_.data(), sizeof header);
      if (input_.size() < sizeof header + header.length) return;
      take(header, input_.substr(sizeof header, header.length));
      input_.erase(0, sizeof header + header.length);
    }
  }

  [[nodiscard]] bool all_answered() const { return unanswered().empty(); }
  [[nodiscard]] std::uint64_t account() const { return account_; }
  /// Deposits that were answered, and sent.
  [[nodiscard]] std::uint64_t answered() const { return answers_.size(); }
  [[nodiscard]] std::uint64_t sent() const { return next_ - 1; }
  [[nodiscard]] std::uint64_t unknown() const { return unknown_; }
  [[nodiscard]] std::uint64_t resumed() const { return resumed_; }
  /// What must never be: two answers to one request, one balance for two requests, a refusal.
  [[nodiscard]] const std::string& complaint() const { return complaint_; }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  [[nodiscard]] std::vector<std::uint64_t> unanswered() const {
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t number = first_; number < next_; ++number) {
      if (!answers_.contains(number)) numbers.push_back(number);
    }
    return numbers;
  }
  [[nodiscard]] std::uint64_t oldest() const {
    for (std::uint64_t number = first_; number < next_; ++number) {
      if (!answers_.contains(number)) return number;
    }
    return next_;
  }

  void connect(FakeNetwork& network) {
    if (below(3) != 0) return;
    connection_ = network.connect();
    connected_ = true;
    greeted_ = false;
    input_.clear();
    wire::Hello hello;
    hello.capabilities = wire::capability_sessions;
    hello.resume_session = session_;
    hello.resume_secret = secret_;
    wire::FrameHeader header;
    header.kind = wire::FrameKind::hello;
    write(network, header, {reinterpret_cast<const char*>(&hello), sizeof hello});
  }
  void cut(FakeNetwork& network) {
    network.client_closes(connection_);
    node_lost();
  }

  void send(FakeNetwork& network, std::uint64_t number) {
    const auto payload = builder_.encode<bank::Deposit>(account_, std::int64_t{1});
    wire::FrameHeader header;
    header.kind = wire::FrameKind::request;
    header.request = number;
    header.ack_distance = static_cast<std::uint16_t>(number - std::min(number, oldest()));
    header.message_type = message_id<bank::Deposit>;
    header.actor_type = name_id(bank::Branch::name);
    header.key = account_ % bank::branches;
    write(network, header, {reinterpret_cast<const char*>(payload.data()), payload.size()});
  }
  /// Some of what is unanswered, in any order, some of it twice.
  void send_again(FakeNetwork& network) {
    std::vector<std::uint64_t> numbers = unanswered();
    std::ranges::shuffle(numbers, random_);
    for (const std::uint64_t number : numbers) {
      for (std::uint64_t copies = below(3); copies > 0; --copies) send(network, number);
    }
  }
  static void write(FakeNetwork& network, io::ConnectionId to, wire::FrameHeader header, std::string_view payload) {
    header.length = static_cast<std::uint32_t>(payload.size());
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    network.client_sends(to, bytes.append(payload));
  }
  void write(FakeNetwork& network, const wire::FrameHeader& header, std::string_view payload) {
    write(network, connection_, header, payload);
  }

  void take(const wire::FrameHeader& header, const std::string& payload) {
    switch (header.kind) {
      case wire::FrameKind::hello_ok: {
        wire::HelloOk ok;
        std::memcpy(&ok, payload.data(), sizeof ok);
        if (session_ != 0) ++resumed_;
        if (session_ != 0 && ok.session != session_) complain("another session was resumed");
        session_ = ok.session;
        secret_ = ok.session_secret;
        greeted_ = true;
        return;
      }
      case wire::FrameKind::reply:
        return take_reply(header.request, payload);
      case wire::FrameKind::error: {
        wire::ErrorBody body;
        std::memcpy(&body, payload.data(), sizeof body);
        return take_error(header.request, body.code);
      }
      default:
        return;
    }
  }
  void take_reply(std::uint64_t number, const std::string& payload) {
    // It was given up as unknown: the news of its session's end came from another executor, and came first.
    if (number < first_) return;
    alignas(16) std::byte aligned[256];
    std::memcpy(aligned, payload.data(), payload.size());
    const std::int64_t balance = decode<bank::Balance>(aligned).amount();
    const auto [first, is_new] = answers_.try_emplace(number, balance);
    if (!is_new && first->second != balance) complain("a retry got another answer than the first");
    if (is_new && !balances_.emplace(balance, number).second) complain("two requests got one balance");
  }
  void take_error(std::uint64_t number, wire::WireError code) {
    if (number == 0 && code == wire::WireError::no_session) {
      // What is unanswered may have run or not; a new session begins behind it.
      unknown_ += unanswered().size();
      first_ = next_;
      session_ = secret_ = 0;
      return;
    }
    if (number == 0) return;  // the connection ends: moved, overload
    // A copy that was under way when its answer came, and was acknowledged by what followed.
    if (code == wire::WireError::stale && answers_.contains(number)) return;
    complain("a request was refused with error " + std::to_string(static_cast<unsigned>(code)));
  }
  void complain(std::string text) {
    if (complaint_.empty()) complaint_ = std::move(text);
  }

  std::uint64_t account_;
  std::mt19937_64 random_;
  MessageBuilder builder_{1024};
  io::ConnectionId connection_{};
  bool connected_ = false;
  bool greeted_ = false;
  std::string input_;
  std::uint64_t session_ = 0;
  std::uint64_t secret_ = 0;
  std::uint64_t first_ = 1;  ///< of the session in hand
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, std::int64_t> answers_;   ///< by number
  std::map<std::int64_t, std::uint64_t> balances_;  ///< of answers
  std::uint64_t unknown_ = 0;
  std::uint64_t resumed_ = 0;
  std::string complaint_;
};

}  // namespace lockstep::testing
