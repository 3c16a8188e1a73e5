// SPDX-License-Identifier: Apache-2.0
#include "lockstep/persistent.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/address.hpp"

// The refusals with their messages are in tests/compile_fail; here is which type has which fault, and the digest.

namespace {

using lockstep::Persistent;
using lockstep::StateFault;

template <class T>
constexpr StateFault fault = lockstep::detail::fault_of<T, false>();

struct Pair {
  std::uint32_t a = 0, b = 0;
};
struct Arrays {
  Pair first;
  Pair pairs[2];
  std::uint64_t word;
  Pair last;
  std::array<std::int32_t, 100> many;
  std::int32_t grid[2][3];
};
struct Wide {
  int a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7;
  int c0, c1, c2, c3, c4, c5, c6, c7, d0, d1, d2, d3, d4, d5, d6, d7;
};
struct TooWide {
  Wide wide;
  int a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7;
  int c0, c1, c2, c3, c4, c5, c6, c7, d0, d1, d2, d3, d4, d5, d6, d7;
};
struct Bytes {
  std::uint8_t a;
  std::array<std::uint8_t, 3> b;
  std::int8_t c[4];
  bool d[2];
  std::uint16_t e;
};
struct MoveOnly {
  MoveOnly() = default;
  MoveOnly(MoveOnly&&) = default;
  std::uint64_t a;
};
struct WithMoveOnly {
  MoveOnly a;
  std::uint64_t b;
};
enum class Color : std::uint8_t { red };
enum class Letter : char { a };
struct Times {
  std::chrono::nanoseconds delay;
  std::chrono::sys_time<std::chrono::nanoseconds> when;
};
struct Empty {};

struct Inner {
  std::uint32_t a;
  std::uint64_t b;
};
struct Nested {
  std::uint64_t a;
  Inner inner;
};
struct Double {
  double a;
};
struct OptedIn {
  std::array<Double, 2> a;
};
struct LongDouble {
  long double a;
};
struct Char {
  char a[4];
};
struct Pointer {
  const Pair* a;
};
struct Reference {
  std::uint64_t b;
  Pair& a;
};
struct Virtual {
  virtual ~Virtual() = default;
};
struct StdMap {
  std::map<int, int> a;
};
struct StdString {
  std::string a;
};
struct Unique {
  std::unique_ptr<int> a;
};
struct Derived : Pair {
  std::uint64_t c;
};
struct Union {
  union {
    std::uint32_t a;
    std::uint8_t b;
  } u;
};
struct alignas(64) Aligned {
  std::uint64_t a[8];
};

}  // namespace

template <>
inline constexpr bool lockstep::allow_floating_point<OptedIn> = true;

TEST_SUITE("persistent") {
  TEST_CASE("fields are counted through nested aggregates, arrays and move-only members") {
    CHECK(lockstep::field_count<Pair> == 2);
    CHECK(lockstep::field_count<Arrays> == 6);
    CHECK(lockstep::field_count<Wide> == 32);
    CHECK(lockstep::field_count<TooWide> == 33);
    CHECK(lockstep::field_count<Bytes> == 5);
    CHECK(lockstep::field_count<WithMoveOnly> == 2);
    CHECK(lockstep::field_count<Empty> == 0);
  }

  TEST_CASE("fields are visited in order of declaration") {
    Arrays arrays{};
    arrays.last.b = 7;
    arrays.grid[1][2] = 9;
    const int sum = lockstep::with_fields(arrays, [](auto& first, auto&, auto& word, auto& last, auto&, auto& grid) {
      first.a = 1;
      word = 2;
      return static_cast<int>(last.b) + grid[1][2];
    });
    CHECK(sum == 16);
    CHECK(arrays.first.a == 1);
    CHECK(arrays.word == 2);
  }

  TEST_CASE("types whose bytes are a function of their value are state") {
    CHECK(Persistent<std::uint64_t>);
    CHECK(Persistent<bool>);
    CHECK(Persistent<Color>);
    CHECK(Persistent<lockstep::Address>);
    CHECK(Persistent<Arrays>);
    CHECK(Persistent<Wide>);
    CHECK(Persistent<Bytes>);
    CHECK(Persistent<Times>);
    CHECK(Persistent<Empty>);
    CHECK(Persistent<OptedIn>);
    CHECK(lockstep::check_state<Arrays>());
  }

  TEST_CASE("each fault is told apart, at any depth") {
    CHECK(fault<Inner> == StateFault::padding);
    CHECK(fault<Nested> == StateFault::padding);
    CHECK(fault<Double> == StateFault::floating_point);
    CHECK(fault<LongDouble> == StateFault::long_double);
    CHECK(fault<Char> == StateFault::plain_char);
    CHECK(fault<Letter> == StateFault::plain_char);
    CHECK(fault<Pointer> == StateFault::pointer);
    CHECK(fault<Reference> == StateFault::reference);
    CHECK(fault<Virtual> == StateFault::virtual_function);
    CHECK(fault<StdMap> == StateFault::std_container);
    CHECK(fault<StdString> == StateFault::std_container);
    CHECK(fault<Unique> == StateFault::opaque_class);
    CHECK(fault<Derived> == StateFault::base_class);
    CHECK(fault<Union> == StateFault::union_type);
    CHECK(fault<TooWide> == StateFault::too_many_fields);
    CHECK(fault<Aligned> == StateFault::alignment);
  }

  TEST_CASE("a layout digest changes with sizes, kinds, order and depth, and is the same with every compiler") {
    struct Base {
      std::uint32_t a;
      std::int32_t b;
    };
    struct Renamed {
      std::uint32_t x;
      std::int32_t y;
    };
    struct Swapped {
      std::int32_t a;
      std::uint32_t b;
    };
    struct Joined {
      std::uint64_t a;
    };
    struct Wrapped {
      Base a;
    };
    constexpr std::uint64_t base = lockstep::layout_digest<Base>();
    CHECK(base == lockstep::layout_digest<Renamed>());
    CHECK(base != lockstep::layout_digest<Swapped>());
    CHECK(base != lockstep::layout_digest<Joined>());
    CHECK(base != lockstep::layout_digest<Wrapped>());
    CHECK(lockstep::layout_digest<Arrays>() == 11223204341867316224ULL);
  }
}
