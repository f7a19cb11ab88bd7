#include "backends/cpu/kernels/reduction_stage.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "backends/cpu/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/reduction_stage.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "backends/cpu/kernels/simd_math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace stoker::cpu::HWY_NAMESPACE {

using Floats = hn::ScalableTag<float>;
using OneFloat = hn::CappedTag<float, 1>;

struct Sum {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Add(a, b);
  }
  static float scalar(float a, float b) { return a + b; }
  static constexpr float kStart = 0.0F;
};

struct Max {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return max_nan(a, b);
  }
  static float scalar(float a, float b) { return std::isnan(a) || a > b ? a : b; }
  static constexpr float kStart = -std::numeric_limits<float>::infinity();
};

// n contiguous floats, at most a block.
template <class Op>
HWY_INLINE float reduce_line(const Op& op, const float* x, std::int64_t n) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto a = hn::Set(d, Op::kStart);
  auto b = a;
  auto c = a;
  auto e = a;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = op(a, hn::LoadU(d, x + i));
    b = op(b, hn::LoadU(d, x + i + lanes));
    c = op(c, hn::LoadU(d, x + i + 2 * lanes));
    e = op(e, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a = op(a, hn::LoadU(d, x + i));
  float result = Op::kStart;
  if (n >= lanes) {
    HWY_ALIGN float last[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(op(op(a, b), op(c, e)), d, last);
    for (std::int64_t k = 0; k < lanes; ++k) result = Op::scalar(result, last[k]);
  }
  for (; i < n; ++i) result = Op::scalar(result, x[i]);
  return result;
}

template <class Op>
HWY_INLINE float reduce_long_line(const Op& op, const float* x, std::int64_t n) {
  if (n <= kReductionBlock) return reduce_line(op, x, n);
  double total = Op::kStart;
  for (std::int64_t i = 0; i < n; i += kReductionBlock) {
    const float part = reduce_line(op, x + i, std::min(kReductionBlock, n - i));
    if constexpr (std::is_same_v<Op, Sum>) {
      total += static_cast<double>(part);
    } else {
      total = Op::scalar(static_cast<float>(total), part);
    }
  }
  return static_cast<float>(total);
}

// One column vector over some rows, in two chains so that additions overlap.
template <class D, class Op>
HWY_INLINE hn::Vec<D> reduce_column(D d, const Op& op, const float* x, std::int64_t rows, std::int64_t stride) {
  auto a = hn::Set(d, Op::kStart);
  auto b = a;
  std::int64_t row = 0;
  for (; row + 2 <= rows; row += 2, x += 2 * stride) {
    a = op(a, hn::LoadU(d, x));
    b = op(b, hn::LoadU(d, x + stride));
  }
  if (row < rows) a = op(a, hn::LoadU(d, x));
  return op(a, b);
}

// rows x cols floats, contiguous, to cols: in groups of rows that stay in L1.
template <class Op>
HWY_INLINE void reduce_columns(const Op& op, const float* x, std::int64_t rows, std::int64_t cols, float* out) {
  const Floats d;
  const OneFloat one;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr std::int64_t kGroupFloats = 4096;
  const std::int64_t group = std::clamp<std::int64_t>(kGroupFloats / cols, 4, 64);
  std::fill_n(out, cols, Op::kStart);
  for (std::int64_t row = 0; row < rows; row += group) {
    const float* from = x + row * cols;
    const std::int64_t count = std::min(group, rows - row);
    std::int64_t col = 0;
    for (; col + lanes <= cols; col += lanes)
      hn::StoreU(op(hn::LoadU(d, out + col), reduce_column(d, op, from + col, count, cols)), d, out + col);
    for (; col < cols; ++col)
      hn::StoreU(op(hn::LoadU(one, out + col), reduce_column(one, op, from + col, count, cols)), one, out + col);
  }
}

template <class Op>
HWY_INLINE void reduce(const Op& op, const ReduceBlock& block, float* out) {
  for (std::int64_t o = 0; o < block.outer; ++o) {
    const float* x = block.data + o * block.outer_stride;
    if (block.inner == 1) {
      out[o] = reduce_long_line(op, x, block.reduced);
    } else {
      reduce_columns(op, x, block.reduced, block.inner, out + o * block.inner);
    }
  }
}

void Reduce(ReduceKind kind, const ReduceBlock& block, float* out) {
  if (kind == ReduceKind::sum) {
    reduce(Sum(), block, out);
  } else {
    reduce(Max(), block, out);
  }
}

}  // namespace stoker::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::cpu {

HWY_EXPORT(Reduce);

void reduce_block(ReduceKind kind, const ReduceBlock& block, float* out) {
  HWY_DYNAMIC_DISPATCH(Reduce)(kind, block, out);
}

void combine_partials(ReduceKind kind, float* partial, std::int64_t count, std::int64_t n) {
  for (std::int64_t step = 1; step < count; step *= 2) {
    for (std::int64_t i = 0; i + step < count; i += 2 * step) {
      float* to = partial + i * n;
      const float* from = partial + (i + step) * n;
      for (std::int64_t k = 0; k < n; ++k) {
        const bool keep = std::isnan(to[k]) || to[k] > from[k];
        to[k] = kind == ReduceKind::sum ? to[k] + from[k] : (keep ? to[k] : from[k]);
      }
    }
  }
}

}  // namespace stoker::cpu
#endif
