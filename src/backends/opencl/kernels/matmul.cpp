// matmul: op(x) op(y) on the last two dimensions; leading ones are batch dimensions, equal or absent on one side.
// A batch on x alone is folded into the rows where x is not transposed.
#include <array>

#include "backends/opencl/kernels/gemm.h"

namespace stoker::opencl {
namespace {

GemmProblem problem_of(const KernelContext& context) {
  const Node& node = context.node;
  const Shape x = operand_spec(context.graph, node, 0).shape;
  const Shape y = operand_spec(context.graph, node, 1).shape;
  GemmProblem problem;
  problem.transpose_a = node.attrs.integer("transpose_x") != 0;
  problem.transpose_b = node.attrs.integer("transpose_y") != 0;
  problem.m = x[problem.transpose_a ? -1 : -2];
  problem.k = x[problem.transpose_a ? -2 : -1];
  problem.n = y[problem.transpose_b ? -2 : -1];
  const std::int64_t x_batch = x.elements(0, x.rank() - 2);
  const std::int64_t y_batch = y.elements(0, y.rank() - 2);
  if (y_batch == 1 && !problem.transpose_a) {
    problem.m *= x_batch;
  } else {
    problem.batch = std::max(x_batch, y_batch);
    problem.batched_a = x_batch > 1;
    problem.batched_b = y_batch > 1;
  }
  return problem;
}

std::vector<Work> prepare(const KernelContext& context) { return gemm_work(context, problem_of(context)); }
std::int64_t workspace(const KernelContext& context) { return gemm_workspace(context, problem_of(context)); }
int prologue_tensors(const Graph&, const Node&, int, const Device&) { return 2; }
bool takes_epilogue(const Graph&, const Node&, const Device&) { return true; }

constexpr std::array kKernels = {KernelDef{.op = "matmul",
                                           .prepare = prepare,
                                           .workspace = workspace,
                                           .prologue_tensors = prologue_tensors,
                                           .takes_epilogue = takes_epilogue}};

}  // namespace

std::span<const KernelDef> matmul_kernels() { return kKernels; }

}  // namespace stoker::opencl
