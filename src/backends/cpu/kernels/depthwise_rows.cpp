#include "backends/cpu/kernels/depthwise_rows.h"

#include "backends/cpu/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/depthwise_rows.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "backends/cpu/kernels/simd_channels-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace stoker::cpu::HWY_NAMESPACE {

void Run(const PixelRun& run, int taps, const float* const* x, const float* const* w, float* out) {
  for_channels(run.channels, [&](auto d, std::int64_t c) HWY_ATTR {
    for (std::int64_t j = 0; j < run.count; ++j) {
      auto sum = hn::Zero(d);
      const std::int64_t at = j * run.x_step + c;
      for (int t = 0; t < taps; ++t) sum = hn::MulAdd(hn::LoadU(d, x[t] + at), hn::LoadU(d, w[t] + c), sum);
      hn::StoreU(sum, d, out + j * run.out_step + c);
    }
  });
}

// Adds one filter row's share to four neighbouring pixels; each input is loaded once. kStride 1 reads 6 columns, 2
// reads 9.
template <int kStride, class D, class V = hn::Vec<D>>
HWY_INLINE void add_row(D d, const float* x, std::int64_t step, V w0, V w1, V w2, V& s0, V& s1, V& s2, V& s3) {
  const auto load = [&](int column) HWY_ATTR { return hn::LoadU(d, x + column * step); };
  if constexpr (kStride == 1) {
    const V x0 = load(0);
    const V x1 = load(1);
    const V x2 = load(2);
    const V x3 = load(3);
    const V x4 = load(4);
    const V x5 = load(5);
    s0 = hn::MulAdd(x2, w2, hn::MulAdd(x1, w1, hn::MulAdd(x0, w0, s0)));
    s1 = hn::MulAdd(x3, w2, hn::MulAdd(x2, w1, hn::MulAdd(x1, w0, s1)));
    s2 = hn::MulAdd(x4, w2, hn::MulAdd(x3, w1, hn::MulAdd(x2, w0, s2)));
    s3 = hn::MulAdd(x5, w2, hn::MulAdd(x4, w1, hn::MulAdd(x3, w0, s3)));
  } else {
    const V x2 = load(2);
    const V x4 = load(4);
    const V x6 = load(6);
    s0 = hn::MulAdd(x2, w2, hn::MulAdd(load(1), w1, hn::MulAdd(load(0), w0, s0)));
    s1 = hn::MulAdd(x4, w2, hn::MulAdd(load(3), w1, hn::MulAdd(x2, w0, s1)));
    s2 = hn::MulAdd(x6, w2, hn::MulAdd(load(5), w1, hn::MulAdd(x4, w0, s2)));
    s3 = hn::MulAdd(load(8), w2, hn::MulAdd(load(7), w1, hn::MulAdd(x6, w0, s3)));
  }
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V dot_row(D d, const float* x, std::int64_t step, V w0, V w1, V w2, V sum) {
  sum = hn::MulAdd(hn::LoadU(d, x), w0, sum);
  sum = hn::MulAdd(hn::LoadU(d, x + step), w1, sum);
  return hn::MulAdd(hn::LoadU(d, x + 2 * step), w2, sum);
}

template <int kStride, class D>
HWY_INLINE void run_at(D d, const std::array<const float*, 3>& x, const std::array<const float*, 9>& w,
                       std::int64_t channels, std::int64_t count, std::int64_t c, float* out) {
  const auto w0 = hn::LoadU(d, w[0] + c);
  const auto w1 = hn::LoadU(d, w[1] + c);
  const auto w2 = hn::LoadU(d, w[2] + c);
  const auto w3 = hn::LoadU(d, w[3] + c);
  const auto w4 = hn::LoadU(d, w[4] + c);
  const auto w5 = hn::LoadU(d, w[5] + c);
  const auto w6 = hn::LoadU(d, w[6] + c);
  const auto w7 = hn::LoadU(d, w[7] + c);
  const auto w8 = hn::LoadU(d, w[8] + c);
  std::int64_t j = 0;
  for (; j + 4 <= count; j += 4) {
    const std::int64_t at = j * kStride * channels + c;
    auto s0 = hn::Zero(d);
    auto s1 = s0;
    auto s2 = s0;
    auto s3 = s0;
    add_row<kStride>(d, x[0] + at, channels, w0, w1, w2, s0, s1, s2, s3);
    add_row<kStride>(d, x[1] + at, channels, w3, w4, w5, s0, s1, s2, s3);
    add_row<kStride>(d, x[2] + at, channels, w6, w7, w8, s0, s1, s2, s3);
    float* to = out + j * channels + c;
    hn::StoreU(s0, d, to);
    hn::StoreU(s1, d, to + channels);
    hn::StoreU(s2, d, to + 2 * channels);
    hn::StoreU(s3, d, to + 3 * channels);
  }
  for (; j < count; ++j) {
    const std::int64_t at = j * kStride * channels + c;
    auto sum = dot_row(d, x[0] + at, channels, w0, w1, w2, hn::Zero(d));
    sum = dot_row(d, x[1] + at, channels, w3, w4, w5, sum);
    hn::StoreU(dot_row(d, x[2] + at, channels, w6, w7, w8, sum), d, out + j * channels + c);
  }
}

void Run3x3(int stride, const std::array<const float*, 3>& x, const std::array<const float*, 9>& w,
            std::int64_t channels, std::int64_t count, float* out) {
  for_channels(channels, [&](auto d, std::int64_t c) HWY_ATTR {
    if (stride == 1) {
      run_at<1>(d, x, w, channels, count, c, out);
    } else {
      run_at<2>(d, x, w, channels, count, c, out);
    }
  });
}

void GradRun(const PixelRun& run, int taps, const float* const* x, const float* dy, float* const* dw) {
  for_channels(run.channels, [&](auto d, std::int64_t c) HWY_ATTR {
    for (int t = 0; t < taps; ++t) {
      auto sum = hn::LoadU(d, dw[t] + c);
      for (std::int64_t j = 0; j < run.count; ++j)
        sum = hn::MulAdd(hn::LoadU(d, x[t] + j * run.x_step + c), hn::LoadU(d, dy + j * run.out_step + c), sum);
      hn::StoreU(sum, d, dw[t] + c);
    }
  });
}

// One filter row's three gradients from two neighbouring pixels.
template <int kStride, class D, class V = hn::Vec<D>>
HWY_INLINE void grad_row(D d, const float* x, std::int64_t step, V g0, V g1, V& s0, V& s1, V& s2) {
  const auto load = [&](int column) HWY_ATTR { return hn::LoadU(d, x + column * step); };
  const V x0 = load(0);
  const V x1 = load(1);
  const V x2 = load(2);
  const V x3 = load(3);
  s0 = hn::MulAdd(kStride == 1 ? x1 : x2, g1, hn::MulAdd(x0, g0, s0));
  s1 = hn::MulAdd(kStride == 1 ? x2 : x3, g1, hn::MulAdd(x1, g0, s1));
  s2 = hn::MulAdd(kStride == 1 ? x3 : load(4), g1, hn::MulAdd(x2, g0, s2));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void grad_row_once(D d, const float* x, std::int64_t step, V g, V& s0, V& s1, V& s2) {
  s0 = hn::MulAdd(hn::LoadU(d, x), g, s0);
  s1 = hn::MulAdd(hn::LoadU(d, x + step), g, s1);
  s2 = hn::MulAdd(hn::LoadU(d, x + 2 * step), g, s2);
}

template <class D>
HWY_INLINE void add_to(D d, float* to, hn::Vec<D> value) {
  hn::StoreU(hn::Add(hn::LoadU(d, to), value), d, to);
}

template <int kStride, class D>
HWY_INLINE void grad_run_at(D d, const std::array<const float*, 3>& x, const float* dy, std::int64_t channels,
                            std::int64_t count, std::int64_t c, float* dw) {
  auto s0 = hn::Zero(d);
  auto s1 = s0;
  auto s2 = s0;
  auto s3 = s0;
  auto s4 = s0;
  auto s5 = s0;
  auto s6 = s0;
  auto s7 = s0;
  auto s8 = s0;
  std::int64_t j = 0;
  for (; j + 2 <= count; j += 2) {
    const std::int64_t at = j * kStride * channels + c;
    const auto g0 = hn::LoadU(d, dy + j * channels + c);
    const auto g1 = hn::LoadU(d, dy + (j + 1) * channels + c);
    grad_row<kStride>(d, x[0] + at, channels, g0, g1, s0, s1, s2);
    grad_row<kStride>(d, x[1] + at, channels, g0, g1, s3, s4, s5);
    grad_row<kStride>(d, x[2] + at, channels, g0, g1, s6, s7, s8);
  }
  if (j < count) {
    const std::int64_t at = j * kStride * channels + c;
    const auto g = hn::LoadU(d, dy + j * channels + c);
    grad_row_once(d, x[0] + at, channels, g, s0, s1, s2);
    grad_row_once(d, x[1] + at, channels, g, s3, s4, s5);
    grad_row_once(d, x[2] + at, channels, g, s6, s7, s8);
  }
  add_to(d, dw + c, s0);
  add_to(d, dw + channels + c, s1);
  add_to(d, dw + 2 * channels + c, s2);
  add_to(d, dw + 3 * channels + c, s3);
  add_to(d, dw + 4 * channels + c, s4);
  add_to(d, dw + 5 * channels + c, s5);
  add_to(d, dw + 6 * channels + c, s6);
  add_to(d, dw + 7 * channels + c, s7);
  add_to(d, dw + 8 * channels + c, s8);
}

void GradRun3x3(int stride, const std::array<const float*, 3>& x, const float* dy, std::int64_t channels,
                std::int64_t count, float* dw) {
  for_channels(channels, [&](auto d, std::int64_t c) HWY_ATTR {
    if (stride == 1) {
      grad_run_at<1>(d, x, dy, channels, count, c, dw);
    } else {
      grad_run_at<2>(d, x, dy, channels, count, c, dw);
    }
  });
}

}  // namespace stoker::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::cpu {

HWY_EXPORT(Run);
HWY_EXPORT(Run3x3);
HWY_EXPORT(GradRun);
HWY_EXPORT(GradRun3x3);

void depthwise_run(const PixelRun& run, int taps, const float* const* x, const float* const* w, float* out) {
  HWY_DYNAMIC_DISPATCH(Run)(run, taps, x, w, out);
}

void depthwise_run_3x3(int stride, const std::array<const float*, 3>& x, const std::array<const float*, 9>& w,
                       std::int64_t channels, std::int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(Run3x3)(stride, x, w, channels, count, out);
}

void depthwise_grad_run(const PixelRun& run, int taps, const float* const* x, const float* dy, float* const* dw) {
  HWY_DYNAMIC_DISPATCH(GradRun)(run, taps, x, dy, dw);
}

void depthwise_grad_run_3x3(int stride, const std::array<const float*, 3>& x, const float* dy, std::int64_t channels,
                            std::int64_t count, float* dw) {
  HWY_DYNAMIC_DISPATCH(GradRun3x3)(stride, x, dy, channels, count, dw);
}

}  // namespace stoker::cpu
#endif
