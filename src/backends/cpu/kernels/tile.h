// Tiles: how a kernel evaluates fused expressions. A tensor [..., C] is seen as rows of C channels; an expression is
// evaluated for a rectangle of it at a time, instruction by instruction with SIMD, on tiles that stay in L1.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/kernel.h"
#include "base/dtype.h"
#include "graph/fusion.h"

namespace stoker::cpu {

// A fused input bound to memory. `access` is never Access::broadcast here.
struct TileArg {
  const std::byte* data = nullptr;
  DType dtype = DType::f32;
  Access access = Access::full;
};

// Rows row, row + row_step, ... (`rows` of them), channels [channel, channel + channels).
struct Rect {
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::int64_t row_step = 1;
  std::int64_t channel = 0;
  std::int64_t channels = 0;
};

// An expression compiled for tiles: contracted, its temporaries assigned to as few tiles as possible.
class TileExpr {
 public:
  TileExpr() = default;
  TileExpr(const Expr& expr, std::vector<TileArg> args, std::int64_t tensor_channels);

  // True if the value is args[0], an f32 tensor, as it stands: the caller may read it in place.
  [[nodiscard]] bool is_plain() const { return plain_; }
  [[nodiscard]] const float* plain_data() const { return reinterpret_cast<const float*>(args_[0].data); }

 private:
  friend class TileRunner;

  struct Step {
    ExprOp op;
    int destination;  // tile numbers
    int a, b, c;
    float imm;
  };
  std::vector<Step> steps_;
  std::vector<int> outputs_;  // tile numbers
  std::vector<TileArg> args_;
  std::int64_t tensor_channels_ = 0;
  int tiles_ = 0;
  bool plain_ = false;
};

// Binds operand `operand` of the node's kernel op: its prologue, or the plain input where there is no fusion.
[[nodiscard]] TileExpr bind_operand(const KernelContext& context, int operand);

// Evaluates `expr` over `rect` into dst, one row of the rectangle after another, `stride` floats apart. `scratch` is
// the worker's own, kTileScratchBytes long, 64-byte aligned.
inline constexpr std::int64_t kTileScratchBytes = 192 * 1024;
void evaluate_rect(const TileExpr& expr, const Rect& rect, float* dst, std::int64_t stride, std::byte* scratch);

// The epilogue of a kernel op, bound to the node's extra inputs and outputs.
class TileEpilogue {
 public:
  TileEpilogue() = default;
  // The plain result is an f32 tensor of this many rows and channels.
  TileEpilogue(const KernelContext& context, std::int64_t rows, std::int64_t channels);

  // True if the plain result is all there is to store: the kernel may then write plain_data() itself.
  [[nodiscard]] bool is_plain() const { return plain_; }
  [[nodiscard]] float* plain_data() const;
  // How many results are sums; a kernel that cuts its rows into `chunks` needs chunks * sums() * channels floats.
  [[nodiscard]] int sums() const { return static_cast<int>(sum_outputs_.size()); }

  // Takes a finished block of the plain result (`stride` floats between its rows) through the expression and stores
  // it. `partial`, if sums() > 0, is the chunk's [sums()][channels] array: this block's columns of it are written
  // (first block of rows of the chunk) or added to (`accumulate`).
  void apply(const Rect& rect, const float* block, std::int64_t stride, float* partial, bool accumulate,
             std::byte* scratch) const;
  // Adds the chunks' partial sums pairwise, in the order of the chunks, and stores them. Overwrites `partial`.
  void finish_sums(float* partial, std::int64_t chunks) const;

 private:
  TileExpr expr_;
  std::vector<int> store_outputs_;  // outputs of the expression that are stored, that are summed
  std::vector<int> sum_outputs_;
  std::vector<std::byte*> data_;
  std::vector<DType> dtypes_;
  std::int64_t channels_ = 0;
  bool plain_ = false;
};

}  // namespace stoker::cpu
