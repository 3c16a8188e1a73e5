// SPDX-License-Identifier: Apache-2.0
#include "runtime/io/reactor.hpp"

#include "runtime/io/epoll_reactor.hpp"

namespace lockstep::io {

Result<std::unique_ptr<Reactor>> make_reactor(Backend backend, const ReactorOptions& options) {
  if (backend == Backend::uring) return fail(ErrorCode::unsupported, "this build has no io_uring backend yet; use epoll");
  return EpollReactor::make(options);
}

}  // namespace lockstep::io
