// SPDX-License-Identifier: Apache-2.0
#include "journal/testing/memory_file.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"

namespace lockstep {
namespace {

void put_bytes(std::vector<std::byte>& content, std::uint64_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (content.size() < offset + bytes.size()) content.resize(offset + bytes.size());
  std::memcpy(content.data() + offset, bytes.data(), bytes.size());
}

}  // namespace

Survival draw_survivors(std::mt19937_64& random) {
  return [&random, coins = std::uint64_t{0}, left = 0](std::size_t) mutable {
    if (left == 0) coins = random(), left = 64;
    --left;
    return (std::exchange(coins, coins >> 1) & 1) != 0;
  };
}

std::size_t MemoryFile::questions_of(const Change& change, std::size_t piece_bytes) {
  return change.kind == Change::Kind::write ? (change.bytes.size() + piece_bytes - 1) / piece_bytes : 1;
}

void MemoryFile::apply(std::vector<std::byte>& content, const Change& change) {
  switch (change.kind) {
    case Change::Kind::write:
      return put_bytes(content, change.offset, change.bytes);
    case Change::Kind::zeros:
      return content.assign(change.offset, std::byte{0});
    case Change::Kind::resize:
      return content.resize(change.offset);
  }
}

std::size_t MemoryFile::apply_survivors(std::vector<std::byte>& content, const Change& change, const Survival& survives,
                                        std::size_t first, std::size_t piece_bytes) {
  if (change.kind != Change::Kind::write) {
    if (survives(first)) apply(content, change);
    return first + 1;
  }
  for (std::size_t at = 0; at < change.bytes.size(); at += piece_bytes, ++first) {
    if (!survives(first)) continue;
    const std::size_t length = std::min(piece_bytes, change.bytes.size() - at);
    put_bytes(content, change.offset + at, std::span(change.bytes).subspan(at, length));
  }
  return first;
}

std::vector<MemoryFile::Change>::iterator MemoryFile::find(std::uint64_t number) {
  const auto found = std::ranges::find(changes_, number, &Change::number);
  LOCKSTEP_ASSERT(found != changes_.end(), "a write under way is not covered by any sync");
  return found;
}

void MemoryFile::add(Change change) {
  change.number = next_number_++;
  if (!change.in_flight) apply(view_.change(), change);
  changes_.push_back(std::move(change));
}

void MemoryFile::write(std::uint64_t offset, std::span<const std::byte> bytes, bool buffered) {
  add({Change::Kind::write, 0, offset, {bytes.begin(), bytes.end()}, false, buffered});
}

void MemoryFile::resize(std::uint64_t bytes) {
  add({Change::Kind::resize, 0, bytes, {}, false, true});
}

void MemoryFile::zero_fill(std::uint64_t bytes) {
  add({Change::Kind::zeros, 0, bytes, {}, false, false});
}

std::uint64_t MemoryFile::begin_write(std::uint64_t offset, std::vector<std::byte> bytes) {
  add({Change::Kind::write, 0, offset, std::move(bytes), true, false});
  return changes_.back().number;
}

std::span<const std::byte> MemoryFile::in_flight(std::uint64_t number) const {
  return const_cast<MemoryFile*>(this)->find(number)->bytes;
}

void MemoryFile::finish_write(std::uint64_t number, std::size_t bytes) {
  Change& change = *find(number);
  change.in_flight = false;
  change.bytes.resize(bytes);
  apply(view_.change(), change);
}

void MemoryFile::fail_write(std::uint64_t number, std::mt19937_64& random) {
  const auto found = find(number);
  const std::uint64_t offset = found->offset;
  const std::vector<std::byte> attempted = forget_write(number);
  write_some(offset, attempted, false, random);
}

std::vector<std::byte> MemoryFile::forget_write(std::uint64_t number) {
  const auto found = find(number);
  std::vector<std::byte> bytes = std::move(found->bytes);
  changes_.erase(found);
  return bytes;
}

void MemoryFile::write_some(std::uint64_t offset, std::span<const std::byte> bytes, bool buffered,
                            std::mt19937_64& random) {
  const Survival survives = draw_survivors(random);
  for (std::size_t at = 0; at < bytes.size(); at += device_piece_bytes)
    if (survives(0)) write(offset + at, bytes.subspan(at, std::min(device_piece_bytes, bytes.size() - at)), buffered);
}

std::vector<std::uint64_t> MemoryFile::settled() const {
  std::vector<std::uint64_t> numbers;
  for (const Change& change : changes_)
    if (!change.in_flight) numbers.push_back(change.number);
  return numbers;
}

void MemoryFile::make_durable(const std::vector<std::uint64_t>& numbers) {
  const auto covered = [&](const Change& change) { return std::ranges::binary_search(numbers, change.number); };
  for (const Change& change : changes_)
    if (covered(change)) apply(durable_.change(), change);
  std::erase_if(changes_, covered);
}

void MemoryFile::fail_sync(const std::vector<std::uint64_t>& numbers, std::mt19937_64& random) {
  const auto covered = [&](const Change& change) { return std::ranges::binary_search(numbers, change.number); };
  const Survival survives = draw_survivors(random);
  bool truthful = true;
  for (const Change& change : changes_) {
    if (!covered(change)) continue;
    truthful = truthful && !change.buffered;
    apply_survivors(durable_.change(), change, survives, 0, device_piece_bytes);
  }
  std::erase_if(changes_, covered);
  if (!truthful) return;
  view_ = durable_;
  for (const Change& change : changes_)
    if (!change.in_flight) apply(view_.change(), change);
}

std::size_t MemoryFile::questions(std::size_t piece_bytes) const {
  std::size_t count = 0;
  for (const Change& change : changes_) count += questions_of(change, piece_bytes);
  return count;
}

SharedBytes MemoryFile::left_by_cut(const Survival& survives, std::size_t first, std::size_t piece_bytes) const {
  SharedBytes content = durable_;
  for (const Change& change : changes_) first = apply_survivors(content.change(), change, survives, first, piece_bytes);
  return content;
}

void MemoryFile::damage(std::uint64_t offset, std::span<const std::byte> bytes) {
  put_bytes(view_.change(), offset, bytes);
  put_bytes(durable_.change(), offset, bytes);
}

void MemoryFile::set(SharedBytes content) {
  durable_ = content;
  view_ = std::move(content);
  changes_.clear();
}

}  // namespace lockstep
