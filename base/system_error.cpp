// SPDX-License-Identifier: Apache-2.0
#include "base/system_error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace lockstep {
namespace {

struct Reading {
  int error;
  ErrorCode code;
  const char* remedy;
};

constexpr Reading readings[] = {
    {ENOSPC, ErrorCode::full, "free space on that file system"},
    {EDQUOT, ErrorCode::full, "raise the disk quota"},
    {EFBIG, ErrorCode::full, "raise the file size limit (ulimit -f)"},
    {EMFILE, ErrorCode::full, "raise the descriptor limit of the process (ulimit -n)"},
    {ENFILE, ErrorCode::full, "raise the descriptor limit of the host (fs.file-max)"},
    {ENOMEM, ErrorCode::full, "free memory, or raise the locked-memory limit (ulimit -l)"},
    {EADDRINUSE, ErrorCode::busy, "another process listens there; choose another port"},
    {EADDRNOTAVAIL, ErrorCode::usage, "this host has no such address; choose one of its own"},
    {EWOULDBLOCK, ErrorCode::busy, "another process holds it"},
    {EBUSY, ErrorCode::busy, "somebody else holds it"},
    {EACCES, ErrorCode::io, "check owner and permissions"},
    {EPERM, ErrorCode::io, "this process is not permitted to"},
    {EROFS, ErrorCode::io, "the file system is mounted read-only"},
    {EOPNOTSUPP, ErrorCode::unsupported, "this file system or kernel cannot do it"},
    {ENOSYS, ErrorCode::unsupported, "this kernel cannot do it, or a sandbox forbids it"},
    {EIO, ErrorCode::io, "the device failed; see the kernel log"},
};

}  // namespace

std::string errno_text(int error) {
  const char* name = strerrorname_np(error);
  const char* description = strerrordesc_np(error);
  if (name == nullptr || description == nullptr) return fmt::format("errno {}", error);
  return fmt::format("{} ({})", name, description);
}

Error system_error(std::string_view operation, std::string_view object, int error) {
  for (const Reading& reading : readings) {
    if (reading.error != error) continue;
    return {reading.code, fmt::format("{} {}: {}; {}", operation, object, errno_text(error), reading.remedy)};
  }
  return {ErrorCode::io, fmt::format("{} {}: {}", operation, object, errno_text(error))};
}

int errno_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::full:
      return ENOSPC;
    case ErrorCode::busy:
      return EBUSY;
    case ErrorCode::unsupported:
      return EOPNOTSUPP;
    case ErrorCode::usage:
      return EINVAL;
    default:
      return EIO;
  }
}

}  // namespace lockstep
