// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Persistent: which types may be an actor's state. State is bytes in an arena that are hashed, snapshotted, compared
/// and replayed, so a type qualifies when its bytes are a function of its value: integers, enums, bool, fixed arrays,
/// the SDK's containers, and aggregates of these without padding. `check_state<T>()` is a list of static_asserts, one
/// rule each, whose messages name the rule and what to use instead. `layout_digest<T>()` is what two binaries compare
/// before one reads the other's state. All of it happens at compile time.
///
/// It cannot see an address stored in an integer; replay at another base catches that.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "lockstep/fields.hpp"

#ifdef __FAST_MATH__
#error "lockstep: -ffast-math lets the compiler reorder arithmetic, so replicas would differ; remove it"
#endif

namespace lockstep {

/// Opt-in for float and double in T and in whatever T holds: `template <> inline constexpr bool
/// lockstep::allow_floating_point<Pricing> = true;`. What it costs: every replica must run the same binary, built with
/// -ffp-contract=off, and no function of libm, whose results depend on the CPU. long double stays forbidden.
template <class T>
inline constexpr bool allow_floating_point = false;

/// What a container tells of itself; specialised beside each container. `kind` carries a version of the byte layout,
/// `parameter` a number that is part of the type, `Elements` the types it holds.
template <class T>
struct ContainerTraits;

template <class T>
concept Container = requires { ContainerTraits<T>::kind; };

template <class T, std::size_t N>
struct ContainerTraits<T[N]> {
  static constexpr std::string_view kind = "array";
  static constexpr std::uint64_t parameter = N;
  using Elements = TypeList<T>;
};
template <class T, std::size_t N>
struct ContainerTraits<std::array<T, N>> : ContainerTraits<T[N]> {};

template <class Rep, class Period>
struct ContainerTraits<std::chrono::duration<Rep, Period>> {
  static constexpr std::string_view kind = "duration";
  static constexpr std::uint64_t parameter =
      static_cast<std::uint64_t>(Period::num) * 1'000'003 + static_cast<std::uint64_t>(Period::den);
  using Elements = TypeList<Rep>;
};
template <class Clock, class Duration>
struct ContainerTraits<std::chrono::time_point<Clock, Duration>> {
  static constexpr std::string_view kind = "time_point";
  static constexpr std::uint64_t parameter = 0;
  using Elements = TypeList<Duration>;
};

/// Why a type cannot be state.
enum class StateFault {
  none,
  floating_point,
  long_double,
  plain_char,
  pointer,
  reference,
  virtual_function,
  std_container,
  opaque_class,
  base_class,
  union_type,
  too_many_fields,
  padding,
  alignment,
};

namespace detail {

template <class T, class... Seen>
inline constexpr bool is_one_of = (std::is_same_v<T, Seen> || ...);

template <class... Fs>
consteval std::size_t sum_of_sizes(TypeList<Fs...>) {
  return (std::size_t{0} + ... + sizeof(Fs));
}

template <class T>
consteval StateFault scalar_fault() {
  if constexpr (std::is_enum_v<T>) {
    return scalar_fault<std::underlying_type_t<T>>();
  } else if constexpr (std::is_same_v<T, long double>) {
    return StateFault::long_double;
  } else if constexpr (std::is_floating_point_v<T>) {
    return StateFault::floating_point;
  } else if constexpr (std::is_same_v<T, char> || std::is_same_v<T, wchar_t>) {
    return StateFault::plain_char;
  } else {
    return std::is_integral_v<T> ? StateFault::none : StateFault::pointer;
  }
}

template <class T>
consteval StateFault class_fault() {
  if constexpr (std::is_union_v<T>) {
    return StateFault::union_type;
  } else if constexpr (std::is_polymorphic_v<T>) {
    return StateFault::virtual_function;
  } else if constexpr (!std::is_aggregate_v<T>) {
    return requires { typename T::value_type; } ? StateFault::std_container : StateFault::opaque_class;
  } else if constexpr (!BraceDefault<T>) {
    return StateFault::reference;
  } else if constexpr (HasBase<T>) {
    return StateFault::base_class;
  } else if constexpr (alignof(T) > 16) {
    return StateFault::alignment;
  } else if constexpr (field_count<T> > max_fields) {
    return StateFault::too_many_fields;
  } else if constexpr (field_count<T> == 0) {
    return StateFault::none;  // a stateless actor: one byte, never written
  } else {
    return sum_of_sizes(FieldTypes<T>{}) == sizeof(T) ? StateFault::none : StateFault::padding;
  }
}

/// What is wrong with T itself, whatever its fields and elements are.
template <class T>
consteval StateFault own_fault() {
  using Value = std::remove_cv_t<T>;
  if constexpr (std::is_reference_v<T>) {
    return StateFault::reference;
  } else if constexpr (Container<Value>) {
    return StateFault::none;
  } else if constexpr (std::is_class_v<Value> || std::is_union_v<Value>) {
    return class_fault<Value>();
  } else {
    return scalar_fault<Value>();
  }
}

template <class T>
consteval auto parts_of() {
  if constexpr (Container<T>) {
    return typename ContainerTraits<T>::Elements{};
  } else if constexpr (std::is_class_v<T>) {
    return FieldTypes<T>{};
  } else {
    return TypeList<>{};
  }
}

/// The first fault in T or in anything it holds; `Seen` are the types it lies in, since a tree's node holds nodes.
template <class T, bool Floats, class... Seen>
consteval StateFault fault_of();

template <bool Floats, class... Seen, class... Parts>
consteval StateFault fault_of_parts(TypeList<Parts...>) {
  StateFault fault = StateFault::none;
  static_cast<void>(
      ((fault = fault_of<std::remove_cv_t<Parts>, Floats, Seen...>(), fault == StateFault::none) && ... && true));
  return fault;
}

template <class T, bool Floats, class... Seen>
consteval StateFault fault_of() {
  constexpr StateFault own = own_fault<T>();
  if constexpr (is_one_of<T, Seen...> || (own == StateFault::floating_point && Floats)) {
    return StateFault::none;
  } else if constexpr (own != StateFault::none) {
    return own;
  } else {
    return fault_of_parts<(Floats || allow_floating_point<T>), T, Seen...>(parts_of<T>());
  }
}

}  // namespace detail

/// A type that may be state.
template <class T>
concept Persistent = detail::fault_of<T, false>() == StateFault::none;

/// A type that may be a container's element: as above, or a float that only an actor that opted in can reach.
template <class T>
concept PersistentElement = detail::fault_of<T, true>() == StateFault::none;

namespace detail {

template <StateFault Fault>
consteval bool explain() {
  static_assert(Fault != StateFault::floating_point,
                "lockstep: state holds a float or double, whose results differ between CPUs and compilers; use "
                "lockstep::Fixed or an integer of small units, or opt in with lockstep::allow_floating_point");
  static_assert(Fault != StateFault::long_double,
                "lockstep: state holds a long double, whose size, padding and results differ between machines; use "
                "lockstep::Fixed or an integer of small units");
  static_assert(Fault != StateFault::plain_char,
                "lockstep: state holds a plain char or wchar_t, whose sign or size differs between machines; use "
                "std::int8_t or std::uint8_t for numbers and lockstep::String for text");
  static_assert(Fault != StateFault::pointer,
                "lockstep: state holds a pointer, and addresses differ between replicas; keep a key, an index or a "
                "lockstep::Pool handle instead");
  static_assert(Fault != StateFault::reference,
                "lockstep: state holds a reference, or a field without a default value; addresses differ between "
                "replicas, and state starts from nothing: keep a key, an index or a lockstep::Pool handle instead");
  static_assert(Fault != StateFault::virtual_function,
                "lockstep: state has virtual functions, and so a hidden pointer; use an enum field and a switch");
  static_assert(Fault != StateFault::std_container,
                "lockstep: state holds a std container, which keeps addresses and allocates outside the arena; use "
                "lockstep::Vector, String, Map, HashMap, Ring, Pool, Optional or Array");
  static_assert(Fault != StateFault::opaque_class,
                "lockstep: state holds a class with constructors or private fields, which cannot be checked field by "
                "field; make it a plain aggregate, or use one of lockstep's containers");
  static_assert(Fault != StateFault::base_class,
                "lockstep: state has a base class, so its fields cannot be walked; make the base a field");
  static_assert(Fault != StateFault::union_type,
                "lockstep: state holds a union, whose unused bytes would poison the state hash; use an enum and "
                "separate fields");
  static_assert(Fault != StateFault::too_many_fields,
                "lockstep: state has more than 32 fields in one struct (or long C arrays); group them into nested "
                "structs and use lockstep::Array for fixed arrays");
  static_assert(Fault != StateFault::padding,
                "lockstep: the actor has padding bytes, which would poison the state hash; reorder or "
                "widen its fields");
  static_assert(Fault != StateFault::alignment,
                "lockstep: state is aligned to more than 16 bytes, which an arena cannot give; drop the alignas");
  return Fault == StateFault::none;
}

/// Names in the compiler's trace where the fault is: field `Index` (or element type `Index`) of `Owner`.
template <class Owner, std::size_t Index, class T, bool Floats, class... Seen>
consteval bool check_part();

template <class Owner, bool Floats, class... Seen, class... Parts, std::size_t... Index>
consteval bool check_parts(TypeList<Parts...>, std::index_sequence<Index...>) {
  return (check_part<Owner, Index, std::remove_cv_t<Parts>, Floats, Seen...>() && ... && true);
}

template <class Owner, std::size_t Index, class T, bool Floats, class... Seen>
consteval bool check_part() {
  constexpr StateFault own = own_fault<T>();
  if constexpr (is_one_of<T, Seen...> || (own == StateFault::floating_point && Floats)) {
    return true;
  } else if constexpr (own != StateFault::none) {
    return explain<own>();
  } else {
    constexpr auto parts = parts_of<T>();
    return check_parts<T, (Floats || allow_floating_point<T>), T, Seen...>(parts,
                                                                           std::make_index_sequence<parts.size>{});
  }
}

}  // namespace detail

/// Refuses to compile, with a message that names the rule and the remedy, unless T may be an actor's state.
template <class T>
consteval bool check_state() {
  return detail::check_part<T, 0, T, false>();
}

/// As check_state, of what a container holds, wherever the container lies: also on a handler's stack. Floats pass,
/// since only the actor tells whether it opted in.
template <class T>
consteval bool check_element() {
  return detail::check_part<T, 0, T, true>();
}

namespace detail {

constexpr std::uint64_t fold(std::uint64_t digest, std::uint64_t token) {  // FNV-1a, 64 bits
  for (int shift = 0; shift < 64; shift += 8) digest = (digest ^ ((token >> shift) & 0xFF)) * 1099511628211ULL;
  return digest;
}

constexpr std::uint64_t fold(std::uint64_t digest, std::string_view text) {
  for (const char c : text) digest = fold(digest, static_cast<std::uint8_t>(c));
  return fold(digest, text.size());
}

template <class T, class... Seen>
consteval std::uint64_t fold_type(std::uint64_t digest);

template <class... Seen, class... Parts>
consteval std::uint64_t fold_parts(std::uint64_t digest, TypeList<Parts...>) {
  static_cast<void>(((digest = fold_type<std::remove_cv_t<Parts>, Seen...>(digest), true) && ... && true));
  return fold(digest, sizeof...(Parts));
}

template <class T, class... Seen>
consteval std::uint64_t fold_type(std::uint64_t digest) {
  digest = fold(digest, sizeof(T));
  if constexpr (is_one_of<T, Seen...>) {
    std::size_t up = 0;
    static_cast<void>(((++up, std::is_same_v<T, Seen>) || ...));
    return fold(fold(digest, "seen"), up);
  } else if constexpr (Container<T>) {
    digest = fold(fold(digest, ContainerTraits<T>::kind), ContainerTraits<T>::parameter);
    return fold_parts<T, Seen...>(digest, parts_of<T>());
  } else if constexpr (std::is_class_v<T>) {
    return fold_parts<T, Seen...>(fold(digest, "struct"), parts_of<T>());
  } else if constexpr (std::is_enum_v<T>) {
    return fold_type<std::underlying_type_t<T>>(fold(digest, "enum"));
  } else if constexpr (std::is_same_v<T, bool>) {
    return fold(digest, "bool");
  } else if constexpr (std::is_floating_point_v<T>) {
    return fold(digest, "float");
  } else {
    return fold(digest, std::is_signed_v<T> ? "int" : "uint");
  }
}

}  // namespace detail

/// A digest of T's layout: kinds, sizes and order of its fields and elements, at every depth; names are not part of it.
template <class T>
  requires PersistentElement<T>
consteval std::uint64_t layout_digest() {
  return detail::fold_type<T>(14695981039346656037ULL);
}

}  // namespace lockstep
