// Loops over channels by vectors. Included once a target, after highway.h.
#if defined(STOKER_SIMD_CHANNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_SIMD_CHANNELS_INL_H_
#undef STOKER_SIMD_CHANNELS_INL_H_
#else
#define STOKER_SIMD_CHANNELS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace stoker::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls body(d, c) for vectors of channels that cover them all, from the longest down to single floats: nets have
// channels in multiples of 8, few of the longest vector.
template <class Body>
HWY_INLINE void for_channels(std::int64_t channels, const Body& body) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) body(d, c);
#if HWY_TARGET == HWY_AVX3
  if (const hn::CappedTag<float, 8> half; c + 8 <= channels) {
    body(half, c);
    c += 8;
  }
#endif
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  if (const hn::CappedTag<float, 4> quarter; c + 4 <= channels) {
    body(quarter, c);
    c += 4;
  }
#endif
  for (const hn::CappedTag<float, 1> one; c < channels; ++c) body(one, c);
}

}  // namespace stoker::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
