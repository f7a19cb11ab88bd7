// reduce_sum, reduce_max, argmax. A reduction over any axes is a chain of stages out[o, i] = sum over r of in[o, r, i],
// innermost axes first; sums are fp32 within a block and pairwise or in double beyond it.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/reduction_stage.h"
#include "backends/cpu/kernels/tile_cut.h"
#include "base/error.h"
#include "graph/op_def.h"

namespace stoker::cpu {
namespace {

// About memory speed.
constexpr double kElementNanoseconds = 0.3;

struct Stage {
  std::int64_t outer = 1;
  std::int64_t reduced = 1;
  std::int64_t inner = 1;
  Cut outer_cut;    // tasks are pairs (outer chunk, reduced chunk)
  Cut reduced_cut;  // more than one chunk only where there are few outer positions
  const float* in = nullptr;
  float* out = nullptr;
  float* partial = nullptr;  // [reduced_cut.tasks][outer][inner] if there are several

  [[nodiscard]] std::int64_t results() const { return outer * inner; }
};

void cut_stage(Stage& stage) {
  const double block = kElementNanoseconds * static_cast<double>(stage.reduced * stage.inner);
  stage.outer_cut = cut_work(stage.outer, block);
  constexpr std::int64_t kEnoughTasks = 8;
  if (stage.outer_cut.tasks >= kEnoughTasks) {
    stage.reduced_cut = {.total = stage.reduced, .size = stage.reduced, .tasks = 1};
    return;
  }
  const double row = kElementNanoseconds * static_cast<double>(stage.results());
  stage.reduced_cut = cut_work(stage.reduced, row, stage.inner == 1 ? kReductionBlock : 1);
  stage.outer_cut = {.total = stage.outer, .size = stage.outer, .tasks = 1};
}

// The stages of reducing `axes` of `shape`, the innermost run of reduced axes first.
std::vector<Stage> make_stages(const Shape& shape, const Ints& axes) {
  std::vector<Stage> stages;
  std::vector<bool> reduced(static_cast<std::size_t>(shape.rank()), false);
  for (const std::int64_t axis : axes) reduced[static_cast<std::size_t>(axis)] = true;
  std::int64_t inner = 1;
  for (int i = shape.rank() - 1; i >= 0;) {
    if (!reduced[static_cast<std::size_t>(i)]) {
      inner *= shape[i--];
      continue;
    }
    std::int64_t run = 1;
    while (i >= 0 && (reduced[static_cast<std::size_t>(i)] || shape[i] == 1)) run *= shape[i--];
    if (run == 1) continue;
    stages.push_back({.outer = shape.elements(0, i + 1), .reduced = run, .inner = inner});
    cut_stage(stages.back());
  }
  return stages;
}

std::int64_t partial_floats(const Stage& stage) {
  return stage.reduced_cut.tasks > 1 ? round_up(stage.reduced_cut.tasks * stage.results(), 16) : 0;
}

std::int64_t workspace_reduce(const Graph& graph, const Node& node, int /*threads*/) {
  const std::vector<Stage> stages = make_stages(graph.spec(node.inputs[0]).shape, node.attrs.ints("axes"));
  std::int64_t floats = 0;
  for (const Stage& stage : stages) floats += partial_floats(stage) + round_up(stage.results(), 16);
  return floats * static_cast<std::int64_t>(sizeof(float));
}

void run_stage(const Stage& stage, ReduceKind kind, ThreadPool& pool) {
  const std::int64_t chunks = stage.reduced_cut.tasks;
  pool.run(stage.outer_cut.tasks * chunks, [&](std::int64_t task, int) {
    const std::int64_t chunk = task % chunks;
    const std::int64_t first = stage.outer_cut.begin(task / chunks);
    const std::int64_t from = stage.reduced_cut.begin(chunk);
    float* out = (chunks > 1 ? stage.partial + chunk * stage.results() : stage.out) + first * stage.inner;
    reduce_block(kind,
                 {.data = stage.in + (first * stage.reduced + from) * stage.inner,
                  .outer = stage.outer_cut.count(task / chunks),
                  .outer_stride = stage.reduced * stage.inner,
                  .reduced = stage.reduced_cut.count(chunk),
                  .inner = stage.inner},
                 out);
  });
  if (chunks > 1) {
    combine_partials(kind, stage.partial, chunks, stage.results());
    std::memcpy(stage.out, stage.partial, static_cast<std::size_t>(stage.results()) * sizeof(float));
  }
}

void check_input(const KernelContext& context) {
  require(context.input_spec(0).dtype == DType::f32, Code::unsupported, context.node.op->name,
          ": expected an f32 tensor, not ", context.input_spec(0));
}

template <ReduceKind kKind>
Kernel prepare_reduce(const KernelContext& context) {
  check_input(context);
  std::vector<Stage> stages = make_stages(context.input_spec(0).shape, context.node.attrs.ints("axes"));
  if (stages.empty()) {
    return [to = context.outputs[0], from = context.inputs[0],
            bytes = static_cast<std::size_t>(context.output_spec(0).bytes())](ThreadPool&) {
      std::memmove(to, from, bytes);
    };
  }
  auto* next = reinterpret_cast<float*>(context.scratch);
  const float* in = context.input(0);
  for (Stage& stage : stages) {
    stage.partial = std::exchange(next, next + partial_floats(stage));
    const bool last = &stage == &stages.back();
    stage.out = last ? context.output(0) : std::exchange(next, next + round_up(stage.results(), 16));
    stage.in = std::exchange(in, stage.out);
  }
  return [stages = std::move(stages)](ThreadPool& pool) {
    for (const Stage& stage : stages) run_stage(stage, kKind, pool);
  };
}

// The position of the first maximum of n values `stride` apart; NaN counts as the largest.
std::int32_t position_of_max(const float* x, std::int64_t n, std::int64_t stride) {
  float best = x[0];
  std::int64_t position = 0;
  for (std::int64_t i = 1; i < n && !std::isnan(best); ++i) {
    const float value = x[i * stride];
    if (value > best || std::isnan(value)) {
      best = value;
      position = i;
    }
  }
  return static_cast<std::int32_t>(position);
}

Kernel prepare_argmax(const KernelContext& context) {
  check_input(context);
  const Shape& shape = context.input_spec(0).shape;
  const auto axis = static_cast<int>(context.node.attrs.ints("axes")[0]);
  const std::int64_t n = shape[axis];
  const std::int64_t inner = shape.elements(axis + 1, shape.rank());
  const Cut cut = cut_work(shape.elements(0, axis) * inner, static_cast<double>(n));
  return [=, x = context.input(0), y = context.output<std::int32_t>(0)](ThreadPool& pool) {
    pool.run(cut.tasks, [&](std::int64_t task, int) {
      for (std::int64_t i = cut.begin(task); i < cut.begin(task) + cut.count(task); ++i)
        y[i] = position_of_max(x + i / inner * n * inner + i % inner, n, inner);
    });
  };
}

}  // namespace

std::span<const KernelDef> reduction_kernels() {
  static constexpr std::array kKernels = {
      KernelDef{.op = "reduce_sum", .prepare = prepare_reduce<ReduceKind::sum>, .workspace = workspace_reduce},
      KernelDef{.op = "reduce_max", .prepare = prepare_reduce<ReduceKind::max>, .workspace = workspace_reduce},
      KernelDef{.op = "argmax", .prepare = prepare_argmax},
  };
  return kKernels;
}

}  // namespace stoker::cpu
