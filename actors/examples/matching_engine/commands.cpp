// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>

namespace matching {

CLI::Validator whole(std::uint64_t lowest) {
  return {[=](const std::string& text) {
            std::uint64_t number = 0;
            const char* const end = text.data() + text.size();
            const auto [rest, error] = std::from_chars(text.data(), end, number);
            if (error == std::errc{} && rest == end && number >= lowest) return std::string();
            return fmt::format("must be a whole number of at least {}, not '{}'", lowest, text);
          },
          "", "whole"};
}

void BookOptions::add_to(CLI::App& app) {
  app.add_option("--connect", connect, "HOST:PORT of the node's native protocol")->required();
  app.add_option("--symbol", symbol, "number of the book")->check(whole(0))->capture_default_str();
}

int report(const lockstep::Error& error) {
  constexpr int usage = 2;
  constexpr int failed = 7;
  fmt::print(stderr, "matching_engine: {}\n", error.message);
  return error.code == lockstep::ErrorCode::usage ? usage : failed;
}

lockstep::Result<lockstep::Client> connect(const std::string& endpoint) {
  lockstep::ClientOptions options;
  const std::size_t colon = endpoint.rfind(':');
  const char* const end = endpoint.data() + endpoint.size();
  const char* const port = colon == std::string::npos ? end : endpoint.data() + colon + 1;
  if (const auto parsed = std::from_chars(port, end, options.port); parsed.ec != std::errc{} || parsed.ptr != end)
    return lockstep::fail(lockstep::ErrorCode::usage, fmt::format("--connect '{}' is not HOST:PORT", endpoint));
  options.host = endpoint.substr(0, colon);
  auto client = lockstep::Client::connect(options);
  if (client) return std::move(*client);
  return lockstep::fail(lockstep::ErrorCode::io, fmt::format("{}: {}", endpoint, client.error().message));
}

}  // namespace matching
