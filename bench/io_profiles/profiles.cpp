// SPDX-License-Identifier: Apache-2.0
#include "bench/io_profiles/profiles.hpp"

#include <algorithm>

namespace lockstep::bench {

std::string_view profile_name(Profile profile) {
  switch (profile) {
    case Profile::epoll_pool:
      return "1 epoll pool";
    case Profile::shared_ring:
      return "2 shared ring, locks";
    case Profile::own_ring:
      return "3 SINGLE_ISSUER";
    case Profile::deferred:
      return "4 + DEFER_TASKRUN";
    case Profile::send_zc:
      return "4 + SEND_ZC";
    case Profile::sqpoll:
      break;
  }
  return "5 SQPOLL";
}

Placement place(const std::vector<int>& cpus) {
  const std::size_t workers = std::max<std::size_t>(2, cpus.size() / 2);
  Placement placement;
  for (std::size_t i = 0; i < workers; ++i) placement.workers.push_back(cpus[i % cpus.size()]);
  if (cpus.size() > workers) placement.client = cpus[workers];
  if (cpus.size() > workers + 1) placement.submitter = cpus[workers + 1];
  return placement;
}

}  // namespace lockstep::bench
