// Micro-kernels of GEMM with Highway. The accumulators are named variables, not arrays, since SVE vectors have no size
// that the compiler knows; `if constexpr` drops those that a smaller tile does not need.
#include "backends/cpu/kernels/gemm.h"

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/gemm.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// The tile fills the register file: rows x vectors of accumulators, the vectors of B, and one of A.
#if HWY_TARGET == HWY_AVX3
constexpr int kRows = 14;
constexpr int kVectors = 2;
#elif HWY_ARCH_ARM_A64
constexpr int kRows = 8;
constexpr int kVectors = 3;
#else  // 16 registers
constexpr int kRows = 6;
constexpr int kVectors = 2;
#endif
constexpr int kMaxRows = 14;
// No target has wider vectors than 2048 bits.
constexpr int kMaxColumns = static_cast<int>(std::min<std::size_t>(hn::MaxLanes(D()), 64)) * kVectors;

struct TileArgs {
  const float* a;
  std::ptrdiff_t a_row, a_k;
  const float* b;
  std::ptrdiff_t b_k;
  std::ptrdiff_t k;
  float* c;
  std::ptrdiff_t c_row;
  bool accumulate;
};

// (row, the pointer that reaches it, its distance from there in rows): three rows share a pointer, so that the
// addresses of all rows fit into the few integer registers of x86.
#define STOKER_GEMM_ROWS(X) \
  X(0, a0, 0)               \
  X(1, a0, 1)               \
  X(2, a0, 2)               \
  X(3, a1, 0)               \
  X(4, a1, 1)               \
  X(5, a1, 2) X(6, a2, 0) X(7, a2, 1) X(8, a2, 2) X(9, a3, 0) X(10, a3, 1) X(11, a3, 2) X(12, a4, 0) X(13, a4, 1)

template <int kR, int kV>
HWY_NOINLINE void tile(const TileArgs& t) {
  const D d;
  const std::ptrdiff_t lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
#define STOKER_DECLARE(i, base, step) V c##i##_0 = hn::Zero(d), c##i##_1 = hn::Zero(d), c##i##_2 = hn::Zero(d);
  STOKER_GEMM_ROWS(STOKER_DECLARE)
#undef STOKER_DECLARE
  const std::ptrdiff_t row = t.a_row;
  const std::ptrdiff_t a_k = t.a_k;
  const std::ptrdiff_t b_k = t.b_k;
  const float* a0 = t.a;
  const float* a1 = a0 + 3 * row;
  const float* a2 = a0 + 6 * row;
  const float* a3 = a0 + 9 * row;
  const float* a4 = a0 + 12 * row;
  const float* b = t.b;
  for (std::ptrdiff_t k = t.k; k > 0; --k) {
    const V b0 = hn::LoadU(d, b);
    V b1 = b0;
    V b2 = b0;
    if constexpr (kV > 1) b1 = hn::LoadU(d, b + lanes);
    if constexpr (kV > 2) b2 = hn::LoadU(d, b + 2 * lanes);
    hwy::Prefetch(b + 8 * b_k);  // B streams from L2
    if constexpr (kV > 1) hwy::Prefetch(b + 8 * b_k + lanes);
    b += b_k;
#define STOKER_STEP(i, base, step)                                \
  if constexpr (kR > i) {                                         \
    const V a = hn::Set(d, base[step * row]);                     \
    c##i##_0 = hn::MulAdd(a, b0, c##i##_0);                       \
    if constexpr (kV > 1) c##i##_1 = hn::MulAdd(a, b1, c##i##_1); \
    if constexpr (kV > 2) c##i##_2 = hn::MulAdd(a, b2, c##i##_2); \
  }
    STOKER_GEMM_ROWS(STOKER_STEP)
#undef STOKER_STEP
    a0 += a_k;
    if constexpr (kR > 3) a1 += a_k;
    if constexpr (kR > 6) a2 += a_k;
    if constexpr (kR > 9) a3 += a_k;
    if constexpr (kR > 12) a4 += a_k;
  }
#define STOKER_PUT(v, p) hn::StoreU(t.accumulate ? hn::Add(hn::LoadU(d, p), v) : v, d, p)
#define STOKER_STORE(i, base, step)                            \
  if constexpr (kR > i) {                                      \
    float* c = t.c + i * t.c_row;                              \
    STOKER_PUT(c##i##_0, c);                                   \
    if constexpr (kV > 1) STOKER_PUT(c##i##_1, c + lanes);     \
    if constexpr (kV > 2) STOKER_PUT(c##i##_2, c + 2 * lanes); \
  }
  STOKER_GEMM_ROWS(STOKER_STORE)
#undef STOKER_STORE
#undef STOKER_PUT
}

using Tile = void (*)(const TileArgs&);

template <int kV>
Tile tile_of_rows(std::int64_t rows) {
  static_assert(kRows <= kMaxRows);
  static constexpr Tile kTiles[kMaxRows] = {
      tile<1, kV>,
      tile<2, kV>,
      tile<3, kV>,
      tile<4, kV>,
      tile<5, kV>,
      tile<6, kV>,
      tile<std::min(7, kRows), kV>,
      tile<std::min(8, kRows), kV>,
      tile<std::min(9, kRows), kV>,
      tile<std::min(10, kRows), kV>,
      tile<std::min(11, kRows), kV>,
      tile<std::min(12, kRows), kV>,
      tile<std::min(13, kRows), kV>,
      tile<std::min(14, kRows), kV>,
  };
  return kTiles[rows - 1];
}

Tile find_tile(std::int64_t rows, std::int64_t vectors) {
  if constexpr (kVectors > 2) {
    if (vectors == 3) return tile_of_rows<3>(rows);
  }
  return vectors == 2 ? tile_of_rows<2>(rows) : tile_of_rows<1>(rows);
}

// A tile whose columns do not fill its vectors goes through a buffer.
void partial_tile(Tile run, TileArgs args, std::int64_t rows, std::int64_t columns) {
  HWY_ALIGN float buffer[kMaxRows * kMaxColumns];
  float* c = args.c;
  const std::ptrdiff_t c_row = args.c_row;
  const bool accumulate = args.accumulate;
  args.c = buffer;
  args.c_row = kMaxColumns;
  args.accumulate = false;
  run(args);
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* from = buffer + r * kMaxColumns;
    float* to = c + r * c_row;
    if (accumulate) {
      for (std::int64_t j = 0; j < columns; ++j) to[j] += from[j];
    } else {
      for (std::int64_t j = 0; j < columns; ++j) to[j] = from[j];
    }
  }
}

void last_panel(const TileArgs& args, std::int64_t rows, std::int64_t columns) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  const std::int64_t vectors = (columns + lanes - 1) / lanes;
  const Tile run = find_tile(rows, vectors);
  if (columns == vectors * lanes) {
    run(args);
  } else {
    partial_tile(run, args, rows, columns);
  }
}

void block_kernel(const GemmBlock& g) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  const std::int64_t width = lanes * kVectors;
  // Rows are dealt out evenly: 32 of them as 11, 11 and 10, not as 14, 14 and 4.
  const std::int64_t tiles = (g.m + kRows - 1) / kRows;
  const std::int64_t low = g.m / tiles;
  const std::int64_t high_tiles = g.m % tiles;
  std::int64_t m = 0;
  for (std::int64_t t = 0; t < tiles; ++t) {
    const std::int64_t rows = low + (t < high_tiles ? 1 : 0);
    const Tile full = find_tile(rows, kVectors);
    TileArgs args{.a = g.a + m * g.a_row,
                  .a_row = g.a_row,
                  .a_k = g.a_k,
                  .b = g.b,
                  .b_k = g.b_k,
                  .k = g.k,
                  .c = g.c + m * g.c_row,
                  .c_row = g.c_row,
                  .accumulate = g.accumulate};
    std::int64_t n = 0;
    for (; n + width <= g.n; n += width) {
      full(args);
      args.b += g.b_panel;
      args.c += width;
    }
    if (n < g.n) last_panel(args, rows, g.n - n);
    m += rows;
  }
}

// dst[c][r] = src[r][c] for 4 x 4.
#if HWY_TARGET == HWY_SCALAR
void transpose_4x4(const float* src, std::ptrdiff_t src_stride, float* dst, std::ptrdiff_t dst_stride) {
  for (std::ptrdiff_t i = 0; i < 16; ++i) dst[i % 4 * dst_stride + i / 4] = src[i / 4 * src_stride + i % 4];
}
#else
using D4 = hn::FixedTag<float, 4>;

HWY_INLINE void transpose_4x4(const float* src, std::ptrdiff_t src_stride, float* dst, std::ptrdiff_t dst_stride) {
  const D4 d;
  const hn::Repartition<double, D4> d2;
  const auto r0 = hn::LoadU(d, src);
  const auto r1 = hn::LoadU(d, src + src_stride);
  const auto r2 = hn::LoadU(d, src + 2 * src_stride);
  const auto r3 = hn::LoadU(d, src + 3 * src_stride);
  const auto t0 = hn::BitCast(d2, hn::InterleaveLower(d, r0, r1));  // 00 10 01 11
  const auto t1 = hn::BitCast(d2, hn::InterleaveLower(d, r2, r3));
  const auto t2 = hn::BitCast(d2, hn::InterleaveUpper(d, r0, r1));  // 02 12 03 13
  const auto t3 = hn::BitCast(d2, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, t0, t1)), d, dst);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, t0, t1)), d, dst + dst_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, t2, t3)), d, dst + 2 * dst_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, t2, t3)), d, dst + 3 * dst_stride);
}
#endif

void transpose_kernel(const float* src, std::int64_t src_stride, std::int64_t rows, std::int64_t columns, float* dst,
                      std::int64_t dst_stride) {
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const float* from = src + r * src_stride;
    float* to = dst + r;
    std::int64_t c = 0;
    for (; c + 4 <= columns; c += 4) transpose_4x4(from + c, src_stride, to + c * dst_stride, dst_stride);
    for (; c < columns; ++c) {
      for (std::int64_t i = 0; i < 4; ++i) to[c * dst_stride + i] = from[i * src_stride + c];
    }
  }
  for (; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) dst[c * dst_stride + r] = src[r * src_stride + c];
  }
}

void pack_kernel(const float* src, std::int64_t stride, std::int64_t k, std::int64_t n, float* dst,
                 std::int64_t panel) {
  const D d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t width = lanes * kVectors;
  for (std::int64_t first = 0; first < n; first += width, dst += panel) {
    const std::int64_t columns = std::min(width, n - first);
    for (std::int64_t i = 0; i < k; ++i) {
      const float* from = src + i * stride + first;
      float* to = dst + i * width;
      std::int64_t j = 0;
      for (; j + lanes <= columns; j += lanes) hn::StoreU(hn::LoadU(d, from + j), d, to + j);
      for (; j < columns; ++j) to[j] = from[j];
      for (; j < width; ++j) to[j] = 0.0F;
    }
  }
}

void pack_transposed_kernel(const float* src, std::int64_t stride, std::int64_t k, std::int64_t n, float* dst,
                            std::int64_t panel) {
  const std::int64_t width = static_cast<std::int64_t>(hn::Lanes(D())) * kVectors;
  for (std::int64_t first = 0; first < n; first += width, dst += panel) {
    const std::int64_t columns = std::min(width, n - first);
    transpose_kernel(src + first * stride, stride, columns, k, dst, width);
    for (std::int64_t i = 0; i < k && columns < width; ++i) {
      std::fill(dst + i * width + columns, dst + (i + 1) * width, 0.0F);
    }
  }
}

// The sum of parts [first, first + parts) at one vector.
V pairwise(const float* part, std::int64_t parts, std::int64_t stride) {
  const D d;
  if (parts == 1) return hn::LoadU(d, part);
  const std::int64_t half = (parts + 1) / 2;
  return hn::Add(pairwise(part, half, stride), pairwise(part + half * stride, parts - half, stride));
}

float pairwise_scalar(const float* part, std::int64_t parts, std::int64_t stride) {
  if (parts == 1) return *part;
  const std::int64_t half = (parts + 1) / 2;
  return pairwise_scalar(part, half, stride) + pairwise_scalar(part + half * stride, parts - half, stride);
}

void sum_kernel(const float* part, std::int64_t parts, std::int64_t stride, std::int64_t count, float* dst) {
  const D d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(pairwise(part + i, parts, stride), d, dst + i);
  for (; i < count; ++i) dst[i] = pairwise_scalar(part + i, parts, stride);
}

GemmTile tile_kernel() {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  return {.rows = kRows, .columns = lanes * kVectors, .lanes = lanes};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace stoker::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::cpu {
namespace {
HWY_EXPORT(block_kernel);
HWY_EXPORT(pack_kernel);
HWY_EXPORT(pack_transposed_kernel);
HWY_EXPORT(transpose_kernel);
HWY_EXPORT(sum_kernel);
HWY_EXPORT(tile_kernel);
}  // namespace

GemmTile gemm_tile() { return HWY_DYNAMIC_DISPATCH(tile_kernel)(); }

void gemm_block(const GemmBlock& block) {
  if (block.m > 0 && block.n > 0) HWY_DYNAMIC_DISPATCH(block_kernel)(block);
}

void pack_panels(const float* src, std::int64_t stride, std::int64_t k, std::int64_t n, float* dst,
                 std::int64_t panel) {
  HWY_DYNAMIC_DISPATCH(pack_kernel)(src, stride, k, n, dst, panel);
}

void pack_panels_transposed(const float* src, std::int64_t stride, std::int64_t k, std::int64_t n, float* dst,
                            std::int64_t panel) {
  HWY_DYNAMIC_DISPATCH(pack_transposed_kernel)(src, stride, k, n, dst, panel);
}

void transpose_block(const float* src, std::int64_t src_stride, std::int64_t rows, std::int64_t columns, float* dst,
                     std::int64_t dst_stride) {
  HWY_DYNAMIC_DISPATCH(transpose_kernel)(src, src_stride, rows, columns, dst, dst_stride);
}

void sum_parts(const float* part, std::int64_t parts, std::int64_t stride, std::int64_t count, float* dst) {
  HWY_DYNAMIC_DISPATCH(sum_kernel)(part, parts, stride, count, dst);
}

}  // namespace stoker::cpu
#endif
