// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ClientSocket: one TCP connection of a client, non-blocking, with waits that end at a deadline. Errors say what was
/// tried on which address. One thread.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>

namespace lockstep::client {

using Deadline = std::chrono::steady_clock::time_point;

class ClientSocket {
 public:
  /// Resolves and connects, trying each address of the host in turn; the error is a sentence.
  [[nodiscard]] static std::expected<ClientSocket, std::string> connect(const std::string& host, std::uint16_t port,
                                                                        Deadline deadline);
  ClientSocket(ClientSocket&& other) noexcept;
  ClientSocket& operator=(ClientSocket&& other) noexcept;
  ~ClientSocket();

  /// Bytes written or read; 0 when it would block. Errors: the connection is over, by its peer ("the node closed the
  /// connection") or for a reason that is named.
  [[nodiscard]] std::expected<std::size_t, std::string> write(std::span<const std::byte> bytes);
  [[nodiscard]] std::expected<std::size_t, std::string> read(std::span<std::byte> into);

  /// Until it can be read (or written, if asked); false at the deadline.
  [[nodiscard]] bool wait(bool for_write, Deadline deadline);

  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  explicit ClientSocket(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace lockstep::client
