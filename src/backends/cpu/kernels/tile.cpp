#include "backends/cpu/kernels/tile.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "backends/cpu/kernels/tile_compile.h"
#include "backends/cpu/kernels/tile_cut.h"
#include "base/error.h"
#include "graph/op_def.h"

namespace stoker::cpu {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

bool is_plain_load(const Expr& expr, std::span<const TileArg> args) {
  return expr.is_identity() && args[0].dtype == DType::f32 && args[0].access == Access::full;
}

}  // namespace

// One evaluation of a TileExpr over a rectangle.
class TileRun {
 public:
  TileRun(const TileExpr& expr, const Rect& rect, std::byte* scratch, const std::int64_t* arg_offsets)
      : expr_(expr), rect_(rect), scratch_(reinterpret_cast<float*>(scratch)), arg_offsets_(arg_offsets) {}

  void set_block(const float* block, std::int64_t stride) {
    block_ = block;
    block_stride_ = stride;
  }
  void set_destination(float* destination, std::int64_t stride) {
    destination_ = destination;
    destination_stride_ = stride;
  }
  void set_partial(float* partial, bool accumulate) {
    partial_ = partial;
    accumulate_ = accumulate;
  }

  void run() {
    slots_ = reinterpret_cast<TileOperand*>(scratch_);
    set_lines();
    for (std::int64_t col = 0; col < rect_.channels; col += expr_.tile_) {
      const std::int64_t cols = std::min(expr_.tile_, rect_.channels - col);
      const std::int64_t group = rows_at_once(cols);
      set_channels(col, cols, group);
      for (std::int64_t row = 0; row < rect_.rows; row += group)
        run_tile(row, std::min(group, rect_.rows - row), col, cols);
    }
  }

 private:
  [[nodiscard]] const std::byte* arg_at(int arg, std::int64_t element) const {
    const TileArg& bound = expr_.args_[at(arg)];
    const std::int64_t offset = arg_offsets_ == nullptr ? 0 : arg_offsets_[arg];
    return bound.data + (offset + element * size_of(bound.dtype));
  }
  [[nodiscard]] bool is_arg(int slot) const { return slot < static_cast<int>(expr_.args_.size()); }

  // Whole vectors where the channels allow it: a tail costs as much as a vector.
  [[nodiscard]] std::int64_t rows_at_once(std::int64_t cols) const {
    constexpr std::int64_t kVector = 16;
    const std::int64_t rows = std::max<std::int64_t>(1, expr_.tile_ / cols);
    const std::int64_t unit = kVector / std::gcd(kVector, cols);
    return rows >= unit ? rows / unit * unit : rows;
  }

  // Constants, scalar arguments and what is computed from them: lines of equal floats.
  void set_lines() {
    for (std::size_t i = 0; i < expr_.lines_.size(); ++i) {
      const TileExpr::Held& line = expr_.lines_[i];
      float* data = scratch_ + line.compact;
      slots_[line.slot] = {.data = data, .stride = 0, .step = 0};
      if (i < expr_.constants_.size()) {
        std::fill_n(data, kTileLine, expr_.constants_[i]);
      } else if (is_arg(line.slot)) {
        std::fill_n(data, kTileLine, load_element(expr_.args_[at(line.slot)].dtype, arg_at(line.slot, 0)));
      }
    }
    run_tile_steps(expr_.scalar_steps_, {.slots = slots_, .rows = 1, .cols = kTileLine});
  }

  void set_channels(std::int64_t col, std::int64_t cols, std::int64_t group) {
    for (const TileExpr::Held& held : expr_.channels_) {
      float* data = scratch_ + held.compact;
      if (is_arg(held.slot)) {
        const std::byte* source = arg_at(held.slot, rect_.channel + col);
        const DType dtype = expr_.args_[at(held.slot)].dtype;
        if (dtype == DType::f32) {
          data = reinterpret_cast<float*>(const_cast<std::byte*>(source));  // read only: never a destination
        } else {
          load_tile(dtype, source, cols, 1, cols, data);
        }
      }
      slots_[held.slot] = {.data = data, .stride = 0, .step = 1};
    }
    run_tile_steps(expr_.channel_steps_, {.slots = slots_, .rows = 1, .cols = cols});
    // Repeated for every row, channels become as flat as the tensor; where that is not flat it would not help.
    constexpr std::int64_t kWide = 256;
    const std::int64_t rows = std::min(group, rect_.rows);
    const bool flat = rect_.row_step == 1 && rect_.channels == expr_.tensor_channels_;
    if (!flat || cols >= kWide || rows == 1) return;
    for (const TileExpr::Held& held : expr_.channels_) {
      if (held.expanded < 0) continue;
      float* to = scratch_ + held.expanded;
      repeat(slots_[held.slot].data, cols, rows, to);
      slots_[held.slot] = {.data = to, .stride = cols, .step = 1};
    }
  }

  static void repeat(const float* row, std::int64_t cols, std::int64_t rows, float* to) {
    const auto bytes = [](std::int64_t floats) { return static_cast<std::size_t>(floats) * sizeof(float); };
    std::memcpy(to, row, bytes(cols));
    for (std::int64_t done = 1; done < rows;) {
      const std::int64_t more = std::min(done, rows - done);
      std::memcpy(to + done * cols, to, bytes(more * cols));
      done += more;
    }
  }

  void set_args(std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols) {
    const std::int64_t first_row = rect_.row + row * rect_.row_step;
    const std::int64_t first = first_row * expr_.tensor_channels_ + rect_.channel + col;
    const std::int64_t stride = rect_.row_step * expr_.tensor_channels_;
    for (int i = 0; i < static_cast<int>(expr_.args_.size()); ++i) {
      const TileArg& arg = expr_.args_[at(i)];
      if (arg.access != Access::full || arg.dtype != DType::f32) continue;
      if (arg.data == nullptr) {
        slots_[i] = {.data = const_cast<float*>(block_) + row * block_stride_ + col, .stride = block_stride_};
      } else {
        slots_[i] = {.data = reinterpret_cast<float*>(const_cast<std::byte*>(arg_at(i, first))), .stride = stride};
      }
    }
    for (const TileExpr::Held& held : expr_.tiles_) {
      float* data = scratch_ + held.compact;
      slots_[held.slot] = {.data = data, .stride = cols};
      if (!is_arg(held.slot)) continue;
      const DType dtype = expr_.args_[at(held.slot)].dtype;
      if (expr_.args_[at(held.slot)].access == Access::full) {
        load_tile(dtype, arg_at(held.slot, first), stride, rows, cols, data);
      } else {
        for (std::int64_t r = 0; r < rows; ++r)
          std::fill_n(data + r * cols, cols, load_element(dtype, arg_at(held.slot, first_row + r * rect_.row_step)));
      }
    }
  }

  [[nodiscard]] std::byte* result_at(const TileResult& result, std::int64_t row, std::int64_t col) const {
    if (result.data == nullptr) return reinterpret_cast<std::byte*>(destination_ + row * destination_stride_ + col);
    const std::int64_t first_row = rect_.row + row * rect_.row_step;
    return result.data + (first_row * expr_.tensor_channels_ + rect_.channel + col) * size_of(result.dtype);
  }
  [[nodiscard]] std::int64_t result_stride(const TileResult& result) const {
    return result.data == nullptr ? destination_stride_ : rect_.row_step * expr_.tensor_channels_;
  }

  void run_tile(std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols) {
    set_args(row, rows, col, cols);
    for (std::size_t i = 0; i < expr_.results_.size(); ++i) {
      const TileResult& result = expr_.results_[i];
      if (result.kind == ResultKind::store && result.dtype == DType::f32)
        slots_[at(expr_.first_result_slot_) + i] = {.data = reinterpret_cast<float*>(result_at(result, row, col)),
                                                    .stride = result_stride(result)};
    }
    const std::int64_t first_row = rect_.row + row * rect_.row_step;
    run_tile_steps(expr_.steps_,
                   {.slots = slots_,
                    .args = expr_.args_.data(),
                    .arg_count = static_cast<std::int64_t>(expr_.args_.size()),
                    .rows = rows,
                    .cols = cols,
                    .element = static_cast<std::uint64_t>(first_row * expr_.tensor_channels_ + rect_.channel + col),
                    .row_elements = static_cast<std::uint64_t>(rect_.row_step * expr_.tensor_channels_)});
    finish_tile(row, rows, col, cols);
  }

  void finish_tile(std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < expr_.results_.size(); ++i) {
      const TileResult& result = expr_.results_[i];
      const int slot = expr_.result_slots_[i];
      if (slot < 0) continue;
      if (result.kind == ResultKind::sum_channel) {
        float* sums = partial_ + sum * expr_.tensor_channels_ + rect_.channel + col;
        const int factor = expr_.factor_slots_[i];
        sum_tile_columns(slots_[slot], factor < 0 ? nullptr : &slots_[factor], rows, cols, sums,
                         accumulate_ || row > 0);
        ++sum;
      } else {
        store_tile(result.dtype, slots_[slot], rows, cols, result_at(result, row, col), result_stride(result));
      }
    }
  }

  const TileExpr& expr_;
  const Rect& rect_;
  float* scratch_;
  TileOperand* slots_ = nullptr;
  const std::int64_t* arg_offsets_;
  const float* block_ = nullptr;
  std::int64_t block_stride_ = 0;
  float* destination_ = nullptr;
  std::int64_t destination_stride_ = 0;
  float* partial_ = nullptr;
  bool accumulate_ = false;
};

TileExpr::TileExpr(const Expr& expr, std::vector<TileArg> args, std::int64_t tensor_channels,
                   std::vector<TileResult> results)
    : args_(std::move(args)), results_(std::move(results)), tensor_channels_(tensor_channels) {
  DCHECK(expr.outputs.size() == results_.size());
  for (const TileArg& arg : args_)
    require(arg.dtype != DType::f16, Code::unsupported, "expression: the CPU backend reads no f16 tensors yet");
  for (const TileResult& result : results_)
    require(result.dtype != DType::f16, Code::unsupported, "expression: the CPU backend writes no f16 tensors yet");
  plain_ = is_plain_load(expr, args_);
  TileCompiler(*this).compile(expr);
}

namespace {

// The operand's prologue; the plain tensor where there is none.
Prologue prologue_of(const Node& node, int operand) {
  const Fusion* fusion = node.fusion.get();
  if (fusion != nullptr && at(operand) < fusion->operands.size() && !fusion->operands[at(operand)].args.empty())
    return fusion->operands[at(operand)];
  return {.args = {{.input = operand, .access = Access::full}}};
}

}  // namespace

const Shape& operand_shape(const Graph& graph, const Node& node, int operand) {
  const Prologue prologue = prologue_of(node, operand);
  for (const FusedArg& arg : prologue.args) {
    if (arg.access == Access::full) return graph.spec(node.inputs[at(arg.input)]).shape;
  }
  fail(Code::unsupported, node.op->name, ": operand ", operand, " reads no tensor in full");
}

TileExpr bind_operand(const KernelContext& context, int operand) {
  const Prologue prologue = prologue_of(context.node, operand);
  const Shape& shape = operand_shape(context.graph, context.node, operand);
  std::vector<TileArg> args;
  for (const FusedArg& arg : prologue.args)
    args.push_back(
        {.data = context.inputs[at(arg.input)], .dtype = context.input_spec(arg.input).dtype, .access = arg.access});
  return {prologue.expr, std::move(args), shape.rank() > 0 ? shape[-1] : 1};
}

void evaluate_rect(const TileExpr& expr, const Rect& rect, float* dst, std::int64_t stride, std::byte* scratch) {
  TileRun run(expr, rect, scratch, nullptr);
  run.set_destination(dst, stride);
  run.run();
}

TileEpilogue::TileEpilogue(const Expr& expr, std::vector<TileArg> args, std::vector<TileResult> results,
                           std::int64_t channels)
    : channels_(channels) {
  for (const TileResult& result : results) {
    if (result.kind == ResultKind::sum_channel) sum_outputs_.push_back(result.data);
  }
  first_output_ = results[0].data;
  plain_ = args.size() == 1 && args[0].data == nullptr && is_plain_load(expr, args) && results.size() == 1 &&
           results[0].dtype == DType::f32 && sum_outputs_.empty();
  expr_ = TileExpr(expr, std::move(args), channels, std::move(results));
}

TileEpilogue::TileEpilogue(const KernelContext& context, std::int64_t rows, std::int64_t channels) {
  const Fusion none{.results = {ResultKind::store}};
  const Fusion& fusion = context.node.fusion == nullptr ? none : *context.node.fusion;
  std::vector<TileArg> args(1);
  for (const FusedArg& arg : fusion.extra)
    args.push_back(
        {.data = context.inputs[at(arg.input)], .dtype = context.input_spec(arg.input).dtype, .access = arg.access});
  std::vector<TileResult> results;
  for (int i = 0; i < static_cast<int>(fusion.results.size()); ++i) {
    DCHECK(fusion.results[at(i)] == ResultKind::sum_channel ||
           context.output_spec(i).shape.elements() == rows * channels);
    results.push_back(
        {.data = context.outputs[at(i)], .dtype = context.output_spec(i).dtype, .kind = fusion.results[at(i)]});
  }
  static_cast<void>(rows);
  *this = TileEpilogue(fusion.epilogue, std::move(args), std::move(results), channels);
}

float* TileEpilogue::plain_data() const { return reinterpret_cast<float*>(first_output_); }

void TileEpilogue::apply(const Rect& rect, const float* block, std::int64_t stride, float* partial, bool accumulate,
                         std::byte* scratch, const std::int64_t* arg_offsets) const {
  TileRun run(expr_, rect, scratch, arg_offsets);
  run.set_block(block, stride);
  run.set_partial(partial, accumulate);
  run.run();
}

void TileEpilogue::finish_sums(float* partial, std::int64_t chunks, ThreadPool* pool) const {
  const std::int64_t n = sums() * channels_;
  if (n == 0) return;
  sum_pairwise(partial, chunks, n, pool);
  for (int i = 0; i < sums(); ++i)
    std::memcpy(sum_outputs_[at(i)], partial + i * channels_, static_cast<std::size_t>(channels_) * sizeof(float));
}

void sum_pairwise(float* partial, std::int64_t count, std::int64_t n, ThreadPool* pool) {
  const Cut cut = cut_work(n, 0.2 * static_cast<double>(count), 64);
  const auto sum_columns = [&](std::int64_t task, int) {
    const std::int64_t first = cut.begin(task);
    for (std::int64_t step = 1; step < count; step *= 2) {
      for (std::int64_t i = 0; i + step < count; i += 2 * step) {
        float* to = partial + i * n + first;
        const float* from = partial + (i + step) * n + first;
        for (std::int64_t k = 0; k < cut.count(task); ++k) to[k] += from[k];
      }
    }
  };
  if (pool != nullptr) {
    pool->run(cut.tasks, sum_columns);
  } else {
    for (std::int64_t task = 0; task < cut.tasks; ++task) sum_columns(task, 0);
  }
}

}  // namespace stoker::cpu
