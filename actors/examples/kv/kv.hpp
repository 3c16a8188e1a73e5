// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The key-value store: what redis-cli, redis-benchmark and Redis client libraries drive through the RESP2 codec. Time
/// is the stamp of the command, so a key expires at the same point of the history on every replica and in every replay.

#include <lockstep/actor.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <ranges>
#include <string_view>
#include <utility>

#include "kv_bfbs_generated.h"
#include "kv_generated.h"

namespace kv {

using lockstep::Context;

/// expires_ns 0: never.
struct Entry {
  lockstep::String value;
  std::int64_t expires_ns = 0;
};

/// Ordered by time; the serial keeps equal times apart.
struct Expiry {
  std::int64_t at_ns = 0;
  std::uint64_t serial = 0;
  friend auto operator<=>(const Expiry&, const Expiry&) = default;
};

struct Database {
  static constexpr auto name = "kv.Database";
  static constexpr std::uint64_t arena_bytes = std::uint64_t{4} << 30;
  using Receives =
      lockstep::Receives<Set, Get, Del, Exists, IncrBy, Mget, Mset, Expire, Persist, Ttl, Size, Flush, Sweep>;
  using Schema = SetBinarySchema;

  lockstep::HashMap<lockstep::String, Entry> entries;
  lockstep::Map<Expiry, lockstep::String> expiries;  // may name keys that were changed since; entries decides
  std::uint64_t next_serial = 0;
  std::uint64_t sweeping = 0;  // 1 while a Sweep timer is set

  void on(const Set& m, Context& cx) {
    const std::string_view key = m.key()->string_view();
    Entry* entry = find(key, cx);
    const bool present = entry != nullptr;
    const bool wanted = m.condition() == Condition::Always || (m.condition() == Condition::IfPresent) == present;
    if (m.want_old()) {
      reply_value(entry, cx);
    } else if (wanted) {
      cx.reply<Ok>();
    } else {
      cx.reply<Nil>();
    }
    if (!wanted) return;
    Entry& target = present ? *entry : entries[key];
    target.value.assign(m.value()->string_view());
    if (m.ttl_ms() > 0) {
      expire_at(key, target, deadline_ns(m.ttl_ms(), cx), cx);
    } else if (!m.keep_ttl()) {
      target.expires_ns = 0;
    }
  }

  void on(const Get& m, Context& cx) { reply_value(find(m.key()->string_view(), cx), cx); }

  void on(const Del& m, Context& cx) {
    std::int64_t removed = 0;
    for (const auto* key : *m.keys())
      if (find(key->string_view(), cx) != nullptr) removed += entries.erase(key->string_view()) ? 1 : 0;
    cx.reply<Integer>(removed);
  }

  void on(const Exists& m, Context& cx) {
    std::int64_t present = 0;
    for (const auto* key : *m.keys()) present += find(key->string_view(), cx) != nullptr ? 1 : 0;
    cx.reply<Integer>(present);
  }

  void on(const IncrBy& m, Context& cx) {
    const std::string_view key = m.key()->string_view();
    Entry* entry = find(key, cx);
    const std::optional<std::int64_t> old = entry == nullptr ? 0 : parse(entry->value.view());
    if (!old) return cx.reply<Failure>(Fault::NotAnInteger);
    std::int64_t sum = 0;
    if (__builtin_add_overflow(*old, m.by(), &sum)) return cx.reply<Failure>(Fault::Overflow);
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, sum).ptr;
    (entry == nullptr ? entries[key] : *entry).value.assign({digits, end});
    cx.reply<Integer>(sum);
  }

  void on(const Mget& m, Context& cx) {
    const auto value = [&](const flatbuffers::String* key) {
      const Entry* entry = find(key->string_view(), cx);
      return entry == nullptr ? std::string_view() : entry->value.view();
    };
    const auto presence = [&](flatbuffers::FlatBufferBuilder& fbb) {
      std::uint8_t* present = nullptr;
      const auto made = fbb.CreateUninitializedVector(m.keys()->size(), &present);
      for (const auto* key : *m.keys()) *present++ = find(key->string_view(), cx) != nullptr ? 1 : 0;
      return made;
    };
    cx.reply<Values>(std::views::transform(*m.keys(), value), presence);
  }

  void on(const Mset& m, Context& cx) {
    const auto& pairs = *m.pairs();
    for (flatbuffers::uoffset_t i = 0; i + 1 < pairs.size(); i += 2) {
      Entry& entry = entries[pairs[i]->string_view()];
      entry.value.assign(pairs[i + 1]->string_view());
      entry.expires_ns = 0;
    }
    cx.reply<Ok>();
  }

  void on(const Expire& m, Context& cx) {
    const std::string_view key = m.key()->string_view();
    Entry* entry = find(key, cx);
    if (entry == nullptr) return cx.reply<Integer>(0);
    if (m.ttl_ms() <= 0) {
      entries.erase(key);
    } else {
      expire_at(key, *entry, deadline_ns(m.ttl_ms(), cx), cx);
    }
    cx.reply<Integer>(1);
  }

  void on(const Persist& m, Context& cx) {
    Entry* entry = find(m.key()->string_view(), cx);
    const bool had_deadline = entry != nullptr && entry->expires_ns != 0;
    if (had_deadline) entry->expires_ns = 0;
    cx.reply<Integer>(had_deadline ? 1 : 0);
  }

  /// -2: no such key; -1: it never expires.
  void on(const Ttl& m, Context& cx) {
    const Entry* entry = find(m.key()->string_view(), cx);
    if (entry == nullptr) return cx.reply<Integer>(-2);
    if (entry->expires_ns == 0) return cx.reply<Integer>(-1);
    const std::int64_t left_ms = (entry->expires_ns - now_ns(cx) + 999'999) / 1'000'000;
    cx.reply<Integer>(m.unit() == Unit::Seconds ? (left_ms + 500) / 1000 : left_ms);
  }

  void on(const Size&, Context& cx) { cx.reply<Integer>(static_cast<std::int64_t>(entries.size())); }

  void on(const Flush&, Context& cx) {
    entries.clear();
    expiries.clear();
    cx.reply<Ok>();
  }

  void on(const Sweep&, Context& cx) {
    sweeping = 0;
    for (int budget = sweep_keys; budget > 0 && !expiries.empty(); --budget) {
      const auto due = std::as_const(expiries).begin();
      const Expiry at = (*due).key();
      if (at.at_ns > now_ns(cx)) break;
      (void)find((*due).value().view(), cx);  // erases it if its time has come
      expiries.erase(at);
    }
    schedule_sweep(cx);
  }

 private:
  static constexpr int sweep_keys = 256;  ///< per Sweep, so that many expiries at once do not hold up a batch

  static std::int64_t now_ns(const Context& cx) { return cx.now().time_since_epoch().count(); }

  /// Saturates far in the future instead of overflowing.
  static std::int64_t deadline_ns(std::int64_t ttl_ms, const Context& cx) {
    constexpr std::int64_t latest_ns = std::numeric_limits<std::int64_t>::max();
    const std::int64_t now = now_ns(cx);
    return ttl_ms > (latest_ns - now) / 1'000'000 ? latest_ns : now + ttl_ms * 1'000'000;
  }

  static std::optional<std::int64_t> parse(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
  }

  /// The entry, unless it is missing or its time has come; then it is erased on the way.
  Entry* find(std::string_view key, const Context& cx) {
    Entry* entry = entries.find(key);
    if (entry == nullptr || entry->expires_ns == 0 || entry->expires_ns > now_ns(cx)) return entry;
    entries.erase(key);
    return nullptr;
  }

  static void reply_value(const Entry* entry, Context& cx) {
    if (entry == nullptr) return cx.reply<Nil>();
    cx.reply<Bulk>(entry->value.view());
  }

  void expire_at(std::string_view key, Entry& entry, std::int64_t at_ns, Context& cx) {
    entry.expires_ns = at_ns;
    expiries[Expiry{at_ns, next_serial++}].assign(key);
    schedule_sweep(cx);
  }

  void schedule_sweep(Context& cx) {
    if (sweeping != 0 || expiries.empty()) return;
    sweeping = 1;
    const std::int64_t wait_ns =
        std::max<std::int64_t>((*std::as_const(expiries).begin()).key().at_ns - now_ns(cx), 1'000'000);
    cx.after<Sweep>(std::chrono::nanoseconds(wait_ns));
  }
};

}  // namespace kv
