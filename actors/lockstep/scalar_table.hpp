// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ScalarTable: the bytes of a table all of whose fields are scalars. A message holds its defaults like any other value
/// (encode.hpp), so two messages of such a type differ in nothing but the values. FlatBufferBuilder makes one, whose
/// bytes are then copied and filled in: the same bytes, at a tenth of the instructions.
///
/// Made once per message type, then constant; any thread.

#include <flatbuffers/flatbuffers.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/assert.hpp"

namespace lockstep::detail {

template <class Field>
inline constexpr bool is_scalar_field = std::is_arithmetic_v<Field> || std::is_enum_v<Field>;

template <class Create>
class ScalarTable;
template <class Table, class... Fields>
class ScalarTable<Table (*)(flatbuffers::FlatBufferBuilder&, Fields...)> {
  using Create = Table (*)(flatbuffers::FlatBufferBuilder&, Fields...);

 public:
  /// `fbb` is empty and writes defaults; it is left so.
  ScalarTable(Create create, flatbuffers::FlatBufferBuilder& fbb) {
    bytes_ = build(create, fbb, image_, Fields{}...);
    find_fields(create, fbb, std::index_sequence_for<Fields...>());
  }

  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  /// Writes bytes(), and zeroes up to the next multiple of 16, to `to`, which is 16-aligned.
  template <class... Args>
  void write(std::byte* to, const Args&... values) const {
    for (std::uint32_t at = 0; at < bytes_; at += 16) std::memcpy(to + at, image_.data() + at, 16);
    const std::uint16_t* place = places_.data();
    (put(to + *place++, static_cast<Fields>(values)), ...);
  }

  /// More than any such table takes, with a vtable of some hundred fields that the schema has given up.
  static constexpr std::size_t max_bytes = 512 + 16 * sizeof...(Fields);

 private:
  template <class Field>
  static void put(std::byte* to, Field value) {
    std::memcpy(to, &value, sizeof value);
  }

  using Image = std::array<std::byte, max_bytes>;

  static std::uint32_t build(Create create, flatbuffers::FlatBufferBuilder& fbb, Image& image, Fields... values) {
    fbb.Finish(create(fbb, values...));
    const std::size_t bytes = fbb.GetSize();
    LOCKSTEP_ASSERT(bytes <= max_bytes, "a message's schema has hundreds of removed fields");
    std::memcpy(image.data(), fbb.GetBufferPointer(), bytes);
    fbb.Clear();
    return static_cast<std::uint32_t>(bytes);
  }

  /// A value all of whose bytes differ from zero's, where the type has one.
  template <class Field>
  static Field distinct() {
    if constexpr (std::is_same_v<Field, bool>) {
      return true;
    } else {
      Field value;
      std::memset(&value, 0xFF, sizeof value);
      return value;
    }
  }

  /// A field lies where the bytes change when only it is other than zero.
  template <std::size_t... is>
  void find_fields(Create create, flatbuffers::FlatBufferBuilder& fbb, std::index_sequence<is...>) {
    const auto find_one = [&]<std::size_t i>(std::integral_constant<std::size_t, i>) {
      Image image{};
      build(create, fbb, image, (is == i ? distinct<Fields>() : Fields{})...);
      std::size_t at = 0;
      while (at < bytes_ && image[at] == image_[at]) ++at;
      LOCKSTEP_ASSERT(at < bytes_, "a field is nowhere in its message");
      places_[i] = static_cast<std::uint16_t>(at);
    };
    (find_one(std::integral_constant<std::size_t, is>()), ...);
  }

  std::uint32_t bytes_ = 0;
  std::array<std::uint16_t, sizeof...(Fields)> places_{};
  alignas(16) Image image_{};
};

}  // namespace lockstep::detail
