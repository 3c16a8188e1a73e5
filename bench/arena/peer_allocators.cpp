// SPDX-License-Identifier: Apache-2.0
#include "bench/arena/peer_allocators.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <jemalloc/jemalloc.h>
#include <mimalloc.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace lockstep::bench {
namespace {

void check_malloc() {
  Dl_info where{};
  if (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &where) != 0 && where.dli_fname != nullptr &&
      std::string_view(where.dli_fname).find("/libc.so") != std::string_view::npos) {
    return;
  }
  fmt::print(stderr, "bench_arena: malloc is that of {}, not glibc's; run it without LD_PRELOAD\n",
             where.dli_fname == nullptr ? "unknown" : where.dli_fname);
  std::exit(1);
}

}  // namespace

HeapFunctions glibc_malloc() {
  check_malloc();
  return {std::malloc, std::free};
}

HeapFunctions jemalloc() {
  check_malloc();
  return {[](std::size_t bytes) { return mallocx(bytes, 0); }, [](void* block) { dallocx(block, 0); }};
}

HeapFunctions mimalloc() {
  check_malloc();
  return {mi_malloc, mi_free};
}

}  // namespace lockstep::bench
