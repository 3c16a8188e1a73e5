// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>

namespace matching {

void BookOptions::add_to(CLI::App& app) {
  app.add_option("--connect", connect, "HOST:PORT of the node's native protocol")->required();
  app.add_option("--symbol", symbol, "number of the book")->capture_default_str();
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
