// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Fixed<D>: a decimal number of D digits behind the point, held as an int64 count of the smallest unit: money, prices
/// and rates without floating point. Range: +-9.2e18 units, so +-92 billion at D = 8. Each operation is exact or rounds
/// by the rule it names; an overflow throws std::overflow_error and a division by zero std::domain_error, which traps
/// the handler. Pure functions, no allocation but in to_string(); any thread.
///
///     using Money = lockstep::Fixed<2>;
///     const auto price = Money::parse("19.99");                     // nothing on bad input
///     Money total = *price * 3;                                     // exact
///     Money tax = total.times(Fixed<4>::of_units(725), lockstep::Rounding::half_even);   // 7.25 %

#include <charconv>
#include <compare>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "lockstep/persistent.hpp"

namespace lockstep {

/// What becomes of digits that do not fit.
enum class Rounding : std::uint8_t {
  half_even,    ///< to the nearest; a half to the even neighbour (bankers' rounding)
  half_away,    ///< to the nearest; a half away from zero (commercial rounding)
  toward_zero,  ///< cut off
  floor,        ///< towards minus infinity
  ceiling,      ///< towards plus infinity
};

namespace detail {

__extension__ using Int128 = __int128;

[[noreturn, gnu::cold, gnu::noinline]] inline void throw_overflow() {
  throw std::overflow_error("lockstep::Fixed: the result does not fit into 64 bits");
}

[[nodiscard]] constexpr std::int64_t power_of_ten(unsigned digits) {
  std::int64_t power = 1;
  for (unsigned i = 0; i < digits; ++i) power *= 10;
  return power;
}

[[nodiscard]] constexpr std::int64_t narrow(Int128 value) {
  if (value > INT64_MAX || value < INT64_MIN) throw_overflow();
  return static_cast<std::int64_t>(value);
}

/// numerator / denominator, rounded. The denominator is not zero.
[[nodiscard]] constexpr Int128 divide(Int128 numerator, Int128 denominator, Rounding rounding) {
  if (denominator < 0) numerator = -numerator, denominator = -denominator;
  const Int128 quotient = numerator / denominator;  // toward zero
  const Int128 rest = numerator % denominator;
  if (rest == 0) return quotient;
  const Int128 away = numerator < 0 ? -1 : 1;
  const Int128 twice = (rest < 0 ? -rest : rest) * 2;
  switch (rounding) {
    case Rounding::half_even:
      return twice > denominator || (twice == denominator && quotient % 2 != 0) ? quotient + away : quotient;
    case Rounding::half_away:
      return twice >= denominator ? quotient + away : quotient;
    case Rounding::toward_zero:
      return quotient;
    case Rounding::floor:
      return away < 0 ? quotient - 1 : quotient;
    case Rounding::ceiling:
      return away > 0 ? quotient + 1 : quotient;
  }
  return quotient;
}

}  // namespace detail

template <unsigned Digits>
class Fixed {
  static_assert(Digits <= 18, "lockstep: a Fixed has at most 18 digits behind the point");

 public:
  static constexpr unsigned digits = Digits;
  static constexpr std::int64_t one = detail::power_of_ten(Digits);  ///< units of 1

  constexpr Fixed() = default;
  [[nodiscard]] static constexpr Fixed of_units(std::int64_t units) { return Fixed(units); }
  [[nodiscard]] static constexpr Fixed of(std::int64_t whole) {
    return Fixed(detail::narrow(detail::Int128{whole} * one));
  }
  /// From another number of digits.
  template <unsigned Other>
  [[nodiscard]] static constexpr Fixed of(Fixed<Other> other, Rounding rounding) {
    return Fixed(detail::narrow(detail::divide(detail::Int128{other.units()} * one, Fixed<Other>::one, rounding)));
  }
  /// "-12.5": an optional sign, digits, and at most `Digits` of them behind a point. Nothing on anything else, more
  /// digits (even zeroes) and overflow included: nothing is rounded in silence.
  [[nodiscard]] static constexpr std::optional<Fixed> parse(std::string_view text);

  [[nodiscard]] constexpr std::int64_t units() const { return units_; }
  /// Rounded to a whole number.
  [[nodiscard]] constexpr std::int64_t whole(Rounding rounding) const {
    return static_cast<std::int64_t>(detail::divide(units_, one, rounding));
  }

  friend constexpr Fixed operator+(Fixed a, Fixed b) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(a.units_, b.units_, &sum)) detail::throw_overflow();
    return Fixed(sum);
  }
  friend constexpr Fixed operator-(Fixed a, Fixed b) {
    std::int64_t difference = 0;
    if (__builtin_sub_overflow(a.units_, b.units_, &difference)) detail::throw_overflow();
    return Fixed(difference);
  }
  friend constexpr Fixed operator-(Fixed a) { return Fixed() - a; }
  /// By a whole number: exact.
  friend constexpr Fixed operator*(Fixed a, std::int64_t times) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a.units_, times, &product)) detail::throw_overflow();
    return Fixed(product);
  }
  friend constexpr Fixed operator*(std::int64_t times, Fixed a) { return a * times; }
  constexpr Fixed& operator+=(Fixed b) { return *this = *this + b; }
  constexpr Fixed& operator-=(Fixed b) { return *this = *this - b; }
  constexpr Fixed& operator*=(std::int64_t times) { return *this = *this * times; }

  /// The product, and the quotient, in this type's digits.
  template <unsigned Other>
  [[nodiscard]] constexpr Fixed times(Fixed<Other> factor, Rounding rounding) const {
    return Fixed(detail::narrow(detail::divide(detail::Int128{units_} * factor.units(), Fixed<Other>::one, rounding)));
  }
  template <unsigned Other>
  [[nodiscard]] constexpr Fixed divided_by(Fixed<Other> divisor, Rounding rounding) const {
    if (divisor.units() == 0) throw std::domain_error("lockstep::Fixed: division by zero");
    return Fixed(detail::narrow(detail::divide(detail::Int128{units_} * Fixed<Other>::one, divisor.units(), rounding)));
  }
  [[nodiscard]] constexpr Fixed divided_by(std::int64_t divisor, Rounding rounding) const {
    return divided_by(Fixed<0>::of_units(divisor), rounding);
  }

  /// Enough for every value: sign, 20 digits, point.
  static constexpr std::size_t text_bytes = 24;
  /// "-12.50", always with all digits, into `text`, whose front the result is.
  std::string_view format(char (&text)[text_bytes]) const;
  [[nodiscard]] std::string to_string() const {
    char text[text_bytes];
    return std::string(format(text));
  }

  friend constexpr bool operator==(Fixed, Fixed) = default;
  friend constexpr auto operator<=>(Fixed, Fixed) = default;

 private:
  explicit constexpr Fixed(std::int64_t units) : units_(units) {}

  std::int64_t units_ = 0;
};

template <unsigned Digits>
constexpr std::optional<Fixed<Digits>> Fixed<Digits>::parse(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text.front() == '.' || text.back() == '.') return std::nullopt;
  std::int64_t units = 0;
  unsigned behind_point = 0;
  bool point = false;
  const auto append = [&units](int digit) {  // kept negative: INT64_MIN has no positive
    return !__builtin_mul_overflow(units, 10, &units) && !__builtin_sub_overflow(units, digit, &units);
  };
  for (const char c : text) {
    if (c == '.' && !point && Digits > 0) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9' || (point && behind_point == Digits) || !append(c - '0')) return std::nullopt;
    behind_point += point ? 1 : 0;
  }
  for (; behind_point < Digits; ++behind_point) {
    if (!append(0)) return std::nullopt;
  }
  if (!negative && units == INT64_MIN) return std::nullopt;
  return Fixed(negative ? units : -units);
}

template <unsigned Digits>
std::string_view Fixed<Digits>::format(char (&text)[text_bytes]) const {
  const std::uint64_t bits = static_cast<std::uint64_t>(units_);
  const std::uint64_t magnitude = units_ < 0 ? std::uint64_t{0} - bits : bits;
  char* at = text;
  if (units_ < 0) *at++ = '-';
  at = std::to_chars(at, text + text_bytes, magnitude / static_cast<std::uint64_t>(one)).ptr;
  if constexpr (Digits > 0) {
    *at++ = '.';
    std::uint64_t rest = magnitude % static_cast<std::uint64_t>(one);
    for (unsigned i = Digits; i-- > 0; rest /= 10) at[i] = static_cast<char>('0' + rest % 10);
    at += Digits;
  }
  return {text, static_cast<std::size_t>(at - text)};
}

template <unsigned Digits>
struct ContainerTraits<Fixed<Digits>> {
  static constexpr std::string_view kind = "fixed";
  static constexpr std::uint64_t parameter = Digits;
  using Elements = TypeList<std::int64_t>;
};

}  // namespace lockstep
