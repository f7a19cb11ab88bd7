// The SIMD part of pooling: runs of pixels from any taps, vectors over channels.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/depthwise_rows.h"

namespace stoker::cpu {

// out = the largest of the taps, NaN before all; index = `number` of the first that is it.
void max_pool_run(const PixelRun& run, int taps, const float* const* x, const std::uint8_t* number, float* out,
                  std::uint8_t* index);

// out = the sum of those dy[t] whose index[t] is `number` of t. x_step counts elements of both.
void max_pool_grad_run(const PixelRun& run, int taps, const float* const* dy, const std::uint8_t* const* index,
                       const std::uint8_t* number, float* out);

// out = sum over taps of x[t] * scale[t].
void scaled_sum_run(const PixelRun& run, int taps, const float* const* x, const float* scale, float* out);

}  // namespace stoker::cpu
