// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Fields: walks the fields of an aggregate at compile time, without macros in user code and without registration: it
/// counts what braces take, then takes the object apart with structured bindings (the technique of Boost.PFR). Works
/// for aggregates without bases, of up to `max_fields` fields; C arrays count as one field, up to `max_initialisers`
/// scalars in all (lockstep::Array has no such limit); bit-fields do not compile. persistent.hpp turns a type it cannot
/// walk into an error that says so. Pure functions; any thread.

#include <cstddef>
#include <type_traits>
#include <utility>

namespace lockstep {

inline constexpr std::size_t max_fields = 32;
inline constexpr std::size_t max_initialisers = 64;

template <class... Ts>
struct TypeList {
  static constexpr std::size_t size = sizeof...(Ts);
};

namespace detail {

struct AnyField {  // stands for a value of whatever type a field has; never evaluated
  template <class T>
  constexpr operator T() const noexcept;
};

template <class Derived>
struct AnyBase {  // converts only to a base class of Derived
  template <class T>
    requires(std::is_base_of_v<T, Derived> && !std::is_same_v<T, Derived>)
  constexpr operator T() const noexcept;
};

template <std::size_t>
using AnyFieldAt = AnyField;

template <class T>
concept BraceDefault = requires { T{}; };

template <class T>
concept HasBase = requires { T{AnyBase<T>{}}; };

template <class T, std::size_t... I>
consteval bool takes_braces(std::index_sequence<I...>) {
  return requires { T{AnyFieldAt<I>{}...}; };
}

/// How many values braces around T take when C arrays are spelled out; one more than the limit if there are more.
template <class T, std::size_t N = 0>
consteval std::size_t initialiser_count() {
  if constexpr (N <= max_initialisers && takes_braces<T>(std::make_index_sequence<N + 1>{})) {
    return initialiser_count<T, N + 1>();
  } else {
    return N;
  }
}

template <class T, std::size_t... Before, std::size_t... Inside, std::size_t... After>
consteval bool takes_nested(std::index_sequence<Before...>, std::index_sequence<Inside...>,
                            std::index_sequence<After...>) {
  return requires { T{AnyFieldAt<Before>{}..., {AnyFieldAt<Inside>{}...}, AnyFieldAt<After>{}...}; };
}

template <class T, std::size_t At, std::size_t Inside, std::size_t After>
inline constexpr bool nested_fits = takes_nested<T>(std::make_index_sequence<At>{}, std::make_index_sequence<Inside>{},
                                                    std::make_index_sequence<After>{});

/// How many of the `Total` initialisers the field at initialiser `At` takes: the extent of a C array, else 1. A nested
/// aggregate also takes inner braces, but leaves room behind it for all but one of the rest; an array does not.
template <class T, std::size_t Total, std::size_t At, std::size_t Extent = 2>
consteval std::size_t initialisers_of_field() {
  if constexpr (At + Extent > Total || !nested_fits<T, At, Extent, 0>) {
    return 1;
  } else if constexpr (nested_fits<T, At, Extent, Total - At - Extent> &&
                       !nested_fits<T, At, Extent, Total - At - Extent + 1> &&
                       !nested_fits<T, At, Extent + 1, Total - At - Extent>) {
    return Extent;
  } else {
    return initialisers_of_field<T, Total, At, Extent + 1>();
  }
}

template <class T, std::size_t Total, std::size_t At = 0>
consteval std::size_t count_fields() {
  if constexpr (At >= Total) {
    return 0;
  } else {
    return 1 + count_fields<T, Total, At + initialisers_of_field<T, Total, At>()>();
  }
}

}  // namespace detail

/// The number of fields of an aggregate; above max_fields if it cannot be walked.
template <class T>
inline constexpr std::size_t field_count = [] {
  constexpr std::size_t total = detail::initialiser_count<std::remove_cv_t<T>>();
  if constexpr (total > max_initialisers) {
    return max_fields + 1;
  } else {
    return detail::count_fields<std::remove_cv_t<T>, total>();
  }
}();

/// Calls `visit(field...)` with a reference to each field, in order of declaration, and returns what it returns.
template <class T, class Visit>
constexpr decltype(auto) with_fields(T& object, Visit&& visit) {
  constexpr std::size_t n = field_count<T>;
  static_assert(n <= max_fields);
  // clang-format off
  if constexpr (n == 0) return visit();
  else if constexpr (n == 1) { auto& [f0] = object; return visit(f0); }
  else if constexpr (n == 2) { auto& [f0, f1] = object; return visit(f0, f1); }
  else if constexpr (n == 3) { auto& [f0, f1, f2] = object; return visit(f0, f1, f2); }
  else if constexpr (n == 4) { auto& [f0, f1, f2, f3] = object; return visit(f0, f1, f2, f3); }
  else if constexpr (n == 5) { auto& [f0, f1, f2, f3, f4] = object; return visit(f0, f1, f2, f3, f4); }
  else if constexpr (n == 6) { auto& [f0, f1, f2, f3, f4, f5] = object; return visit(f0, f1, f2, f3, f4, f5); }
  else if constexpr (n == 7) { auto& [f0, f1, f2, f3, f4, f5, f6] = object; return visit(f0, f1, f2, f3, f4, f5, f6); }
  else if constexpr (n == 8) { auto& [f0, f1, f2, f3, f4, f5, f6, f7] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7); }
  else if constexpr (n == 9) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8); }
  else if constexpr (n == 10) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9); }
  else if constexpr (n == 11) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10); }
  else if constexpr (n == 12) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11); }
  else if constexpr (n == 13) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12); }
  else if constexpr (n == 14) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13); }
  else if constexpr (n == 15) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14); }
  else if constexpr (n == 16) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15); }
  else if constexpr (n == 17) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16); }
  else if constexpr (n == 18) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17); }
  else if constexpr (n == 19) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18); }
  else if constexpr (n == 20) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19); }
  else if constexpr (n == 21) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20); }
  else if constexpr (n == 22) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21); }
  else if constexpr (n == 23) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22); }
  else if constexpr (n == 24) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23); }
  else if constexpr (n == 25) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24); }
  else if constexpr (n == 26) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25); }
  else if constexpr (n == 27) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26); }
  else if constexpr (n == 28) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27); }
  else if constexpr (n == 29) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28); }
  else if constexpr (n == 30) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29); }
  else if constexpr (n == 31) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30); }
  else if constexpr (n == 32) { auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31] = object; return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31); }
  // clang-format on
}

namespace detail {
struct ListFields {
  template <class... Fs>
  constexpr TypeList<Fs...> operator()(Fs&...) const noexcept {
    return {};
  }
};
}  // namespace detail

/// TypeList of the fields' types.
template <class T>
using FieldTypes = decltype(with_fields(std::declval<T&>(), detail::ListFields{}));

}  // namespace lockstep
