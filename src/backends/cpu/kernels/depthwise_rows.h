// The SIMD part of depthwise convolutions, vectors over channels: runs of pixels from any taps, and of 3x3 ones
// with the filter in registers.
#pragma once

#include <array>
#include <cstdint>

namespace stoker::cpu {

// A run of pixels: pixel j reads x[t] + j * x_step.
struct PixelRun {
  std::int64_t channels = 0;
  std::int64_t count = 0;
  std::int64_t x_step = 0;    // floats
  std::int64_t out_step = 0;  // floats
};

// out[c] = sum over taps of x[t][c] * w[t][c], for every pixel of the run.
void depthwise_run(const PixelRun& run, int taps, const float* const* x, const float* const* w, float* out);

// `count` neighbouring output pixels of a 3x3 filter, horizontal stride 1 or 2. x[k] stands at the first pixel's first
// tap in the row of filter row k; w[3 * kh + kw] are the filter's taps.
void depthwise_run_3x3(int stride, const std::array<const float*, 3>& x, const std::array<const float*, 9>& w,
                       std::int64_t channels, std::int64_t count, float* out);

// dw[t][c] += x[t][c] * dy[c], over every pixel of the run; out_step is dy's.
void depthwise_grad_run(const PixelRun& run, int taps, const float* const* x, const float* dy, float* const* dw);

// The same for a 3x3 filter: dw is [9][channels].
void depthwise_grad_run_3x3(int stride, const std::array<const float*, 3>& x, const float* dy, std::int64_t channels,
                            std::int64_t count, float* dw);

}  // namespace stoker::cpu
