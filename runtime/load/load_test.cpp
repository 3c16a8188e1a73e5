// SPDX-License-Identifier: Apache-2.0
#include "runtime/load/load.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/agents/testing/served_bench.hpp"
#include "runtime/load/load_report.hpp"

using namespace lockstep;
using namespace lockstep::testing;

namespace {

/// Deposits; every `refused_every`th is for an actor type that does not exist.
class Deposits final : public Workload {
 public:
  explicit Deposits(std::uint64_t refused_every = 0) : builder_(1024), refused_every_(refused_every) {}
  LoadRequest make(std::uint64_t index) override {
    LoadRequest request;
    const bool refused = refused_every_ != 0 && index % refused_every_ == 0;
    request.to = {refused ? 1 : teller_type, 0, index % 64};
    request.message_type = message_id<Deposit>;
    request.payload = builder_.encode<Deposit>(index, std::int64_t{1});
    return request;
  }

 private:
  MessageBuilder builder_;
  std::uint64_t refused_every_;
};

WorkloadFactory deposits(std::uint64_t refused_every = 0) {
  return [=](std::uint32_t) { return std::make_unique<Deposits>(refused_every); };
}

/// Why a run does not begin whose hello is answered with `answer`.
Error refusal_after(const std::string& answer) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof at;
  REQUIRE(::bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
  REQUIRE(::listen(listener, 1) == 0);
  REQUIRE(::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &bytes) == 0);
  int accepted = -1;
  std::thread peer([&] {
    accepted = ::accept(listener, nullptr, nullptr);
    static_cast<void>(::send(accepted, answer.data(), answer.size(), MSG_NOSIGNAL));
  });
  LoadOptions options;
  options.port = ntohs(at.sin_port);
  options.connections = 1;
  const auto result = run_load(options, deposits());
  peer.join();
  ::close(accepted);
  ::close(listener);
  REQUIRE_FALSE(result.has_value());
  return result.error();
}

std::string error_frame(wire::WireError code, const std::string& text) {
  wire::FrameHeader header;
  header.kind = wire::FrameKind::error;
  header.length = static_cast<std::uint32_t>(sizeof(wire::ErrorBody) + text.size());
  const wire::ErrorBody body{code, 0};
  std::string frame(reinterpret_cast<const char*>(&header), sizeof header);
  return frame.append(reinterpret_cast<const char*>(&body), sizeof body).append(text);
}

}  // namespace

TEST_CASE("a node that takes no session now is told from one that never will, and from what is no node") {
  const Error later = refusal_after(error_frame(wire::WireError::overload, "try again later"));
  CHECK(later.code == ErrorCode::busy);
  CHECK(later.message.find("the node refuses: try again later") != std::string::npos);
  const Error never = refusal_after(error_frame(wire::WireError::version, "no version in common"));
  CHECK(never.code == ErrorCode::incompatible);
  wire::FrameHeader goodbye;
  goodbye.kind = wire::FrameKind::goodbye;
  const std::string frame(reinterpret_cast<const char*>(&goodbye), sizeof goodbye);
  CHECK(refusal_after(frame).code == ErrorCode::busy);
  const Error stranger = refusal_after(std::string(sizeof goodbye, '\0'));
  CHECK(stranger.code == ErrorCode::incompatible);
  CHECK(stranger.message.find("not a lockstep node") != std::string::npos);
}

TEST_CASE("a closed loop sends every request once and measures each but the warm-up") {
  ServedBench node;
  LoadOptions options;
  options.port = node.port();
  options.requests = 10'000;
  options.connections = 5;
  options.threads = 2;
  options.depth = 16;
  options.warmup = 1'000;
  const auto result = run_load(options, deposits());
  REQUIRE(result.has_value());
  CHECK(result->sent == 10'000);
  CHECK(result->answered == 10'000);
  CHECK(result->lost == 0);
  CHECK(result->latency_ns.count() == 9'000);
  CHECK(result->rate() > 0);
}

TEST_CASE("an open loop keeps to its plan") {
  ServedBench node;
  LoadOptions options;
  options.port = node.port();
  options.requests = 200;
  options.rate = 2'000;
  options.connections = 4;
  const auto result = run_load(options, deposits());
  REQUIRE(result.has_value());
  CHECK(result->answered == 200);
  CHECK(result->elapsed_ns >= 199 * 500'000);  // the last plan is 99.5 ms after the first
}

TEST_CASE("requests that a stall held up are charged from their plans") {
  ServedBench node;
  LoadOptions options;
  options.port = node.port();
  options.requests = 400;
  options.rate = 4'000;  // 100 ms of plans
  options.connections = 1;
  options.depth = 1;  // a loop that waits for answers would see one slow request
  node.set_silent(true);
  std::thread end_of_stall([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    node.set_silent(false);
  });
  const auto result = run_load(options, deposits());
  end_of_stall.join();
  REQUIRE(result.has_value());
  CHECK(result->answered == 400);
  CHECK(result->latency_ns.percentile(75) > 1'000'000);
}

TEST_CASE("refusals are counted beside answers") {
  ServedBench node;
  LoadOptions options;
  options.port = node.port();
  options.requests = 1'000;
  const auto result = run_load(options, deposits(10));
  REQUIRE(result.has_value());
  CHECK(result->refused == 100);
  CHECK(result->answered == 900);
  CHECK(result->complete());
  CHECK(result->first_error.find("receives") != std::string::npos);
  const auto report = nlohmann::json::parse(load_json(options, *result));
  CHECK(report["schema"] == "lockstep.bench/1");
  CHECK(report["refused"] == 100);
  CHECK(report["unsent"] == 0);
  CHECK(report["latency_ns"]["p99.99"].get<std::uint64_t>() >= report["latency_ns"]["p50"].get<std::uint64_t>());
  CHECK(load_text(options, *result).find("p99.9") != std::string::npos);
}

TEST_CASE("what a node that stops never answers is counted as lost") {
  ServedBench node;
  node.set_silent(true);
  LoadOptions options;
  options.port = node.port();
  options.requests = 100;
  options.connections = 2;
  options.depth = 8;
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    node.stop();
  });
  const auto result = run_load(options, deposits());
  stopper.join();
  REQUIRE(result.has_value());
  CHECK(result->sent == 16);
  CHECK(result->lost == 16);
  CHECK(result->answered == 0);
  CHECK(result->unsent == 84);
  CHECK(result->disconnected);
  CHECK_FALSE(result->complete());
  CHECK_FALSE(result->ended_by.empty());
  const std::string text = load_text(options, *result);
  CHECK(text.find("of 100 requests 0 were answered, 0 refused, 0 trapped, 16 lost and 84 never sent") !=
        std::string::npos);
  CHECK(nlohmann::json::parse(load_json(options, *result))["unsent"] == 84);
}

TEST_CASE("patience runs while an answer is owed, not between two plans") {
  ServedBench node;
  LoadOptions options;
  options.port = node.port();
  options.requests = 3;
  options.connections = 1;
  options.rate = 4;  // 250 ms apart
  options.patience_ns = 100'000'000;
  const auto patient = run_load(options, deposits());
  REQUIRE(patient.has_value());
  CHECK(patient->answered == 3);
  CHECK(patient->complete());
  node.set_silent(true);
  const auto silent = run_load(options, deposits());
  REQUIRE(silent.has_value());
  CHECK(silent->lost == 1);
  CHECK(silent->unsent == 2);
  CHECK_FALSE(silent->disconnected);
  CHECK(silent->ended_by == "no answer within 0.1 s");
}

TEST_CASE("options that cannot be, and nobody at the address, are errors") {
  LoadOptions options;
  options.connections = 0;
  CHECK(run_load(options, deposits()).error().code == ErrorCode::usage);
  options.connections = 1;
  for (const double rate : {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    options.rate = rate;
    CHECK(run_load(options, deposits()).error().code == ErrorCode::usage);
  }
  options.rate = 0;
  options.port = 1;
  const auto unreachable = run_load(options, deposits());
  REQUIRE_FALSE(unreachable.has_value());
  CHECK(unreachable.error().message.find("127.0.0.1:1") != std::string::npos);
}
