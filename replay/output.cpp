// SPDX-License-Identifier: Apache-2.0
#include "replay/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/system_error.hpp"
#include "runtime/json_text.hpp"

namespace lockstep {

void print_json_line(const nlohmann::json& value) {
  fmt::print("{}\n", json_text(value));
}

Error stdout_error(int error) {
  const std::string why = error == 0 ? std::string() : fmt::format(": {}", errno_text(error));
  return {ErrorCode::io, fmt::format("cannot write to stdout{}; what was printed is not all there is", why)};
}

Result<void> flush_stdout() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return std::unexpected(stdout_error(errno));
}

void hold_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) < 0) open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

}  // namespace lockstep
