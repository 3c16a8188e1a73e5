// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Message: what actors receive, send and reply: a type that flatc made from a schema (with `flatc_args` of the root
/// meson.build). A table grows with its schema; a struct has a fixed layout and costs least. A message's bytes are read
/// where they lie, 16-aligned; nothing is copied or parsed.
///
/// Pure functions; any thread. Bytes from outside pass verify() once, at the perimeter; decode() trusts them.

#include <flatbuffers/flatbuffers.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "lockstep/address.hpp"

namespace lockstep {

namespace detail {
template <class M>
concept Named = requires {
  { M::GetFullyQualifiedName() } -> std::convertible_to<const char*>;
};
}  // namespace detail

/// A `table` of a schema.
template <class M>
concept TableMessage = std::is_base_of_v<flatbuffers::Table, M> && detail::Named<M> && requires { M::Traits::Create; };

/// A `struct` of a schema.
template <class M>
concept StructMessage = !std::is_base_of_v<flatbuffers::Table, M> && std::is_trivially_copyable_v<M> &&
                        detail::Named<M> && requires { typename M::Traits::type; };

template <class M>
concept Message = TableMessage<M> || StructMessage<M>;

/// Stable over builds, compilers and machines, since it comes from the schema's names.
template <Message M>
inline constexpr std::uint32_t message_id = name_id(M::GetFullyQualifiedName());

/// How deep tables may nest. With the bound on tables it makes verifying linear in the size: buffers whose tables share
/// children cost exponential time otherwise.
inline constexpr flatbuffers::uoffset_t max_message_depth = 16;

/// Whether `payload` (16-aligned) can be read as an `M` without leaving it. Nested buffers (`nested_flatbuffer`) are
/// opaque bytes here.
template <Message M>
[[nodiscard]] bool verify(std::span<const std::byte> payload) {
  if constexpr (StructMessage<M>) {
    return payload.size() == sizeof(M);
  } else {
    constexpr std::size_t least_table_bytes = 8;
    flatbuffers::Verifier::Options limits;
    limits.max_depth = max_message_depth;
    limits.max_tables = static_cast<flatbuffers::uoffset_t>(payload.size() / least_table_bytes);
    limits.check_nested_flatbuffers = false;
    if (payload.size() >= FLATBUFFERS_MAX_BUFFER_SIZE) return false;
    flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(payload.data()), payload.size(), limits);
    return verifier.VerifyBuffer<M>(nullptr);
  }
}

/// Reads a payload that has been verified, or that encode() made.
template <Message M>
[[nodiscard]] const M& decode(const std::byte* payload) {
  if constexpr (StructMessage<M>) {
    return *reinterpret_cast<const M*>(payload);
  } else {
    return *flatbuffers::GetRoot<M>(payload);
  }
}

}  // namespace lockstep
