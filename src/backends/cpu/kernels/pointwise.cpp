#include "backends/cpu/kernels/pointwise.h"

#include <algorithm>
#include <array>
#include <memory>

#include "backends/cpu/kernels/tile.h"
#include "backends/cpu/kernels/tile_cut.h"
#include "base/error.h"
#include "passes/point_expr.h"

namespace stoker::cpu {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// An input with the shape that it has in the iteration: sizes aligned at the end, 1 where it is repeated.
struct Argument {
  int input = 0;
  DType dtype = DType::f32;
  Shape shape;
  Access access = Access::full;                         // within the inner block
  std::array<std::int64_t, Shape::kMaxRank> strides{};  // bytes from one outer position to the next
};

// The work: `outer` positions, each a block of rows of `channels`; the same for every run.
struct Plan {
  Expr expr;
  std::vector<ResultKind> results;
  std::vector<Argument> arguments;
  Shape shape;
  int outer_dims = 0;
  std::int64_t outer = 1;
  std::int64_t rows = 1;  // in a block
  std::int64_t channels = 1;
  Cut cut;  // of rows over all blocks, or of channels if `flat`
  bool flat = false;
  int sums = 0;
};

Shape aligned(const Shape& shape, int rank) {
  Shape result;
  for (int i = shape.rank(); i < rank; ++i) result.push_back(1);
  for (const std::int64_t size : shape.dims()) result.push_back(size);
  return result;
}

// The access of an argument to dimensions [from, rank); broadcast if it is none of the four.
Access inner_access(const Shape& argument, const Shape& shape, int from) {
  const int last = shape.rank() - 1;
  bool same = true;  // of all but the innermost dimension
  bool once = true;
  for (int i = from; i < last; ++i) {
    same = same && argument[i] == shape[i];
    once = once && argument[i] == 1;
  }
  if (last < from) return Access::scalar;
  if (same && argument[last] == shape[last]) return Access::full;
  if (once && argument[last] == 1) return Access::scalar;
  if (once && argument[last] == shape[last]) return Access::channel;
  return same ? Access::row : Access::broadcast;
}

// Fewest outer dimensions such that each argument's inner part is full, by channel, by row or a scalar.
void split_dims(Plan& plan) {
  const int rank = plan.shape.rank();
  const auto fits = [&](int from) {
    return std::ranges::all_of(plan.arguments, [&](const Argument& argument) {
      return inner_access(argument.shape, plan.shape, from) != Access::broadcast;
    });
  };
  while (plan.outer_dims < rank && !fits(plan.outer_dims)) ++plan.outer_dims;
  for (Argument& argument : plan.arguments) {
    argument.access = inner_access(argument.shape, plan.shape, plan.outer_dims);
    for (int i = 0; i < plan.outer_dims; ++i) {
      if (argument.shape[i] != 1)
        argument.strides[at(i)] = argument.shape.elements(i + 1, rank) * size_of(argument.dtype);
    }
  }
  plan.outer = plan.shape.elements(0, plan.outer_dims);
  plan.channels = rank > plan.outer_dims ? plan.shape[rank - 1] : 1;
  plan.rows = plan.shape.elements(plan.outer_dims, rank) / std::max<std::int64_t>(1, plan.channels);
  const bool even = std::ranges::all_of(plan.arguments, [](const Argument& argument) {
    return argument.access == Access::full || argument.access == Access::scalar;
  });
  if (even && plan.sums == 0) {
    plan.channels *= plan.rows;
    plan.rows = 1;
  }
}

// A rough time an element, for cutting only.
double element_nanoseconds(const Plan& plan) {
  double time = 0.0;
  for (const Argument& argument : plan.arguments) time += argument.access == Access::full ? 0.25 : 0.05;
  time += 0.25 * static_cast<double>(plan.results.size());
  for (const ExprInst& inst : plan.expr.code) {
    const bool function = inst.op >= ExprOp::exp && inst.op <= ExprOp::cos;
    time += inst.op == ExprOp::pow ? 20.0 : inst.op == ExprOp::uniform ? 4.0 : function ? 0.4 : 0.05;
  }
  return time;
}

Plan make_plan(const Graph& graph, const Node& node) {
  Plan plan;
  NodeExpr code = expression_of(graph, node);
  plan.expr = std::move(code.expr);
  plan.results = std::move(code.results);
  plan.shape = code.shape;
  for (const ResultKind kind : plan.results) plan.sums += kind == ResultKind::sum_channel ? 1 : 0;
  for (const int input : code.inputs) {
    const Spec& spec = graph.spec(node.inputs[at(input)]);
    plan.arguments.push_back({.input = input, .dtype = spec.dtype, .shape = aligned(spec.shape, plan.shape.rank())});
  }
  split_dims(plan);
  const double time = element_nanoseconds(plan);
  constexpr std::int64_t kFlatGrain = 1024;
  plan.flat = plan.outer == 1 && plan.rows == 1 && plan.sums == 0;
  plan.cut = plan.flat ? cut_work(plan.channels, time, kFlatGrain)
                       : cut_work(plan.outer * plan.rows, time * static_cast<double>(plan.channels));
  return plan;
}

// A scalar that decides whether a node has anything to do.
struct Guard {
  const std::byte* data = nullptr;  // null: it always has
  DType dtype = DType::f32;

  [[nodiscard]] bool holds() const {
    if (data == nullptr) return true;
    if (dtype == DType::f32) return *reinterpret_cast<const float*>(data) != 0.0F;
    return *reinterpret_cast<const std::uint8_t*>(data) != 0;
  }
};

// The argument that instruction `inst` of the expression loads, or null.
const Argument* loaded(const Plan& plan, std::int32_t inst) {
  const ExprInst& code = plan.expr.code[at(inst)];
  return code.op == ExprOp::input ? &plan.arguments[at(code.a)] : nullptr;
}

// An update in place writes select(guard, new, old) over `old`. If all results are like that, with one scalar guard,
// then the guard is looked at once: `new` is all that is computed, or nothing is.
Guard take_guard(const KernelContext& context, Plan& plan) {
  const Argument* guard = nullptr;
  std::vector<std::int32_t> values;
  for (std::size_t i = 0; i < plan.results.size(); ++i) {
    const ExprInst& inst = plan.expr.code[at(plan.expr.outputs[i])];
    if (inst.op != ExprOp::select || plan.results[i] != ResultKind::store) return {};
    const Argument* condition = loaded(plan, inst.a);
    const Argument* old = loaded(plan, inst.c);
    if (condition == nullptr || old == nullptr || (guard != nullptr && condition != guard)) return {};
    const bool in_place = old->access == Access::full && old->dtype == context.node.outputs[i].dtype &&
                          context.inputs[at(old->input)] == context.outputs[i];
    const bool readable = condition->dtype == DType::f32 || condition->dtype == DType::b8;
    if (condition->access != Access::scalar || !in_place || !readable) return {};
    guard = condition;
    values.push_back(inst.b);
  }
  plan.expr.outputs = values;
  ExprBuilder builder;
  std::vector<int> operands;
  for (int i = 0; i < plan.expr.inputs; ++i) operands.push_back(builder.input(i));
  plan.expr = builder.finish(builder.append(plan.expr, operands), plan.expr.inputs);
  return {context.inputs[at(guard->input)], guard->dtype};
}

// A prepared node.
struct Pointwise {
  Plan plan;
  Guard guard;
  TileEpilogue epilogue;
  std::byte* tiles = nullptr;  // kTileScratchBytes a worker
  float* partial = nullptr;    // [tasks][sums][channels]

  void run_task(std::int64_t task, int worker) const {
    std::byte* scratch = tiles + worker * kTileScratchBytes;
    const std::int64_t first = plan.cut.begin(task);
    const std::int64_t count = plan.cut.count(task);
    float* part = partial == nullptr ? nullptr : partial + task * plan.sums * plan.channels;
    if (plan.flat) {
      epilogue.apply({.rows = 1, .channel = first, .channels = count}, nullptr, 0, nullptr, false, scratch);
    } else if (plan.outer == 1) {
      epilogue.apply({.row = first, .rows = count, .channels = plan.channels}, nullptr, 0, part, false, scratch);
    } else {
      run_blocks(first, count, part, scratch);
    }
  }

  // Rows [first, first + count) of all blocks, one block after another.
  void run_blocks(std::int64_t first, std::int64_t count, float* part, std::byte* scratch) const {
    constexpr std::size_t kMostArguments = 64;
    std::array<std::int64_t, kMostArguments> offsets{};
    for (std::int64_t row = first; row < first + count;) {
      const std::int64_t block = row / plan.rows;
      const std::int64_t rows = std::min((block + 1) * plan.rows, first + count) - row;
      for (std::size_t i = 0; i < plan.arguments.size(); ++i) offsets[i] = offset_of(plan.arguments[i], block);
      epilogue.apply({.row = row, .rows = rows, .channels = plan.channels}, nullptr, 0, part, row > first, scratch,
                     offsets.data());
      row += rows;
    }
  }

  // From where the tile code would look for row `block * rows` of the argument to where that stands.
  [[nodiscard]] std::int64_t offset_of(const Argument& argument, std::int64_t block) const {
    std::int64_t offset = 0;
    std::int64_t rest = block;
    for (int i = plan.outer_dims - 1; i >= 0; --i) {
      offset += rest % plan.shape[i] * argument.strides[at(i)];
      rest /= plan.shape[i];
    }
    const std::int64_t rows_before = block * plan.rows * size_of(argument.dtype);
    if (argument.access == Access::full) offset -= rows_before * plan.channels;
    if (argument.access == Access::row) offset -= rows_before;
    return offset;
  }
};

std::int64_t partial_floats(const Plan& plan) { return plan.cut.tasks * plan.sums * plan.channels; }

}  // namespace

std::int64_t workspace_pointwise(const Graph& graph, const Node& node, int threads) {
  const Plan plan = make_plan(graph, node);
  return threads * kTileScratchBytes + partial_floats(plan) * static_cast<std::int64_t>(sizeof(float));
}

Kernel prepare_pointwise(const KernelContext& context) {
  auto work = std::make_shared<Pointwise>();
  work->plan = make_plan(context.graph, context.node);
  work->guard = take_guard(context, work->plan);
  const Plan& plan = work->plan;
  require(plan.arguments.size() <= 64, Code::unsupported, "pointwise: at most 64 inputs, not ", plan.arguments.size());
  std::vector<TileArg> args;
  for (const Argument& argument : plan.arguments)
    args.push_back({.data = context.inputs[at(argument.input)], .dtype = argument.dtype, .access = argument.access});
  std::vector<TileResult> results;
  for (std::size_t i = 0; i < plan.results.size(); ++i)
    results.push_back({.data = context.outputs[i], .dtype = context.node.outputs[i].dtype, .kind = plan.results[i]});
  work->epilogue = TileEpilogue(plan.expr, std::move(args), std::move(results), plan.channels);
  work->tiles = context.scratch;
  if (plan.sums > 0) work->partial = reinterpret_cast<float*>(context.scratch + context.threads * kTileScratchBytes);
  return [work](ThreadPool& pool) {
    if (!work->guard.holds()) return;
    pool.run(work->plan.cut.tasks, [&](std::int64_t task, int worker) { work->run_task(task, worker); });
    if (work->partial != nullptr) work->epilogue.finish_sums(work->partial, work->plan.cut.tasks, &pool);
  };
}

std::span<const KernelDef> pointwise_kernels() {
  static constexpr std::array kKernels = {
      KernelDef{.op = "pointwise", .prepare = prepare_pointwise, .workspace = workspace_pointwise}};
  return kKernels;
}

}  // namespace stoker::cpu
