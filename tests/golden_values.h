// The inputs and initial weights of the golden runs, by the formula in tools/goldens/make_goldens.py.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace stoker::test {

// `count` values uniform in [-bound, bound), in PyTorch's layout, for the tensor called `name`.
[[nodiscard]] inline std::vector<float> golden_values(std::string_view name, std::int64_t count, float bound) {
  std::uint32_t seed = 0x811C9DC5U;  // FNV-1a
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x01000193U;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint32_t x = seed + static_cast<std::uint32_t>(i);
    x ^= x >> 16;
    x *= 0x7FEB352DU;
    x ^= x >> 15;
    x *= 0x846CA68BU;
    x ^= x >> 16;
    values[i] = (static_cast<float>(x >> 8) * 0x1p-23F - 1.0F) * bound;
  }
  return values;
}

}  // namespace stoker::test
