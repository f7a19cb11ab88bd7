// The SIMD half of tiles: runs instructions over a block of at most a tile, loads and stores it in other element types,
// sums its columns.
#pragma once

#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "graph/expr.h"

namespace stoker::cpu {

struct TileArg;

// Instructions made of several of an expression's.
inline constexpr auto kTileCopy = static_cast<ExprOp>(64);         // a
inline constexpr auto kTileClamp = static_cast<ExprOp>(65);        // a between imm and imm2; NaN stays
inline constexpr auto kTileAffineClamp = static_cast<ExprOp>(66);  // a * b + c between imm and imm2; NaN stays
inline constexpr auto kTileSelectGt = static_cast<ExprOp>(67);     // a > b ? c : d
inline constexpr auto kTileInside = static_cast<ExprOp>(68);       // imm < a && a <= imm2 ? 1 : 0
inline constexpr auto kTileGate = static_cast<ExprOp>(69);         // imm < a && a <= imm2 ? b : 0
inline constexpr auto kTileAffineGate = static_cast<ExprOp>(70);   // imm < a * b + c && a * b + c <= imm2 ? d : 0
inline constexpr auto kTileMulAdd2 = static_cast<ExprOp>(71);      // a * b + (c * d + e)

// A value over the block: element (row, col) is data[row * stride + col], or data[0] if step is 0 (then kTileLine equal
// floats stand there and stride is 0).
struct TileOperand {
  float* data = nullptr;
  std::int64_t stride = 0;
  std::int64_t step = 1;
};

// As many floats as the longest vector of any instruction set has (SVE: 2048 bits).
inline constexpr std::int64_t kTileLine = 64;

struct TileInst {
  ExprOp op = kTileCopy;
  std::int32_t destination = -1;  // slot numbers
  std::int32_t a = -1;
  std::int32_t b = -1;
  std::int32_t c = -1;
  std::int32_t d = -1;
  std::int32_t e = -1;
  float imm = 0.0F;
  float imm2 = 0.0F;
};

struct TileBlock {
  const TileOperand* slots = nullptr;
  const TileArg* args = nullptr;  // slot i < number of args is argument i
  std::int64_t arg_count = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::uint64_t element = 0;       // number of the block's first element in the tensor, and
  std::uint64_t row_elements = 0;  // how far its rows are apart: for `uniform`
};

void run_tile_steps(std::span<const TileInst> steps, const TileBlock& block);

// sums[col] (+)= the sum over the block's rows of a, or of a * b; both step by 1.
void sum_tile_columns(const TileOperand& a, const TileOperand* b, std::int64_t rows, std::int64_t cols, float* sums,
                      bool accumulate);

// dst[row * cols + col] = src[row * stride + col] as float; strides count elements.
void load_tile(DType dtype, const std::byte* src, std::int64_t stride, std::int64_t rows, std::int64_t cols,
               float* dst);
void store_tile(DType dtype, const TileOperand& operand, std::int64_t rows, std::int64_t cols, std::byte* dst,
                std::int64_t stride);
// One element as float.
[[nodiscard]] float load_element(DType dtype, const std::byte* src);

}  // namespace stoker::cpu
