// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/reactor.hpp"

#include "base/log.hpp"
#include "runtime/io/epoll_reactor.hpp"
#include "runtime/io/io_caps.hpp"
#include "runtime/io/uring_reactor.hpp"

namespace lockstep::io {
namespace {

Result<std::unique_ptr<Reactor>> make_uring(const ReactorOptions& options) {
  auto reactor = UringReactor::make(options);
  if (!reactor) return reactor;
  // Tried once per process: no feature bit tells whether a multishot receive works.
  static const Result<void> receives = try_multishot_receive();
  if (!receives) return std::unexpected(receives.error());
  return reactor;
}

}  // namespace

Result<std::unique_ptr<Reactor>> make_reactor(Backend backend, const ReactorOptions& options) {
  if (backend == Backend::epoll) return EpollReactor::make(options);
  auto reactor = make_uring(options);
  const bool stand_in = !reactor && backend == Backend::automatic && reactor.error().code == ErrorCode::unsupported;
  if (!stand_in) return reactor;
  log(LogLevel::warning, "io", "{} Continuing with epoll (--io=auto).", reactor.error().message);
  return EpollReactor::make(options);
}

}  // namespace lockstep::io
