#include "backends/cpu/kernels/softmax_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/softmax_rows.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "backends/cpu/kernels/simd_channels-inl.h"
#include "backends/cpu/kernels/simd_math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace stoker::cpu::HWY_NAMESPACE {

// The largest value; NaN if there is one.
HWY_INLINE float row_max(const float* x, std::int64_t n) {
  float best = -std::numeric_limits<float>::infinity();
  for_channels(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto value = hn::LoadU(d, x + i);
    const float most = hn::GetLane(hn::MaxOfLanes(d, value));
    best = best < most ? most : best;
    if (!hn::AllFalse(d, hn::IsNaN(value))) best = std::numeric_limits<float>::quiet_NaN();
  });
  return best;
}

// y = exp(x - shift); returns the sum, which is at least 1 and short enough for fp32 in blocks.
HWY_INLINE double exp_row(const float* x, std::int64_t n, float shift, float* y) {
  double sum = 0.0;
  for_channels(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto value = exp_of(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, shift)));
    hn::StoreU(value, d, y + i);
    sum += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, value)));
  });
  return sum;
}

// y = y * scale + offset.
HWY_INLINE void scale_row(float* y, std::int64_t n, float scale, float offset) {
  for_channels(n, [&](auto d, std::int64_t i) HWY_ATTR {
    hn::StoreU(hn::MulAdd(hn::LoadU(d, y + i), hn::Set(d, scale), hn::Set(d, offset)), d, y + i);
  });
}

void Softmax(const float* x, std::int64_t n, float* y) {
  const double sum = exp_row(x, n, row_max(x, n), y);
  scale_row(y, n, static_cast<float>(1.0 / sum), 0.0F);
}

void LogSoftmax(const float* x, std::int64_t n, float* y) {
  const float shift = row_max(x, n);
  double sum = 0.0;
  for_channels(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto value = exp_of(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, shift)));
    sum += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, value)));
  });
  const auto log_sum = static_cast<float>(std::log(sum));
  for_channels(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto centred = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, shift));
    hn::StoreU(hn::Sub(centred, hn::Set(d, log_sum)), d, y + i);
  });
}

// loss = log sum exp(x - max) + max - (1 - s) x[label] - s mean(x).
float CrossEntropy(const float* x, std::int64_t n, std::int64_t label, float smoothing, float* dx) {
  if (label < 0 || label >= n) {
    std::fill_n(dx, n, std::numeric_limits<float>::quiet_NaN());
    return std::numeric_limits<float>::quiet_NaN();
  }
  const float shift = row_max(x, n);
  const double picked = static_cast<double>(x[label]) - static_cast<double>(shift);
  double mean = 0.0;
  if (smoothing != 0.0F) {
    for (std::int64_t i = 0; i < n; ++i) mean += static_cast<double>(x[i]) - static_cast<double>(shift);
    mean /= static_cast<double>(n);
  }
  const double sum = exp_row(x, n, shift, dx);
  scale_row(dx, n, static_cast<float>(1.0 / sum), -smoothing / static_cast<float>(n));
  dx[label] -= 1.0F - smoothing;
  const auto part = static_cast<double>(smoothing);
  return static_cast<float>(std::log(sum) - (1.0 - part) * picked - part * mean);
}

}  // namespace stoker::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::cpu {

HWY_EXPORT(Softmax);
HWY_EXPORT(LogSoftmax);
HWY_EXPORT(CrossEntropy);

void softmax_row(const float* x, std::int64_t n, float* y) { HWY_DYNAMIC_DISPATCH(Softmax)(x, n, y); }
void log_softmax_row(const float* x, std::int64_t n, float* y) { HWY_DYNAMIC_DISPATCH(LogSoftmax)(x, n, y); }

float cross_entropy_row(const float* x, std::int64_t n, std::int64_t label, float smoothing, float* dx) {
  return HWY_DYNAMIC_DISPATCH(CrossEntropy)(x, n, label, smoothing, dx);
}

}  // namespace stoker::cpu
#endif
