// Divisions that round up, of numbers that are not negative.
#pragma once

#include <cstdint>

namespace stoker {

[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
// The multiple of `unit` at or above `value`.
[[nodiscard]] constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return ceil_div(value, unit) * unit;
}

}  // namespace stoker
