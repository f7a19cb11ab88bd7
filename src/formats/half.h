// The two 16-bit floats of model files, widened to f32 (exact).
#pragma once

#include <bit>
#include <cstdint>

namespace stoker {

[[nodiscard]] constexpr float float_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

[[nodiscard]] constexpr float float_from_f16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 0x1FU ? 0xFFU : exponent + 112;  // infinity and NaN, or rebias 15 to 127
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

}  // namespace stoker
