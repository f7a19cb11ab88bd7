#include "backends/cpu/kernels/pooling_rows.h"

#include <limits>

#include "backends/cpu/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/pooling_rows.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "backends/cpu/kernels/simd_channels-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace stoker::cpu::HWY_NAMESPACE {

void MaxRun(const PixelRun& run, int taps, const float* const* x, const std::uint8_t* number, float* out,
            std::uint8_t* index) {
  for_channels(run.channels, [&](auto d, std::int64_t c) HWY_ATTR {
    const hn::RebindToSigned<decltype(d)> whole;
    const hn::Rebind<std::uint8_t, decltype(d)> bytes;
    for (std::int64_t j = 0; j < run.count; ++j) {
      const std::int64_t at = j * run.x_step + c;
      auto best = hn::Set(d, -std::numeric_limits<float>::infinity());
      auto position = hn::Set(d, taps > 0 ? static_cast<float>(number[0]) : 0.0F);
      for (int t = 0; t < taps; ++t) {
        const auto value = hn::LoadU(d, x[t] + at);
        const auto better = hn::Or(hn::Gt(value, best), hn::AndNot(hn::IsNaN(best), hn::IsNaN(value)));
        best = hn::IfThenElse(better, value, best);
        position = hn::IfThenElse(better, hn::Set(d, static_cast<float>(number[t])), position);
      }
      hn::StoreU(best, d, out + j * run.out_step + c);
      hn::StoreU(hn::DemoteTo(bytes, hn::ConvertTo(whole, position)), bytes, index + j * run.out_step + c);
    }
  });
}

void MaxGradRun(const PixelRun& run, int taps, const float* const* dy, const std::uint8_t* const* index,
                const std::uint8_t* number, float* out) {
  for_channels(run.channels, [&](auto d, std::int64_t c) HWY_ATTR {
    const hn::RebindToSigned<decltype(d)> whole;
    const hn::Rebind<std::uint8_t, decltype(d)> bytes;
    for (std::int64_t j = 0; j < run.count; ++j) {
      const std::int64_t at = j * run.x_step + c;
      auto sum = hn::Zero(d);
      for (int t = 0; t < taps; ++t) {
        const auto position = hn::PromoteTo(whole, hn::LoadU(bytes, index[t] + at));
        const auto taken = hn::Eq(position, hn::Set(whole, number[t]));
        sum = hn::Add(sum, hn::IfThenElseZero(hn::RebindMask(d, taken), hn::LoadU(d, dy[t] + at)));
      }
      hn::StoreU(sum, d, out + j * run.out_step + c);
    }
  });
}

void ScaledSumRun(const PixelRun& run, int taps, const float* const* x, const float* scale, float* out) {
  for_channels(run.channels, [&](auto d, std::int64_t c) HWY_ATTR {
    for (std::int64_t j = 0; j < run.count; ++j) {
      auto sum = hn::Zero(d);
      for (int t = 0; t < taps; ++t)
        sum = hn::MulAdd(hn::LoadU(d, x[t] + j * run.x_step + c), hn::Set(d, scale[t]), sum);
      hn::StoreU(sum, d, out + j * run.out_step + c);
    }
  });
}

}  // namespace stoker::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::cpu {

HWY_EXPORT(MaxRun);
HWY_EXPORT(MaxGradRun);
HWY_EXPORT(ScaledSumRun);

void max_pool_run(const PixelRun& run, int taps, const float* const* x, const std::uint8_t* number, float* out,
                  std::uint8_t* index) {
  HWY_DYNAMIC_DISPATCH(MaxRun)(run, taps, x, number, out, index);
}

void max_pool_grad_run(const PixelRun& run, int taps, const float* const* dy, const std::uint8_t* const* index,
                       const std::uint8_t* number, float* out) {
  HWY_DYNAMIC_DISPATCH(MaxGradRun)(run, taps, dy, index, number, out);
}

void scaled_sum_run(const PixelRun& run, int taps, const float* const* x, const float* scale, float* out) {
  HWY_DYNAMIC_DISPATCH(ScaledSumRun)(run, taps, x, scale, out);
}

}  // namespace stoker::cpu
#endif
