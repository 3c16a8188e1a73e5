// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the tests of record logs share: records that show where a file lost, repeated or mixed some. Test code only.

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "journal/testing/scratch_directory.hpp"
#include "runtime/log/record_log.hpp"

namespace lockstep::log_test {

using Bytes = std::vector<std::byte>;

/// Who appended it, its number, and a length and content that both decide.
struct RecordStart {
  std::uint32_t bytes = 0;
  std::uint32_t producer = 0;
  std::uint64_t number = 0;
};

inline Bytes record(std::uint32_t producer, std::uint64_t number) {
  const std::uint64_t mixed = (number + 1) * 0x9E37'79B9'7F4A'7C15U ^ producer;
  const auto length = static_cast<std::uint32_t>(sizeof(RecordStart) + (mixed >> 32U) % 113);
  Bytes bytes(length);
  const RecordStart start{length, producer, number};
  std::memcpy(bytes.data(), &start, sizeof start);
  for (std::size_t i = sizeof start; i < length; ++i) bytes[i] = static_cast<std::byte>(mixed >> i % 8 * 8U ^ i);
  return bytes;
}

/// The records first … last - 1 of one producer, back to back.
inline Bytes records(std::uint32_t producer, std::uint64_t first, std::uint64_t last) {
  Bytes all;
  for (std::uint64_t number = first; number < last; ++number) {
    const Bytes one = record(producer, number);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

inline Bytes content(const std::string& path) {
  Bytes bytes(std::filesystem::file_size(path));
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

/// Runs `body` with each writer that this host has.
inline void with_each_writer(const std::function<void(RecordLogOptions)>& body) {
  using Writer = RecordLogOptions::Writer;
  const ScratchDirectory directory;
  int number = 0;
  for (const Writer writer : {Writer::blocking, Writer::uring}) {
    CAPTURE(static_cast<int>(writer));
    RecordLogOptions options{
        .path = directory.file("log" + std::to_string(number++)), .ring_bytes = 64 << 10, .writer = writer};
    const auto tried =
        RecordLog::open({.path = directory.file("try" + std::to_string(number)), .ring_bytes = 64, .writer = writer});
    if (!tried && tried.error().code == ErrorCode::unsupported) {
      MESSAGE("left out: this host forbids io_uring");
      continue;
    }
    body(std::move(options));
  }
}

[[nodiscard]] inline std::unique_ptr<RecordLog> open_log(const RecordLogOptions& options) {
  auto opened = RecordLog::open(options);
  REQUIRE_MESSAGE(opened, opened.error().message);
  return std::move(*opened);
}

/// Appends `count` records as `producer`; all must be taken.
inline void append_records(RecordLog& log, std::uint32_t producer, std::uint64_t count, std::uint64_t first = 0) {
  std::uint64_t taken = 0;
  for (std::uint64_t number = first; number < first + count; ++number)
    if (log.producer(producer).append(record(producer, number)) == RecordLog::Append::taken) ++taken;
  CHECK(taken == count);
}

}  // namespace lockstep::log_test
