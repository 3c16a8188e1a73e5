// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Application: the actor types a node runs, with what the runtime asks of them: which handler a message reaches, in
/// O(1), and the schemas that explain the journal. Built once per program by application<A...>(), then constant; any
/// thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/actor_type.hpp"

namespace lockstep {

class Application {
 public:
  /// `actors` and what they point to must outlive it. `schemas` are .bfbs buffers.
  Application(std::span<const ActorType> actors, std::span<const std::span<const std::byte>> schemas);

  /// Null when there is no such actor type.
  [[nodiscard]] const ActorType* actor(std::uint32_t actor_type) const;
  /// Null when there is no such actor type, or it does not receive this message.
  [[nodiscard]] const Handler* find(std::uint32_t actor_type, std::uint32_t message_type) const {
    std::uint32_t at = slot(actor_type, message_type);
    while (true) {
      const Entry& entry = table_[at];
      if (entry.handler == nullptr) return nullptr;
      if (entry.actor_type == actor_type && entry.handler->message_type == message_type) return entry.handler;
      at = (at + 1) & mask_;
    }
  }

  [[nodiscard]] std::span<const ActorType> actors() const { return actors_; }
  /// Whether any actor type sends: otherwise executors need not meet between batches.
  [[nodiscard]] bool has_sends() const { return has_sends_; }
  /// What travels in the journal so that it explains itself: each schema's .bfbs behind a 16-byte header of its length
  /// (u64 little-endian) and 8 zeroes, padded with zeroes to 16.
  [[nodiscard]] std::span<const std::byte> schema() const { return schema_; }
  /// XXH3-64 of schema(), 0 of none; BatchHeader::schema_id.
  [[nodiscard]] std::uint64_t schema_id() const { return schema_id_; }
  /// Digest of everything that state depends on beside the handlers' code: names, messages, layouts, capacities.
  [[nodiscard]] std::uint64_t digest() const { return digest_; }

 private:
  struct Entry {
    std::uint32_t actor_type = 0;
    const Handler* handler = nullptr;
  };
  [[nodiscard]] std::uint32_t slot(std::uint32_t actor_type, std::uint32_t message_type) const {
    return (actor_type ^ message_type * 0x9E3779B1U) >> 7U & mask_;
  }

  std::span<const ActorType> actors_;
  std::vector<Entry> table_;
  std::uint32_t mask_ = 0;
  bool has_sends_ = false;
  std::vector<std::byte> schema_;
  std::uint64_t schema_id_ = 0;
  std::uint64_t digest_ = 0;
};

namespace detail {

template <class... As>
consteval bool distinct_actors() {
  std::array<std::uint32_t, sizeof...(As)> ids{name_id(As::name)...};
  std::ranges::sort(ids);
  return std::ranges::adjacent_find(ids) == ids.end();
}

template <class A>
void add_schema(std::vector<std::span<const std::byte>>& schemas) {
  if constexpr (requires { A::Schema::data(); }) {
    const std::span schema = std::as_bytes(std::span(A::Schema::data(), A::Schema::size()));
    for (const auto& known : schemas) {
      if (known.data() == schema.data()) return;
    }
    schemas.push_back(schema);
  }
}

}  // namespace detail

/// The application made of these actor types. A type's `using Schema = ns::RootBinarySchema;` (flatc --bfbs-gen-embed)
/// names the schema of its messages; without one, tools show its messages as bytes.
template <class... As>
[[nodiscard]] const Application& application() {
  static_assert(sizeof...(As) != 0, "lockstep: an application has at least one actor type");
  static_assert(detail::distinct_actors<As...>(),
                "lockstep: two actor types have the same name, or names with the same id; rename one of them");
  static constexpr ActorType actors[] = {actor_type<As>...};
  static const Application made = [] {
    std::vector<std::span<const std::byte>> schemas;
    (detail::add_schema<As>(schemas), ...);
    return Application(actors, schemas);
  }();
  return made;
}

}  // namespace lockstep
