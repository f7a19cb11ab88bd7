// The small matrix products of Winograd's convolution F(m x m, 3 x 3), m = 2 or 4, on squares of channel vectors.
#pragma once

#include <cstdint>

namespace stoker::cpu {

// With a = m + 2, and each applied from both sides (T x T'):
enum class WinogradTransform : std::uint8_t {
  input,        // B': a x a pixels to a x a
  output,       // A': a x a to m x m pixels
  output_grad,  // A: m x m pixels to a x a
  weight,       // G: 3 x 3 taps to a x a
  weight_grad,  // G': a x a to 3 x 3 taps
};

// in[i] and out[i] point to the squares' elements, row by row, each `count` floats (a multiple of 16).
void winograd_transform(WinogradTransform transform, std::int64_t m, const float* const* in, float* const* out,
                        std::int64_t count);

}  // namespace stoker::cpu
