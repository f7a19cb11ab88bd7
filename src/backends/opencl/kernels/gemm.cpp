// Chooses the kernel for a matrix product (plain, panel on CPUs, direct on GPUs), and what they share.
#include "backends/opencl/kernels/gemm.h"

#include <array>
#include <bit>

#include "base/error.h"

namespace stoker::opencl {
namespace {

constexpr std::int64_t kGroup = 64;
constexpr std::int64_t kSumChunks = 16;  // rows of partial sums

// Rows of a work-item where one work-item makes a column: all of a chunk if their sum is wanted, else one.
std::int64_t rows_each(std::int64_t sums, std::int64_t rows) { return sums > 0 ? ceil_div(rows, kSumChunks) : 1; }

std::int64_t chunk_sums(std::int64_t sums, std::int64_t rows, std::int64_t columns) {
  return sums > 0 ? ceil_div(rows, rows_each(sums, rows)) * sums * columns : 0;
}

// The parameters say which kernel they are for.
bool is_panel(const Params& params) { return !params.empty() && params[0].first == "V"; }

}  // namespace

void append_args(std::vector<Arg>& args, const std::vector<Arg>& more) {
  args.insert(args.end(), more.begin(), more.end());
}

int plain_input(const Node& node, int operand) {
  if (!node.fusion) return operand;
  const Prologue& prologue = node.fusion->operands[static_cast<std::size_t>(operand)];
  const bool plain = prologue.expr.is_identity() && prologue.args[0].access == Access::full;
  return plain ? prologue.args[0].input : -1;
}

bool stands(const KernelContext& context, const GemmProblem& problem, int operand) {
  return problem.placed || plain_input(context.node, operand) >= 0;
}

Place place_of(const KernelContext& context, const GemmProblem& problem, int operand, const GemmOwn& own) {
  if (problem.placed) return (operand == problem.a ? own.a : own.b)->args.front().place;
  return context.inputs[static_cast<std::size_t>(plain_input(context.node, operand))];
}

std::int64_t sums_of(const KernelContext& context, const GemmProblem& problem) {
  return problem.placed ? 0 : static_cast<std::int64_t>(sum_outputs(context.node).size());
}

Cost cost_of(const KernelContext& context, const GemmProblem& p) {
  if (!p.placed) return cost_of(context.graph, context.node);
  const std::int64_t floats = p.a_items() * p.m * p.k + p.b_items() * p.n * p.k + p.batch * p.m * p.n;
  return {.flops = 2.0 * static_cast<double>(p.batch * p.m) * static_cast<double>(p.n * p.k),
          .bytes = 4.0 * static_cast<double>(floats)};
}

Rendered as_it_stands(const Place& place) { return {.text = {}, .args = {Arg::tensor(place)}}; }

std::string problem_name(const GemmProblem& problem) {
  const auto size = [](std::int64_t n) { return std::bit_ceil(static_cast<std::uint64_t>(n)); };
  return str(problem.transpose_a ? "T" : "N", problem.transpose_b ? "T" : "N", " ", size(problem.m), "x",
             size(problem.n), "x", size(problem.k));
}

std::vector<Work> gemm_work(const KernelContext& context, const GemmProblem& problem, const GemmOwn& own) {
  const Params& params = context.tuning.params("gemm", problem_name(problem));
  if (is_panel(params) && gemm_places(problem, params)) return gemm_placed(context, problem, params, own);
  if (is_panel(params)) return gemm_panel(context, problem, params, own);
  DCHECK(problem.placed || (own.a == nullptr && own.b == nullptr && own.y == nullptr));
  return params.empty() ? gemm_plain(context, problem, own) : gemm_direct(context, problem, params, own);
}

std::int64_t gemm_workspace(const KernelContext& context, const GemmProblem& problem) {
  const Params& params = context.tuning.params("gemm", problem_name(problem));
  if (is_panel(params) && gemm_places(problem, params)) return 0;
  if (is_panel(params)) return gemm_panel_workspace(context, problem, params);
  return params.empty() ? gemm_plain_workspace(context, problem) : gemm_direct_workspace(context, problem, params);
}

std::vector<Work> gemm_plain(const KernelContext& context, const GemmProblem& problem, const GemmOwn& own) {
  constexpr std::array widths = {1};
  const Rendered a = own.a != nullptr ? *own.a : render_operand(context, problem.a, "A", widths, false);
  const Rendered b = own.b != nullptr ? *own.b : render_operand(context, problem.b, "B", widths, false);
  const Rendered y = own.y != nullptr ? *own.y : render_epilogue(context, "Y", widths, false);
  Launch launch{.program = {"gemm_plain",
                            a.text + b.text + y.text,
                            {{"TA", problem.transpose_a ? 1 : 0}, {"TB", problem.transpose_b ? 1 : 0}}},
                .kernel = "gemm_plain",
                .cost = cost_of(context, problem)};
  const std::int64_t sums = sums_of(context, problem);
  const std::int64_t each = rows_each(sums, problem.rows());
  for (const std::int64_t number :
       {problem.rows(), problem.m, problem.n, problem.k, each, problem.batched_a ? problem.m * problem.k : 0,
        problem.batched_b ? problem.n * problem.k : 0})
    launch.args.push_back(Arg::integer(number));
  append_args(launch.args, a.args);
  append_args(launch.args, b.args);
  const std::int64_t chunks = ceil_div(problem.rows(), each);
  GemmScratch scratch(context.scratch);
  const Place partials = scratch.floats(chunk_sums(sums, problem.rows(), problem.n));
  if (sums > 0) launch.args.push_back(Arg::tensor(partials));
  append_args(launch.args, y.args);
  launch.global = {static_cast<std::size_t>(round_up(problem.n, kGroup)), static_cast<std::size_t>(chunks), 1};
  launch.local = {static_cast<std::size_t>(kGroup), 1, 1};
  std::vector<Work> work{std::move(launch)};
  if (sums > 0) work.emplace_back(combine_sums(context, partials, chunks, problem.n));
  return work;
}

std::int64_t gemm_plain_workspace(const KernelContext& context, const GemmProblem& problem) {
  GemmScratch scratch({});
  static_cast<void>(scratch.floats(chunk_sums(sums_of(context, problem), problem.rows(), problem.n)));
  return scratch.used();
}

std::int64_t reduce_sums(const KernelContext& context, const GemmProblem& problem) {
  return chunk_sums(sums_of(context, problem), problem.m, problem.n);
}

void append_reduce(std::vector<Work>& work, const KernelContext& context, const GemmProblem& problem,
                   std::int64_t parts, const Place& from, const Place& sums) {
  const int widest = context.device.is_cpu() ? 16 : 4;
  const int width = problem.n % widest == 0 ? widest : problem.n % 4 == 0 ? 4 : 1;
  const std::array widths = {width};
  const Rendered y = render_epilogue(context, "Y", widths, true);
  Launch launch{.program = {"gemm_reduce", y.text, {{"VEC", width}}}, .kernel = "gemm_reduce"};
  const std::int64_t each = rows_each(sums_of(context, problem), problem.m);
  const std::int64_t chunks = ceil_div(problem.m, each);
  launch.args = {Arg::integer(problem.m), Arg::integer(problem.n), Arg::integer(parts), Arg::integer(each),
                 Arg::tensor(from)};
  const bool has_sums = sums_of(context, problem) > 0;
  if (has_sums) launch.args.push_back(Arg::tensor(sums));
  append_args(launch.args, y.args);
  launch.global = {static_cast<std::size_t>(round_up(chunks * (problem.n / width), kGroup)), 1, 1};
  launch.local = {static_cast<std::size_t>(kGroup), 1, 1};
  const double elements = static_cast<double>(problem.m) * static_cast<double>(problem.n);
  launch.cost = {.flops = elements * static_cast<double>(parts),
                 .bytes = 4.0 * elements * static_cast<double>(parts + 1)};
  work.emplace_back(std::move(launch));
  if (has_sums) work.emplace_back(combine_sums(context, sums, chunks, problem.n));
}

}  // namespace stoker::opencl
