// SPDX-License-Identifier: Apache-2.0
#pragma once

/// MessageBuilder: makes a message's bytes from one argument a field, in schema order. The bytes are a function of the
/// arguments alone: nested strings, vectors and tables are built in field order whatever order a compiler evaluates
/// arguments in, and a field that holds its default is written like any other.
///
///     builder.encode<Order>(7u, "limit", std::span(legs));
///
/// What a field takes:
///   integer, float, enum, bool   the same kind of value, not wider than the field
///   string                       anything that is a std::string_view; a received string
///   [integer], [struct]          a contiguous range; a received vector
///   [string]                     a range of strings
///   struct                       the struct, or a pointer to it that may be null
///   table, union, [table]        a callable that is given the flatbuffers::FlatBufferBuilder and returns the offset
/// A null pointer, or lockstep::absent, leaves a field out.
///
/// It works in memory of its own, taken once: no allocation per message. One thread. A message above `max_bytes` is
/// refused with TrapError{effect_bytes}.

#include <flatbuffers/flatbuffers.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <ranges>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "lockstep/message.hpp"
#include "lockstep/scalar_table.hpp"
#include "lockstep/trap.hpp"

namespace lockstep {

/// Leaves a string, vector, struct or table field out of a message.
struct Absent {};
inline constexpr Absent absent{};

namespace detail {

/// Hands a FlatBufferBuilder one fixed block, once; to need more is to be above the limit.
class FixedBlock final : public flatbuffers::Allocator {
 public:
  explicit FixedBlock(std::size_t bytes) : bytes_(bytes), block_(new std::byte[bytes]) {}
  std::uint8_t* allocate(std::size_t) override { return reinterpret_cast<std::uint8_t*>(block_.get()); }
  void deallocate(std::uint8_t*, std::size_t) override {}
  std::uint8_t* reallocate_downward(std::uint8_t*, std::size_t, std::size_t, std::size_t, std::size_t) override {
    throw TrapError{TrapKind::effect_bytes};
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::unique_ptr<std::byte[]> block_;
};

template <class T>
concept ByteString = std::convertible_to<T, std::string_view>;
template <class T>
concept ReceivedString = std::convertible_to<T, const flatbuffers::String*>;
template <class T, class Field>
concept BuildsField = requires(T&& build, flatbuffers::FlatBufferBuilder& fbb) {
  { std::forward<T>(build)(fbb) } -> std::convertible_to<Field>;
};

/// The value categories a scalar field accepts: what cannot lose bits by width, and no mixing of kinds.
template <class Arg, class Field>
concept ScalarFits = std::same_as<Arg, Field> ||
                     (std::is_integral_v<Arg> && std::is_integral_v<Field> && !std::same_as<Arg, bool> &&
                      !std::same_as<Field, bool> && sizeof(Arg) <= sizeof(Field)) ||
                     (std::is_floating_point_v<Arg> && std::is_floating_point_v<Field> && sizeof(Arg) <= sizeof(Field));

/// How one parameter of a generated Create function is made from an argument.
template <class Field>
struct FieldMaker {  // scalars and enums
  template <class Arg>
  static constexpr bool accepts = ScalarFits<std::remove_cvref_t<Arg>, Field>;
  template <class Arg>
  static Field make(flatbuffers::FlatBufferBuilder&, const Arg& value) {
    return static_cast<Field>(value);
  }
};

template <class Struct>
struct FieldMaker<const Struct*> {
  template <class Arg>
  static constexpr bool accepts =
      std::convertible_to<Arg, const Struct*> || std::same_as<std::remove_cvref_t<Arg>, Struct> ||
      std::same_as<std::remove_cvref_t<Arg>, Absent>;
  template <class Arg>
  static const Struct* make(flatbuffers::FlatBufferBuilder&, const Arg& value) {
    if constexpr (std::same_as<Arg, Absent>) {
      return nullptr;
    } else if constexpr (std::same_as<Arg, Struct>) {
      return &value;
    } else {
      return value;
    }
  }
};

/// Tables and unions.
template <class T>
struct FieldMaker<flatbuffers::Offset<T>> {
  using Field = flatbuffers::Offset<T>;
  template <class Arg>
  static constexpr bool accepts = BuildsField<Arg, Field> || std::same_as<std::remove_cvref_t<Arg>, Absent>;
  template <class Arg>
  static Field make(flatbuffers::FlatBufferBuilder& fbb, const Arg& value) {
    if constexpr (std::same_as<Arg, Absent>) {
      return Field();
    } else {
      return value(fbb);
    }
  }
};

template <>
struct FieldMaker<flatbuffers::Offset<flatbuffers::String>> {
  using Field = flatbuffers::Offset<flatbuffers::String>;
  template <class Arg>
  static constexpr bool accepts = ByteString<Arg> || ReceivedString<Arg> || BuildsField<Arg, Field> ||
                                  std::same_as<std::remove_cvref_t<Arg>, Absent>;
  template <class Arg>
  static Field make(flatbuffers::FlatBufferBuilder& fbb, const Arg& value) {
    if constexpr (std::same_as<Arg, Absent>) {
      return Field();
    } else if constexpr (ReceivedString<Arg>) {
      return fbb.CreateString(static_cast<const flatbuffers::String*>(value));
    } else if constexpr (ByteString<const Arg&>) {
      const std::string_view text = value;
      return fbb.CreateString(text.data(), text.size());
    } else {
      return value(fbb);
    }
  }
};

/// Vectors. `Element` is what flatc calls it: a scalar, `const Struct*`, `Offset<String>` or `Offset<Table>`.
template <class Element>
struct FieldMaker<flatbuffers::Offset<flatbuffers::Vector<Element>>> {
  using Field = flatbuffers::Offset<flatbuffers::Vector<Element>>;
  using Received = const flatbuffers::Vector<Element>*;
  static constexpr bool of_structs = std::is_pointer_v<Element>;
  static constexpr bool of_strings = std::same_as<Element, flatbuffers::Offset<flatbuffers::String>>;
  static constexpr bool of_plain = of_structs || std::is_arithmetic_v<Element> || std::is_enum_v<Element>;
  using Plain = std::remove_const_t<std::remove_pointer_t<Element>>;

  template <class Arg>
  static constexpr bool is_plain_range = of_plain && std::convertible_to<Arg, std::span<const Plain>>;
  template <class Arg>
  static constexpr bool is_string_range = [] {
    if constexpr (of_strings && std::ranges::forward_range<Arg>) {
      return ByteString<std::ranges::range_reference_t<Arg>>;
    } else {
      return false;
    }
  }();
  template <class Arg>
  static constexpr bool is_received = (of_plain || of_strings) && std::convertible_to<Arg, Received>;
  template <class Arg>
  static constexpr bool accepts = is_plain_range<Arg> || is_string_range<Arg> || is_received<Arg> ||
                                  BuildsField<Arg, Field> || std::same_as<std::remove_cvref_t<Arg>, Absent>;

  template <class Arg>
  static Field make(flatbuffers::FlatBufferBuilder& fbb, const Arg& value) {
    if constexpr (std::same_as<Arg, Absent>) {
      return Field();
    } else if constexpr (is_received<const Arg&>) {
      return copy(fbb, static_cast<Received>(value));
    } else if constexpr (is_plain_range<const Arg&>) {
      return from_span(fbb, std::span<const Plain>(value));
    } else if constexpr (is_string_range<const Arg&>) {
      auto views = std::views::transform(value, [](const auto& text) { return std::string_view(text); });
      return fbb.CreateVectorOfStrings(std::ranges::begin(views), std::ranges::end(views));
    } else {
      return value(fbb);
    }
  }

 private:
  static Field from_span(flatbuffers::FlatBufferBuilder& fbb, std::span<const Plain> values) {
    if constexpr (of_structs) {
      return fbb.CreateVectorOfStructs(values.data(), values.size());
    } else {
      return fbb.CreateVector(values.data(), values.size());
    }
  }
  static Field copy(flatbuffers::FlatBufferBuilder& fbb, Received received) {
    if (received == nullptr) return Field();
    if constexpr (of_strings) {
      return fbb.CreateVectorOfStrings(received->begin(), received->end());
    } else {
      return from_span(fbb, {reinterpret_cast<const Plain*>(received->Data()), received->size()});
    }
  }
};

template <class Function>
struct CreateFunction;
template <class Result, class... Fields>
struct CreateFunction<Result (*)(flatbuffers::FlatBufferBuilder&, Fields...)> {
  static constexpr std::size_t field_count = sizeof...(Fields);
  static constexpr bool few_scalars = field_count != 0 && field_count <= 32 && (is_scalar_field<Fields> && ...);

  template <class... Args>
  static consteval bool accepts() {
    if constexpr (sizeof...(Args) != field_count) {
      return false;
    } else {
      return (FieldMaker<Fields>::template accepts<const std::remove_cvref_t<Args>&> && ...);
    }
  }

  template <class... Args>
  static Result build(Result (*create)(flatbuffers::FlatBufferBuilder&, Fields...), flatbuffers::FlatBufferBuilder& fbb,
                      const Args&... args) {
    // Braces fix the order of evaluation; parentheses would leave it to the compiler.
    const std::tuple<Fields...> fields{FieldMaker<Fields>::make(fbb, args)...};
    return std::apply([&](const auto&... field) { return create(fbb, field...); }, fields);
  }
};

template <class M>
using CreateOf = std::remove_const_t<decltype(M::Traits::Create)>;

}  // namespace detail

/// Whether `Args` are one value per field of `M`, in schema order.
template <class M, class... Args>
inline constexpr bool encodable = [] {
  if constexpr (TableMessage<M>) {
    return detail::CreateFunction<detail::CreateOf<M>>::template accepts<Args...>();
  } else {
    return (sizeof...(Args) != 0 && std::is_constructible_v<M, Args...>) ||
           (std::same_as<std::remove_cvref_t<Args>, M> && ...);
  }
}();

namespace detail {

template <class M, class... Args>
consteval bool check_fields() {
  static_assert(encodable<M, Args...>,
                "lockstep: the arguments do not match the message's fields; pass one value per field, in schema order, "
                "of the field's kind and not wider than it");
  return encodable<M, Args...>;
}

template <class M>
struct StructLayout {
  static constexpr std::size_t max_bytes = sizeof(M);
  [[nodiscard]] static constexpr std::size_t bytes() { return sizeof(M); }
  template <class... Args>
  static void write(std::byte* to, const Args&... args) {
    ::new (static_cast<void*>(to)) M(args...);
    std::memset(to + sizeof(M), 0, -sizeof(M) & 15U);
  }
};

}  // namespace detail

/// Whether all messages `M` have one length: structs, and tables of no more than 32 scalars.
template <Message M>
inline constexpr bool has_fixed_size = [] {
  if constexpr (TableMessage<M>) {
    return detail::CreateFunction<detail::CreateOf<M>>::few_scalars;
  } else {
    return true;
  }
}();

class MessageBuilder {
 public:
  /// `max_bytes` is the longest message; twice that and what one table's bookkeeping takes is reserved.
  explicit MessageBuilder(std::size_t max_bytes) : max_bytes_(max_bytes), block_(2 * max_bytes + bookkeeping_bytes) {
    restart();
  }
  MessageBuilder(const MessageBuilder&) = delete;
  MessageBuilder& operator=(const MessageBuilder&) = delete;

  /// The bytes of an `M`, valid until the next call. Throws TrapError{effect_bytes} above the limit.
  template <Message M, class... Args>
  [[nodiscard]] std::span<const std::byte> encode(const Args&... args) {
    if constexpr (!detail::check_fields<M, Args...>()) {
      return {};
    } else if constexpr (has_fixed_size<M>) {
      const auto& layout = layout_of<M>();
      if (layout.bytes() > max_bytes_) throw TrapError{TrapKind::effect_bytes};
      static_assert(std::remove_cvref_t<decltype(layout)>::max_bytes <= sizeof(fixed_bytes_));
      layout.write(fixed_bytes_, args...);
      return {fixed_bytes_, layout.bytes()};
    } else {
      using Create = detail::CreateFunction<detail::CreateOf<M>>;
      flatbuffers::FlatBufferBuilder& fbb = builder();
      in_use_ = true;
      fbb.Finish(Create::build(M::Traits::Create, fbb, args...));
      const std::span bytes(reinterpret_cast<const std::byte*>(fbb.GetBufferPointer()), fbb.GetSize());
      if (bytes.size() > max_bytes_) throw TrapError{TrapKind::effect_bytes};
      fbb.Clear();
      in_use_ = false;
      return bytes;
    }
  }

  /// Of messages of fixed size: bytes() is how long each is; write(to, fields...) writes one, and zeroes up to the next
  /// multiple of 16, to `to`, which is 16-aligned.
  template <Message M>
    requires has_fixed_size<M>
  [[nodiscard]] const auto& layout_of() {
    if constexpr (StructMessage<M>) {
      static constexpr detail::StructLayout<M> layout;
      return layout;
    } else {
      static const detail::ScalarTable<detail::CreateOf<M>> layout(M::Traits::Create, builder());
      return layout;
    }
  }

 private:
  static constexpr std::size_t bookkeeping_bytes = 1U << 20U;

  [[nodiscard]] flatbuffers::FlatBufferBuilder& builder() {
    if (in_use_) restart();
    return *fbb_;
  }
  /// After a message that was given up half-way, the builder's state is not to be trusted.
  void restart() {
    fbb_.emplace(block_.bytes(), &block_);
    fbb_->ForceDefaults(true);
    in_use_ = false;
  }

  std::size_t max_bytes_;
  detail::FixedBlock block_;
  std::optional<flatbuffers::FlatBufferBuilder> fbb_;
  bool in_use_ = false;
  alignas(16) std::byte fixed_bytes_[1024];
};

}  // namespace lockstep
