// Winograd's transforms with Highway, vectors along the channels. Points 0, 1, -1 (and 2, -2 for m = 4) and infinity,
// as in Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks".
#include "backends/cpu/kernels/winograd_transform.h"

#include <cstddef>

#include "backends/cpu/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/winograd_transform.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;

HWY_INLINE V load(const float* p) { return hn::LoadU(D(), p); }
HWY_INLINE void store(V v, float* p) { hn::StoreU(v, D(), p); }
HWY_INLINE V constant(float x) { return hn::Set(D(), x); }
// a * x + y and y - a * x for a constant a.
HWY_INLINE V plus(float a, V x, V y) { return hn::MulAdd(constant(a), x, y); }
HWY_INLINE V minus(float a, V x, V y) { return hn::NegMulAdd(constant(a), x, y); }

// Each struct is one matrix, applied to a line of kIn vectors.
struct Input2 {
  static constexpr int kIn = 4, kOut = 4;
  static HWY_INLINE void line(const float* const* in, float* const* out) {
    const V x0 = load(in[0]), x1 = load(in[1]), x2 = load(in[2]), x3 = load(in[3]);
    store(hn::Sub(x0, x2), out[0]);
    store(hn::Add(x1, x2), out[1]);
    store(hn::Sub(x2, x1), out[2]);
    store(hn::Sub(x1, x3), out[3]);
  }
};

struct Output2 {
  static constexpr int kIn = 4, kOut = 2;
  static HWY_INLINE void line(const float* const* in, float* const* out) {
    const V x0 = load(in[0]), x1 = load(in[1]), x2 = load(in[2]), x3 = load(in[3]);
    store(hn::Add(x0, hn::Add(x1, x2)), out[0]);
    store(hn::Sub(hn::Sub(x1, x2), x3), out[1]);
  }
};

struct OutputGrad2 {
  static constexpr int kIn = 2, kOut = 4;
  static HWY_INLINE void line(const float* const* in, float* const* out) {
    const V x0 = load(in[0]), x1 = load(in[1]);
    store(x0, out[0]);
    store(hn::Add(x0, x1), out[1]);
    store(hn::Sub(x0, x1), out[2]);
    store(hn::Neg(x1), out[3]);
  }
};

struct Weight2 {
  static constexpr int kIn = 3, kOut = 4;
  static HWY_INLINE void line(const float* const* in, float* const* out) {
    const V x0 = load(in[0]), x1 = load(in[1]), x2 = load(in[2]);
    const V ends = hn::Mul(constant(0.5F), hn::Add(x0, x2));
    store(x0, out[0]);
    store(plus(0.5F, x1, ends), out[1]);
    store(minus(0.5F, x1, ends), out[2]);
    store(x2, out[3]);
  }
};

struct WeightGrad2 {
  static constexpr int kIn = 4, kOut = 3;
  static HWY_INLINE void line(const float* const* in, float* const* out) {
    const V x0 = load(in[0]), x1 = load(in[1]), x2 = load(in[2]), x3 = load(in[3]);
    const V sum = hn::Add(x1, x2);
    store(plus(0.5F, sum, x0), out[0]);
    store(hn::Mul(constant(0.5F), hn::Sub(x1, x2)), out[1]);
    store(plus(0.5F, sum, x3), out[2]);
  }
};

struct Input4 {
  static constexpr int kIn = 6, kOut = 6;
  static HWY_INLINE void line(const float* const* in, float* const* out) {
    const V x0 = load(in[0]), x1 = load(in[1]), x2 = load(in[2]);
    const V x3 = load(in[3]), x4 = load(in[4]), x5 = load(in[5]);
    const V even = minus(4.0F, x2, x4);                       // x4 - 4 x2
    const V odd = minus(4.0F, x1, x3);                        // x3 - 4 x1
    const V even2 = hn::Sub(x4, x2);                          // x4 - x2
    const V odd2 = hn::Mul(constant(2.0F), hn::Sub(x3, x1));  // 2 (x3 - x1)
    store(plus(4.0F, x0, minus(5.0F, x2, x4)), out[0]);
    store(hn::Add(even, odd), out[1]);
    store(hn::Sub(even, odd), out[2]);
    store(hn::Add(even2, odd2), out[3]);
    store(hn::Sub(even2, odd2), out[4]);
    store(plus(4.0F, x1, minus(5.0F, x3, x5)), out[5]);
  }
};

struct Output4 {
  static constexpr int kIn = 6, kOut = 4;
  static HWY_INLINE void line(const float* const* in, float* const* out) {
    const V x0 = load(in[0]), x1 = load(in[1]), x2 = load(in[2]);
    const V x3 = load(in[3]), x4 = load(in[4]), x5 = load(in[5]);
    const V sum = hn::Add(x1, x2);
    const V difference = hn::Sub(x1, x2);
    const V sum2 = hn::Add(x3, x4);
    const V difference2 = hn::Sub(x3, x4);
    store(hn::Add(x0, hn::Add(sum, sum2)), out[0]);
    store(plus(2.0F, difference2, difference), out[1]);
    store(plus(4.0F, sum2, sum), out[2]);
    store(plus(8.0F, difference2, hn::Add(difference, x5)), out[3]);
  }
};

struct OutputGrad4 {
  static constexpr int kIn = 4, kOut = 6;
  static HWY_INLINE void line(const float* const* in, float* const* out) {
    const V x0 = load(in[0]), x1 = load(in[1]), x2 = load(in[2]), x3 = load(in[3]);
    const V even = hn::Add(x0, x2);
    const V odd = hn::Add(x1, x3);
    const V even2 = plus(4.0F, x2, x0);
    const V odd2 = plus(8.0F, x3, hn::Add(x1, x1));
    store(x0, out[0]);
    store(hn::Add(even, odd), out[1]);
    store(hn::Sub(even, odd), out[2]);
    store(hn::Add(even2, odd2), out[3]);
    store(hn::Sub(even2, odd2), out[4]);
    store(x3, out[5]);
  }
};

struct Weight4 {
  static constexpr int kIn = 3, kOut = 6;
  static HWY_INLINE void line(const float* const* in, float* const* out) {
    const V x0 = load(in[0]), x1 = load(in[1]), x2 = load(in[2]);
    const V ends = hn::Mul(constant(-1.0F / 6), hn::Add(x0, x2));
    const V ends2 = plus(1.0F / 24, x0, hn::Mul(constant(1.0F / 6), x2));
    store(hn::Mul(constant(0.25F), x0), out[0]);
    store(minus(1.0F / 6, x1, ends), out[1]);
    store(plus(1.0F / 6, x1, ends), out[2]);
    store(plus(1.0F / 12, x1, ends2), out[3]);
    store(minus(1.0F / 12, x1, ends2), out[4]);
    store(x2, out[5]);
  }
};

struct WeightGrad4 {
  static constexpr int kIn = 6, kOut = 3;
  static HWY_INLINE void line(const float* const* in, float* const* out) {
    const V x0 = load(in[0]), x1 = load(in[1]), x2 = load(in[2]);
    const V x3 = load(in[3]), x4 = load(in[4]), x5 = load(in[5]);
    const V sum = hn::Add(x1, x2);
    const V sum2 = hn::Add(x3, x4);
    const V inner = hn::Mul(constant(-1.0F / 6), sum);
    store(plus(0.25F, x0, plus(1.0F / 24, sum2, inner)), out[0]);
    store(plus(1.0F / 12, hn::Sub(x3, x4), hn::Mul(constant(1.0F / 6), hn::Sub(x2, x1))), out[1]);
    store(plus(1.0F / 6, sum2, hn::Add(inner, x5)), out[2]);
  }
};

// Columns first, then rows, by way of a buffer in L1.
template <typename Matrix>
HWY_NOINLINE void square(const float* const* in, float* const* out, std::int64_t count) {
  constexpr int kIn = Matrix::kIn;
  constexpr int kOut = Matrix::kOut;
  HWY_ALIGN float between[kOut * kIn * 16];
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  const float* from[kIn];
  float* to[kOut];
  for (std::int64_t c = 0; c < count; c += lanes) {
    for (int j = 0; j < kIn; ++j) {
      for (int i = 0; i < kIn; ++i) from[i] = in[i * kIn + j] + c;
      for (int i = 0; i < kOut; ++i) to[i] = between + (i * kIn + j) * 16;
      Matrix::line(from, to);
    }
    for (int i = 0; i < kOut; ++i) {
      for (int j = 0; j < kIn; ++j) from[j] = between + (i * kIn + j) * 16;
      for (int j = 0; j < kOut; ++j) to[j] = out[i * kOut + j] + c;
      Matrix::line(from, to);
    }
  }
}

void transform_kernel(WinogradTransform transform, std::int64_t m, const float* const* in, float* const* out,
                      std::int64_t count) {
  const bool two = m == 2;
  switch (transform) {
    case WinogradTransform::input: return two ? square<Input2>(in, out, count) : square<Input4>(in, out, count);
    case WinogradTransform::output: return two ? square<Output2>(in, out, count) : square<Output4>(in, out, count);
    case WinogradTransform::output_grad:
      return two ? square<OutputGrad2>(in, out, count) : square<OutputGrad4>(in, out, count);
    case WinogradTransform::weight: return two ? square<Weight2>(in, out, count) : square<Weight4>(in, out, count);
    case WinogradTransform::weight_grad:
      return two ? square<WeightGrad2>(in, out, count) : square<WeightGrad4>(in, out, count);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace stoker::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::cpu {
namespace {
HWY_EXPORT(transform_kernel);
}  // namespace

void winograd_transform(WinogradTransform transform, std::int64_t m, const float* const* in, float* const* out,
                        std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(transform_kernel)(transform, m, in, out, count);
}

}  // namespace stoker::cpu
#endif
