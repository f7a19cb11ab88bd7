#include "backends/cpu/kernels/tile_steps.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "backends/cpu/kernels/simd.h"
#include "backends/cpu/kernels/tile.h"
#include "base/random.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/tile_steps.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "backends/cpu/kernels/simd_channels-inl.h"
#include "backends/cpu/kernels/simd_math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace stoker::cpu::HWY_NAMESPACE {

using Floats = hn::ScalableTag<float>;
using OneFloat = hn::CappedTag<float, 1>;

constexpr std::size_t kMostOperands = 5;

// Calls f(d, operand 0, operand 1, ...) with what `load` gives for each.
template <int kArity, class D, class F, class Load>
HWY_INLINE hn::Vec<D> call(D d, const F& f, const Load& load) {
  if constexpr (kArity == 1) {
    return f(d, load(0));
  } else if constexpr (kArity == 2) {
    return f(d, load(0), load(1));
  } else if constexpr (kArity == 3) {
    return f(d, load(0), load(1), load(2));
  } else if constexpr (kArity == 4) {
    return f(d, load(0), load(1), load(2), load(3));
  } else {
    return f(d, load(0), load(1), load(2), load(3), load(4));
  }
}

// One row of f; steps of 0 repeat a line.
template <int kArity, class F>
HWY_INLINE void map_row(const F& f, std::int64_t n, float* out, std::array<const float*, kMostOperands> in,
                        const std::array<std::int64_t, kMostOperands>& steps) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto move = [&](std::int64_t by) HWY_ATTR {
    for (std::size_t k = 0; k < kArity; ++k) in[k] += steps[k] * by;
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(call<kArity>(d, f, [&](std::size_t k) HWY_ATTR { return hn::LoadU(d, in[k]); }), d, out + i);
    move(lanes);
  }
#if HWY_MEM_OPS_MIGHT_FAULT
  const OneFloat one;
  for (; i < n; ++i) {
    hn::StoreU(call<kArity>(one, f, [&](std::size_t k) HWY_ATTR { return hn::LoadU(one, in[k]); }), one, out + i);
    move(1);
  }
#else
  if (i < n) {
    const auto mask = hn::FirstN(d, static_cast<std::size_t>(n - i));
    const auto load = [&](std::size_t k) HWY_ATTR { return hn::MaskedLoad(mask, d, in[k]); };
    hn::BlendedStore(call<kArity>(d, f, load), mask, d, out + i);
  }
#endif
}

// An instruction over the block, as one long row where no operand jumps between rows.
template <int kArity, class F>
HWY_INLINE void map(const TileBlock& block, const TileInst& inst, const F& f) {
  const std::array<std::int32_t, kMostOperands> numbers = {inst.a, inst.b, inst.c, inst.d, inst.e};
  std::array<const float*, kMostOperands> in{};
  std::array<std::int64_t, kMostOperands> steps{};
  std::array<std::int64_t, kMostOperands> strides{};
  const TileOperand& out = block.slots[inst.destination];
  bool flat = out.stride == block.cols;
  for (std::size_t i = 0; i < kArity; ++i) {
    const TileOperand& operand = block.slots[numbers[i]];
    in[i] = operand.data;
    steps[i] = operand.step;
    strides[i] = operand.stride;
    flat = flat && (operand.step == 0 || operand.stride == block.cols);
  }
  const std::int64_t rows = flat ? 1 : block.rows;
  const std::int64_t cols = flat ? block.rows * block.cols : block.cols;
  for (std::int64_t row = 0; row < rows; ++row) {
    map_row<kArity>(f, cols, out.data + row * out.stride, in, steps);
    for (std::size_t i = 0; i < kArity; ++i) in[i] += strides[i];
  }
}

template <class D, class M>
HWY_INLINE hn::Vec<D> truth(D d, M mask) {
  return hn::IfThenElseZero(mask, hn::Set(d, 1.0F));
}

HWY_NOINLINE void power(const TileBlock& block, const TileInst& inst) {
  const TileOperand& x = block.slots[inst.a];
  const TileOperand& y = block.slots[inst.b];
  const TileOperand& out = block.slots[inst.destination];
  for (std::int64_t row = 0; row < block.rows; ++row) {
    for (std::int64_t col = 0; col < block.cols; ++col)
      out.data[row * out.stride + col] =
          std::pow(x.data[row * x.stride + col * x.step], y.data[row * y.stride + col * y.step]);
  }
}

// Philox for `count` elements from `element` on; see uniform_at().
HWY_NOINLINE void uniform_row(PhiloxKey key, std::uint32_t step, std::uint64_t element, std::int64_t count,
                              float* out) {
  while (count > 0) {
    const std::uint64_t block = element / 4;
    const auto words =
        philox4x32(key, {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), step, 0});
    for (std::uint64_t i = element % 4; i < 4 && count > 0; ++i, ++element, --count) *out++ = to_unit(words[i]);
  }
}

// Seed and step are whole numbers that a float may not hold: an integer scalar is read from memory again.
inline std::uint32_t whole_number(const TileBlock& block, std::int32_t slot) {
  if (slot < block.arg_count) {
    const TileArg& arg = block.args[slot];
    if (arg.dtype == DType::i32) return static_cast<std::uint32_t>(*reinterpret_cast<const std::int32_t*>(arg.data));
    if (arg.dtype == DType::i64) return static_cast<std::uint32_t>(*reinterpret_cast<const std::int64_t*>(arg.data));
  }
  return static_cast<std::uint32_t>(block.slots[slot].data[0]);
}

HWY_NOINLINE void uniform(const TileBlock& block, const TileInst& inst) {
  const TileOperand& out = block.slots[inst.destination];
  const PhiloxKey key{whole_number(block, inst.a), static_cast<std::uint32_t>(inst.imm)};
  const std::uint32_t step = whole_number(block, inst.b);
  for (std::int64_t row = 0; row < block.rows; ++row)
    uniform_row(key, step, block.element + static_cast<std::uint64_t>(row) * block.row_elements, block.cols,
                out.data + row * out.stride);
}

#define STOKER_UNARY(body)                                 \
  return map<1>(block, inst, [](auto d, auto a) HWY_ATTR { \
    static_cast<void>(d);                                  \
    return body;                                           \
  })
#define STOKER_BINARY(body)                                        \
  return map<2>(block, inst, [](auto d, auto a, auto b) HWY_ATTR { \
    static_cast<void>(d);                                          \
    return body;                                                   \
  })
#define STOKER_TERNARY(body)                                               \
  return map<3>(block, inst, [](auto d, auto a, auto b, auto c) HWY_ATTR { \
    static_cast<void>(d);                                                  \
    return body;                                                           \
  })

HWY_NOINLINE void run_function(const TileBlock& block, const TileInst& inst) {
  switch (inst.op) {
    case ExprOp::exp: STOKER_UNARY(exp_of(d, a));
    case ExprOp::expm1: STOKER_UNARY(expm1_of(d, a));
    case ExprOp::log: STOKER_UNARY(log_of(d, a));
    case ExprOp::sqrt: STOKER_UNARY(hn::Sqrt(a));
    case ExprOp::rsqrt: STOKER_UNARY(hn::Div(hn::Set(d, 1.0F), hn::Sqrt(a)));
    case ExprOp::tanh: STOKER_UNARY(hn::Tanh(d, a));
    case ExprOp::sigmoid: STOKER_UNARY(sigmoid_of(d, a));
    case ExprOp::erf: STOKER_UNARY(erf_of(d, a));
    case ExprOp::cos: STOKER_UNARY(hn::Cos(d, a));
    case ExprOp::floor: STOKER_UNARY(hn::Floor(a));
    case ExprOp::pow: return power(block, inst);
    case ExprOp::uniform: return uniform(block, inst);
    default: return;
  }
}

HWY_NOINLINE void run_logic(const TileBlock& block, const TileInst& inst) {
  switch (inst.op) {
    case ExprOp::eq: STOKER_BINARY(truth(d, hn::Eq(a, b)));
    case ExprOp::ne: STOKER_BINARY(truth(d, hn::Ne(a, b)));
    case ExprOp::lt: STOKER_BINARY(truth(d, hn::Lt(a, b)));
    case ExprOp::le: STOKER_BINARY(truth(d, hn::Le(a, b)));
    case ExprOp::gt: STOKER_BINARY(truth(d, hn::Gt(a, b)));
    case ExprOp::ge: STOKER_BINARY(truth(d, hn::Ge(a, b)));
    case ExprOp::logical_not: STOKER_UNARY(truth(d, hn::Eq(a, hn::Zero(d))));
    case ExprOp::logical_and: STOKER_BINARY(truth(d, hn::And(hn::Ne(a, hn::Zero(d)), hn::Ne(b, hn::Zero(d)))));
    case ExprOp::logical_or: STOKER_BINARY(truth(d, hn::Or(hn::Ne(a, hn::Zero(d)), hn::Ne(b, hn::Zero(d)))));
    default: return run_function(block, inst);
  }
}

constexpr int number(ExprOp op) { return static_cast<int>(op); }  // joined ones are no enumerators

template <class D, class V = hn::Vec<D>>
HWY_INLINE V clamp(D d, V x, float low, float high) {
  return min_bound(hn::Set(d, high), max_bound(hn::Set(d, low), x));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::Mask<D> inside(D d, V x, float low, float high) {
  return hn::And(hn::Gt(x, hn::Set(d, low)), hn::Le(x, hn::Set(d, high)));
}

HWY_NOINLINE void run_joined(const TileBlock& block, const TileInst& inst) {
  const float low = inst.imm;
  const float high = inst.imm2;
  switch (number(inst.op)) {
    case number(kTileClamp):
      return map<1>(block, inst, [=](auto d, auto a) HWY_ATTR { return clamp(d, a, low, high); });
    case number(kTileAffineClamp):
      return map<3>(block, inst,
                    [=](auto d, auto a, auto b, auto c) HWY_ATTR { return clamp(d, hn::MulAdd(a, b, c), low, high); });
    case number(kTileInside):
      return map<1>(block, inst, [=](auto d, auto a) HWY_ATTR { return truth(d, inside(d, a, low, high)); });
    case number(kTileGate):
      return map<2>(block, inst,
                    [=](auto d, auto a, auto b) HWY_ATTR { return hn::IfThenElseZero(inside(d, a, low, high), b); });
    case number(kTileAffineGate):
      return map<4>(block, inst, [=](auto d, auto a, auto b, auto c, auto e) HWY_ATTR {
        return hn::IfThenElseZero(inside(d, hn::MulAdd(a, b, c), low, high), e);
      });
    case number(kTileSelectGt):
      return map<4>(block, inst,
                    [](auto, auto a, auto b, auto c, auto e) HWY_ATTR { return hn::IfThenElse(hn::Gt(a, b), c, e); });
    case number(kTileMulAdd2):
      return map<5>(block, inst, [](auto, auto a, auto b, auto c, auto e, auto g) HWY_ATTR {
        return hn::MulAdd(a, b, hn::MulAdd(c, e, g));
      });
    default: return run_logic(block, inst);
  }
}

HWY_NOINLINE void run_step(const TileBlock& block, const TileInst& inst) {
  switch (number(inst.op)) {
    case number(ExprOp::neg): STOKER_UNARY(hn::Neg(a));
    case number(ExprOp::abs): STOKER_UNARY(hn::Abs(a));
    case number(ExprOp::add): STOKER_BINARY(hn::Add(a, b));
    case number(ExprOp::sub): STOKER_BINARY(hn::Sub(a, b));
    case number(ExprOp::mul): STOKER_BINARY(hn::Mul(a, b));
    case number(ExprOp::div): STOKER_BINARY(hn::Div(a, b));
    case number(ExprOp::minimum): STOKER_BINARY(min_nan(a, b));
    case number(ExprOp::maximum): STOKER_BINARY(max_nan(a, b));
    case number(ExprOp::select): STOKER_TERNARY(hn::IfThenElse(hn::Ne(a, hn::Zero(d)), b, c));
    case number(ExprOp::mul_add): STOKER_TERNARY(hn::MulAdd(a, b, c));
    case number(kTileCopy): STOKER_UNARY(a);
    default: return run_joined(block, inst);
  }
}

void RunSteps(const TileInst* steps, std::size_t count, const TileBlock& block) {
  for (std::size_t i = 0; i < count; ++i) run_step(block, steps[i]);
}

// Row r of the column is value(r); two chains, so that additions overlap.
template <class D, class Value>
HWY_INLINE hn::Vec<D> sum_rows(D d, std::int64_t rows, const Value& value) {
  auto even = hn::Zero(d);
  auto odd = hn::Zero(d);
  std::int64_t row = 0;
  for (; row + 2 <= rows; row += 2) {
    even = hn::Add(even, value(row));
    odd = hn::Add(odd, value(row + 1));
  }
  if (row < rows) even = hn::Add(even, value(row));
  return hn::Add(even, odd);
}

template <class D>
HWY_INLINE void sum_column(D d, const TileOperand& a, const TileOperand* b, std::int64_t rows, std::int64_t col,
                           float* sums, bool accumulate) {
  const float* x = a.data + col;
  auto sum = hn::Zero(d);
  if (b == nullptr) {
    sum = sum_rows(d, rows, [&](std::int64_t row) HWY_ATTR { return hn::LoadU(d, x + row * a.stride); });
  } else {
    const float* y = b->data + col;
    sum = sum_rows(d, rows, [&](std::int64_t row) HWY_ATTR {
      return hn::Mul(hn::LoadU(d, x + row * a.stride), hn::LoadU(d, y + row * b->stride));
    });
  }
  if (accumulate) sum = hn::Add(sum, hn::LoadU(d, sums + col));
  hn::StoreU(sum, d, sums + col);
}

void SumColumns(const TileOperand& a, const TileOperand* b, std::int64_t rows, std::int64_t cols, float* sums,
                bool accumulate) {
  for_channels(cols, [&](auto d, std::int64_t col) HWY_ATTR { sum_column(d, a, b, rows, col, sums, accumulate); });
}

template <typename T>
HWY_INLINE void load_as(const std::byte* src, std::int64_t stride, std::int64_t rows, std::int64_t cols, float* dst) {
  const T* from = reinterpret_cast<const T*>(src);
  for (std::int64_t row = 0; row < rows; ++row, from += stride, dst += cols) {
    for (std::int64_t col = 0; col < cols; ++col) dst[col] = static_cast<float>(from[col]);
  }
}

void LoadTile(DType dtype, const std::byte* src, std::int64_t stride, std::int64_t rows, std::int64_t cols,
              float* dst) {
  switch (dtype) {
    case DType::f32: return load_as<float>(src, stride, rows, cols, dst);
    case DType::i32: return load_as<std::int32_t>(src, stride, rows, cols, dst);
    case DType::i64: return load_as<std::int64_t>(src, stride, rows, cols, dst);
    case DType::u8:
    case DType::b8: return load_as<std::uint8_t>(src, stride, rows, cols, dst);
    case DType::f16: return;  // refused when the expression is bound
  }
}

// Towards zero; what the type cannot hold becomes its nearest value, NaN 0.
template <typename T>
HWY_INLINE T whole(float x, float low, float high) {
  return static_cast<T>(x != x ? 0.0F : std::min(std::max(x, low), high));
}

template <typename T, class F>
HWY_INLINE void store_as(const TileOperand& operand, std::int64_t rows, std::int64_t cols, std::byte* dst,
                         std::int64_t stride, const F& convert) {
  T* to = reinterpret_cast<T*>(dst);
  for (std::int64_t row = 0; row < rows; ++row, to += stride) {
    const float* from = operand.data + row * operand.stride;
    for (std::int64_t col = 0; col < cols; ++col) to[col] = convert(from[col * operand.step]);
  }
}

void StoreTile(DType dtype, const TileOperand& operand, std::int64_t rows, std::int64_t cols, std::byte* dst,
               std::int64_t stride) {
  switch (dtype) {
    case DType::f32: return store_as<float>(operand, rows, cols, dst, stride, [](float x) { return x; });
    case DType::i32:
      return store_as<std::int32_t>(operand, rows, cols, dst, stride,
                                    [](float x) { return whole<std::int32_t>(x, -0x1p31F, 0x1.fffffep30F); });
    case DType::i64:
      return store_as<std::int64_t>(operand, rows, cols, dst, stride,
                                    [](float x) { return whole<std::int64_t>(x, -0x1p63F, 0x1.fffffep62F); });
    case DType::u8:
      return store_as<std::uint8_t>(operand, rows, cols, dst, stride,
                                    [](float x) { return whole<std::uint8_t>(x, 0.0F, 255.0F); });
    case DType::b8:
      return store_as<std::uint8_t>(operand, rows, cols, dst, stride,
                                    [](float x) { return static_cast<std::uint8_t>(x != 0.0F ? 1 : 0); });
    case DType::f16: return;
  }
}

}  // namespace stoker::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::cpu {

HWY_EXPORT(RunSteps);
HWY_EXPORT(SumColumns);
HWY_EXPORT(LoadTile);
HWY_EXPORT(StoreTile);

void run_tile_steps(std::span<const TileInst> steps, const TileBlock& block) {
  HWY_DYNAMIC_DISPATCH(RunSteps)(steps.data(), steps.size(), block);
}

void sum_tile_columns(const TileOperand& a, const TileOperand* b, std::int64_t rows, std::int64_t cols, float* sums,
                      bool accumulate) {
  HWY_DYNAMIC_DISPATCH(SumColumns)(a, b, rows, cols, sums, accumulate);
}

void load_tile(DType dtype, const std::byte* src, std::int64_t stride, std::int64_t rows, std::int64_t cols,
               float* dst) {
  HWY_DYNAMIC_DISPATCH(LoadTile)(dtype, src, stride, rows, cols, dst);
}

void store_tile(DType dtype, const TileOperand& operand, std::int64_t rows, std::int64_t cols, std::byte* dst,
                std::int64_t stride) {
  HWY_DYNAMIC_DISPATCH(StoreTile)(dtype, operand, rows, cols, dst, stride);
}

float load_element(DType dtype, const std::byte* src) {
  float value = 0.0F;
  load_tile(dtype, src, 1, 1, 1, &value);
  return value;
}

}  // namespace stoker::cpu
#endif
