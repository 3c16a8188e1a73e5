// SPDX-License-Identifier: Apache-2.0
#include "bench/node/peer_protocols.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace lockstep::bench {
namespace {

constexpr std::string_view value = "xxx";

[[noreturn]] void refuse(std::string_view peer, std::string_view what) {
  fmt::print(stderr, "peer_load: {} answered: {}\n", peer, what.substr(0, 400));
  std::exit(1);
}

std::size_t number_at(std::string_view peer, std::string_view text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) refuse(peer, text);
  return number;
}

class Nats final : public PeerProtocol {
 public:
  [[nodiscard]] std::string hello(std::uint32_t connection) const override {
    return fmt::format("CONNECT {{\"verbose\":false,\"pedantic\":false}}\r\nSUB _INBOX.{} 1\r\nPING\r\n", connection);
  }

  void append_request(std::string& out, std::uint32_t connection, std::uint32_t key) const override {
    const std::size_t payload_bytes = sizeof "key:000000012345=" - 1 + value.size();
    fmt::format_to(std::back_inserter(out), "PUB bench.put _INBOX.{} {}\r\nkey:{:012}={}\r\n", connection,
                   payload_bytes, key, value);
  }

  [[nodiscard]] Received look_at(std::string_view input, std::string& reply) const override {
    const std::size_t line_end = input.find("\r\n");
    if (line_end == std::string_view::npos) return {};
    const std::string_view line = input.substr(0, line_end);
    const std::size_t line_bytes = line_end + 2;
    if (line.starts_with("MSG ")) {
      const std::size_t payload_bytes = number_at("nats-server", line.substr(line.rfind(' ') + 1));
      if (input.size() < line_bytes + payload_bytes + 2) return {};
      const std::string_view payload = input.substr(line_bytes, payload_bytes);
      if (!payload.starts_with("{\"stream\":") || payload.find("\"seq\":") == std::string_view::npos)
        refuse("nats-server", payload);
      return {Received::Kind::answer, line_bytes + payload_bytes + 2};
    }
    if (line == "PONG") return {Received::Kind::answer, line_bytes};
    if (line.starts_with("-ERR")) refuse("nats-server", line);
    if (line == "PING") reply += "PONG\r\n";
    return {Received::Kind::other, line_bytes};  // INFO
  }
};

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j)
      bits = bits << 8U | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j) text += i + j <= bytes.size() ? digits[bits >> (18 - 6 * j) & 63U] : '=';
  }
  return text;
}

class Etcd final : public PeerProtocol {
 public:
  [[nodiscard]] std::string hello(std::uint32_t) const override { return {}; }

  void append_request(std::string& out, std::uint32_t, std::uint32_t key) const override {
    const std::string body =
        fmt::format("{{\"key\":\"{}\",\"value\":\"{}\"}}", base64(fmt::format("key:{:012}", key)), base64(value));
    fmt::format_to(std::back_inserter(out), "POST /v3/kv/put HTTP/1.1\r\nHost: etcd\r\nContent-Length: {}\r\n\r\n{}",
                   body.size(), body);
  }

  [[nodiscard]] Received look_at(std::string_view input, std::string&) const override {
    constexpr std::string_view length_name = "\r\nContent-Length: ";
    const std::size_t head_end = input.find("\r\n\r\n");
    if (head_end == std::string_view::npos) return {};
    const std::string_view head = input.substr(0, head_end);
    const std::size_t length_at = head.find(length_name);
    if (!head.starts_with("HTTP/1.1 200") || length_at == std::string_view::npos) refuse("etcd", input);
    const std::size_t body_bytes = number_at("etcd", head.substr(length_at + length_name.size()));
    if (input.size() < head_end + 4 + body_bytes) return {};
    const std::string_view body = input.substr(head_end + 4, body_bytes);
    if (body.find("\"revision\":") == std::string_view::npos) refuse("etcd", body);
    return {Received::Kind::answer, head_end + 4 + body_bytes};
  }
};

}  // namespace

std::unique_ptr<PeerProtocol> make_peer_protocol(std::string_view name) {
  if (name == "nats") return std::make_unique<Nats>();
  if (name == "etcd") return std::make_unique<Etcd>();
  return nullptr;
}

}  // namespace lockstep::bench
