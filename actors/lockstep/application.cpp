// SPDX-License-Identifier: Apache-2.0
#include "lockstep/application.hpp"

#include <bit>
#include <cstring>
#include <string_view>

#include "base/assert.hpp"
#include "base/digest.hpp"

namespace lockstep {
namespace {

std::uint64_t fold(std::uint64_t digest, std::uint64_t value) {
  return xxh3_64(object_bytes(value), digest);
}

std::uint64_t fold(std::uint64_t digest, const char* name) {
  return xxh3_64(std::as_bytes(std::span(std::string_view(name))), digest);
}

std::uint64_t digest_of(std::span<const ActorType> actors) {
  std::uint64_t digest = 0;
  for (const ActorType& actor : actors) {
    digest = fold(digest, actor.name);
    digest = fold(fold(fold(digest, actor.root_bytes), actor.layout), actor.arena_bytes);
    for (const Handler& handler : actor.handlers) {
      digest = fold(fold(digest, handler.message_name), handler.is_query() ? 1 : 0);
    }
    for (const std::uint32_t message_type : actor.sends) digest = fold(digest, message_type);
  }
  return digest;
}

std::vector<std::byte> pack(std::span<const std::span<const std::byte>> schemas) {
  constexpr std::size_t alignment = 16;
  std::vector<std::byte> packed;
  for (const auto& schema : schemas) {
    const std::uint64_t header[2] = {schema.size(), 0};
    const auto header_bytes = std::as_bytes(std::span(header));
    packed.insert(packed.end(), header_bytes.begin(), header_bytes.end());
    packed.insert(packed.end(), schema.begin(), schema.end());
    packed.resize((packed.size() + alignment - 1) & ~(alignment - 1));
  }
  return packed;
}

}  // namespace

Application::Application(std::span<const ActorType> actors, std::span<const std::span<const std::byte>> schemas)
    : actors_(actors),
      schema_(pack(schemas)),
      schema_id_(schema_.empty() ? 0 : xxh3_64(schema_)),
      digest_(digest_of(actors)) {
  std::size_t handlers = 0;
  for (const ActorType& actor : actors) handlers += actor.handlers.size();
  table_.resize(std::bit_ceil(2 * handlers + 2));
  mask_ = static_cast<std::uint32_t>(table_.size() - 1);
  for (const ActorType& actor : actors) {
    has_sends_ = has_sends_ || !actor.sends.empty();
    for (const Handler& handler : actor.handlers) {
      std::uint32_t at = slot(actor.id, handler.message_type);
      while (table_[at].handler != nullptr) at = (at + 1) & mask_;
      table_[at] = {actor.id, &handler};
    }
  }
}

const ActorType* Application::actor(std::uint32_t actor_type) const {
  for (const ActorType& actor : actors_) {
    if (actor.id == actor_type) return &actor;
  }
  return nullptr;
}

}  // namespace lockstep
