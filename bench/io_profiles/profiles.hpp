// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The ways of doing the service's input and output that are compared, and on which CPUs each part runs.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::bench {

enum class Profile {
  epoll_pool,   ///< workers wait on one epoll descriptor, ONESHOT | ET
  shared_ring,  ///< workers share one io_uring: a lock to submit, a lock to wait and take completions
  own_ring,     ///< each worker, pinned, has a ring with SINGLE_ISSUER
  deferred,     ///< own_ring and DEFER_TASKRUN
  send_zc,      ///< deferred, and replies are sent with SEND_ZC out of registered buffers
  sqpoll,       ///< own_ring, and a kernel thread submits for all rings (SQPOLL; excludes DEFER_TASKRUN)
};
inline constexpr std::array all_profiles{Profile::epoll_pool, Profile::shared_ring, Profile::own_ring,
                                         Profile::deferred,   Profile::send_zc,     Profile::sqpoll};

[[nodiscard]] std::string_view profile_name(Profile profile);

/// CPUs by role. Every profile has the same workers on the same CPUs, so that only input and output differ.
struct Placement {
  std::vector<int> workers;      ///< one thread on each
  std::optional<int> client;     ///< the load's thread; none: wherever there is room
  std::optional<int> submitter;  ///< the kernel thread of SQPOLL; none: there is no CPU to spare
};

/// Half of the CPUs, but two at least, for workers; then one for the client, and one for SQPOLL if there are as many.
[[nodiscard]] Placement place(const std::vector<int>& cpus);

}  // namespace lockstep::bench
