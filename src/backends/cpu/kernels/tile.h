// Tiles: how a kernel evaluates fused expressions. A tensor [..., C] is seen as rows of C channels; an expression is
// evaluated for a rectangle of it at a time, instruction by instruction with SIMD, on tiles that stay in L1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/tile_steps.h"
#include "base/dtype.h"
#include "graph/fusion.h"

namespace stoker::cpu {

// A fused input bound to memory. `access` is never Access::broadcast here.
struct TileArg {
  const std::byte* data = nullptr;  // null: the plain result of a kernel op, given when it is there
  DType dtype = DType::f32;
  Access access = Access::full;
};

// An output of an expression bound to memory: stored, or summed per channel.
struct TileResult {
  std::byte* data = nullptr;  // null: the destination is given with each rectangle
  DType dtype = DType::f32;
  ResultKind kind = ResultKind::store;
};

// Rows row, row + row_step, ... (`rows` of them), channels [channel, channel + channels).
struct Rect {
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::int64_t row_step = 1;
  std::int64_t channel = 0;
  std::int64_t channels = 0;
};

// What a worker needs to evaluate expressions, 64-byte aligned.
inline constexpr std::int64_t kTileScratchBytes = 192 * 1024;

// An expression compiled for tiles: contracted, joined into larger instructions, its temporaries assigned to as few
// tiles as possible. What depends on scalars or channels alone is computed once a rectangle.
class TileExpr {
 public:
  TileExpr() = default;
  // Without `results` the one output goes to the destination of evaluate_rect().
  TileExpr(const Expr& expr, std::vector<TileArg> args, std::int64_t tensor_channels,
           std::vector<TileResult> results = {{}});

  // True if the value is args[0], an f32 tensor, as it stands: the caller may read it in place.
  [[nodiscard]] bool is_plain() const { return plain_; }
  [[nodiscard]] const float* plain_data() const { return reinterpret_cast<const float*>(args_[0].data); }
  [[nodiscard]] std::int64_t tensor_channels() const { return tensor_channels_; }

 private:
  friend class TileCompiler;
  friend class TileRun;

  // A value that lasts for a rectangle: a slot and where it stands in the scratch.
  struct Held {
    int slot = 0;
    std::int64_t compact = 0;   // offsets in floats; one row of it
    std::int64_t expanded = 0;  // repeated for every row of a tile; -1: not needed
  };

  std::vector<TileInst> scalar_steps_;   // once a rectangle
  std::vector<TileInst> channel_steps_;  // once a range of channels
  std::vector<TileInst> steps_;          // for every tile
  std::vector<float> constants_;
  std::vector<Held> lines_;     // constants (first), scalar arguments and values
  std::vector<Held> channels_;  // channel arguments and values
  std::vector<Held> tiles_;     // temporaries, row arguments, arguments that are converted (in `compact`)
  std::vector<TileArg> args_;
  std::vector<TileResult> results_;
  std::vector<int> result_slots_;  // where the value is when the steps are done; -1: stored by a step
  std::vector<int> factor_slots_;  // what a sum multiplies its value by; -1: nothing
  int first_result_slot_ = 0;      // slots of the results' destinations
  int slots_ = 0;
  std::int64_t tile_ = 0;  // floats in a tile
  std::int64_t tensor_channels_ = 0;
  bool plain_ = false;
};

// The shape of operand `operand` of the node's kernel op: that of the first tensor that its prologue reads in full.
[[nodiscard]] const Shape& operand_shape(const Graph& graph, const Node& node, int operand);

// Binds operand `operand` of the node's kernel op: its prologue, or the plain input where there is no fusion.
[[nodiscard]] TileExpr bind_operand(const KernelContext& context, int operand);

// Evaluates `expr` over `rect` into dst, one row of the rectangle after another, `stride` floats apart. `scratch` is
// the worker's own. Larger rectangles cost less an element.
void evaluate_rect(const TileExpr& expr, const Rect& rect, float* dst, std::int64_t stride, std::byte* scratch);

// The epilogue of a kernel op, bound to the node's extra inputs and outputs.
class TileEpilogue {
 public:
  TileEpilogue() = default;
  // The plain result is an f32 tensor of this many rows and channels.
  TileEpilogue(const KernelContext& context, std::int64_t rows, std::int64_t channels);
  // Any expression: a `pointwise` node has no plain result.
  TileEpilogue(const Expr& expr, std::vector<TileArg> args, std::vector<TileResult> results, std::int64_t channels);

  // True if the plain result is all there is to store: the kernel may then write plain_data() itself.
  [[nodiscard]] bool is_plain() const { return plain_; }
  [[nodiscard]] float* plain_data() const;
  // How many results are sums; a kernel that cuts its rows into `chunks` needs chunks * sums() * channels floats.
  [[nodiscard]] int sums() const { return static_cast<int>(sum_outputs_.size()); }

  // Takes a finished block of the plain result (`stride` floats between its rows) through the expression and stores
  // it. `partial`, if sums() > 0, is the chunk's [sums()][channels] array: this block's columns of it are written
  // (first block of rows of the chunk) or added to (`accumulate`). `arg_offsets`, if given, are bytes added to each
  // argument's address.
  void apply(const Rect& rect, const float* block, std::int64_t stride, float* partial, bool accumulate,
             std::byte* scratch, const std::int64_t* arg_offsets = nullptr) const;
  // Adds the chunks' partial sums pairwise, in the order of the chunks, and stores them. Overwrites `partial`. Uses
  // the pool, if given, where that pays.
  void finish_sums(float* partial, std::int64_t chunks, ThreadPool* pool = nullptr) const;

 private:
  TileExpr expr_;
  std::vector<std::byte*> sum_outputs_;
  std::byte* first_output_ = nullptr;
  std::int64_t channels_ = 0;
  bool plain_ = false;
};

// Adds `count` arrays of n floats pairwise into the first one: the same order whatever the threads.
void sum_pairwise(float* partial, std::int64_t count, std::int64_t n, ThreadPool* pool = nullptr);

}  // namespace stoker::cpu
