// The compute core under matmul and convolution: C (+)= A B on one block whose operands are in cache, and the packing
// of B. One source, compiled for each instruction set; the best one is chosen when a process first calls it.
#pragma once

#include <cstdint>

namespace stoker::cpu {

// The register tile: `rows` rows of A times `columns` columns of B, `lanes` floats a vector.
struct GemmTile {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t lanes = 0;
};
[[nodiscard]] GemmTile gemm_tile();

// M x N x K with M rows. Element (m, k) of A is a[m * a_row + k * a_k]: one of the two strides is 1. B comes in panels
// of tile.columns columns: element (k, n) is b[(n / columns) * b_panel + k * b_k + n % columns], and a panel's row may
// be read up to the next full vector.
struct GemmBlock {
  std::int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  std::int64_t a_row = 0, a_k = 0;
  const float* b = nullptr;
  std::int64_t b_panel = 0, b_k = 0;
  float* c = nullptr;
  std::int64_t c_row = 0;
  bool accumulate = false;
};
void gemm_block(const GemmBlock& block);

// Packs `k` rows of `n` columns into panels; columns that fill up the last panel are zero. `dst` is the panels' row 0
// of this piece, panels lie `panel` floats apart. Source: row-major [k][n], or for the second [n][k], rows `stride`
// apart.
void pack_panels(const float* src, std::int64_t stride, std::int64_t k, std::int64_t n, float* dst, std::int64_t panel);
void pack_panels_transposed(const float* src, std::int64_t stride, std::int64_t k, std::int64_t n, float* dst,
                            std::int64_t panel);

// dst[c][r] = src[r][c] for `rows` x `columns` of src.
void transpose_block(const float* src, std::int64_t src_stride, std::int64_t rows, std::int64_t columns, float* dst,
                     std::int64_t dst_stride);

// dst[i] = sum of part[p * stride + i] over p in [0, parts), added pairwise: ((0 + 1) + (2 + 3)) + ...; `parts` <= 64.
void sum_parts(const float* part, std::int64_t parts, std::int64_t stride, std::int64_t count, float* dst);

}  // namespace stoker::cpu
