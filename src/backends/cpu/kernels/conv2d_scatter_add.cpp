// Adding up the shares of a block of output pixels, with Highway.
#include <algorithm>

#include "backends/cpu/kernels/conv2d_scatter.h"
#include "backends/cpu/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/conv2d_scatter_add.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace stoker::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE void add_run(const float* from, std::int64_t count, float* to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::Add(hn::LoadU(d, to + i), hn::LoadU(d, from + i)), d, to + i);
  for (; i < count; ++i) to[i] += from[i];
}

// Neighbouring taps of a row are neighbours in the image too, unless the kernel is dilated.
void ScatterAdd(const ConvSizes& s, const ScatterBlock& shares, float* image) {
  const std::int64_t taps_at_once = s.dilation_w == 1 ? s.kw : 1;
  for (std::int64_t r = 0; r < shares.pixels; ++r) {
    const std::int64_t h0 = (shares.pixel + r) / s.ow * s.stride_h - s.pad_top;
    const std::int64_t w0 = (shares.pixel + r) % s.ow * s.stride_w - s.pad_left;
    const float* row = shares.block + r * shares.stride;
    for (std::int64_t k = 0; k < shares.kernel_rows; ++k) {
      const std::int64_t h = h0 + (shares.kh0 + k) * s.dilation_h;
      if (h < 0 || h >= s.h) continue;
      for (std::int64_t kw = 0; kw < s.kw; kw += taps_at_once) {
        const std::int64_t w = w0 + kw * s.dilation_w;
        const std::int64_t low = std::max<std::int64_t>(0, -w);
        const std::int64_t high = std::min(taps_at_once, s.w - w);
        if (low >= high) continue;
        add_run(row + (k * s.kw + kw + low) * s.c_in, (high - low) * s.c_in, image + (h * s.w + w + low) * s.c_in);
      }
    }
  }
}

}  // namespace stoker::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::cpu {

HWY_EXPORT(ScatterAdd);

void scatter_add(const ConvSizes& sizes, const ScatterBlock& shares, float* image) {
  HWY_DYNAMIC_DISPATCH(ScatterAdd)(sizes, shares, image);
}

}  // namespace stoker::cpu
#endif
