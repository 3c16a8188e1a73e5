// SPDX-License-Identifier: Apache-2.0

/// An actor that adds up and logs what it adds, and on two values kills its process: by a signal, or by never coming
/// back; on another it throws. What it does depends on its message alone, so it does it again at every restart.

#include <fmt/format.h>
#include <lockstep/actor.hpp>
#include <lockstep/client.hpp>
#include <lockstep/resp.hpp>
#include <lockstep/run.hpp>

#include <atomic>
#include <csignal>
#include <stdexcept>
#include <string_view>

#include "poison_bfbs_generated.h"
#include "poison_generated.h"

namespace poison {

constexpr std::int64_t trap_value = 665;
constexpr std::int64_t crash_value = 666;
constexpr std::int64_t endless_value = 667;

struct Adder {
  static constexpr auto name = "adder";
  using Receives = lockstep::Receives<Add, Total>;
  using Schema = AddBinarySchema;

  std::int64_t sum = 0;

  void on(const Add& message, lockstep::Context& cx) {
    cx.log("adds {} to {}", message.value(), sum);
    if (message.value() == trap_value) throw std::invalid_argument("not that one");
    if (message.value() == crash_value) std::raise(SIGSEGV);
    for (std::atomic<bool> again{true}; message.value() == endless_value && again.load();) {
    }
    sum += message.value();
    cx.reply<Sum>(sum);
  }
  void on(const Total&, lockstep::Query& query) const { query.reply<Sum>(sum); }
};

/// ADD value
void translate(lockstep::resp::Command& command) {
  if (command.name() != "ADD" || !command.has_arguments(1)) return;
  if (const auto value = command.integer(0)) command.ask<Add>(lockstep::ref<Adder>(1), *value);
}

void render(const lockstep::resp::Reply& reply, lockstep::resp::Writer& out) {
  const auto* sum = reply.as<Sum>();
  if (sum != nullptr) out.integer(sum->value());
}

constexpr lockstep::resp::Application resp_application{.translate = translate, .render = render};

/// total HOST PORT: asks by a query, which a halted node answers too.
int print_total(const char* host, const char* port) {
  auto client = lockstep::Client::connect({.host = host, .port = static_cast<std::uint16_t>(std::stoi(port))});
  if (!client) return fmt::print(stderr, "{}\n", client.error().message), 1;
  const auto answer = client->request<Total>(lockstep::ref<Adder>(1));
  if (!answer) return fmt::print(stderr, "{}\n", answer.error().message), 1;
  const auto* sum = answer->as<Sum>();
  if (sum == nullptr) return 1;
  fmt::print("{}\n", sum->value());
  return 0;
}

}  // namespace poison

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "total") return poison::print_total(argv[2], argv[3]);
  return lockstep::run<poison::Adder>(argc, argv, {.resp = &poison::resp_application});
}
