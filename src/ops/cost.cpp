#include "ops/cost.h"

#include <algorithm>

#include "ops/common.h"
#include "ops/evaluate.h"

namespace stoker {
namespace {

double expr_flops(const Expr& expr, const Shape& domain) {
  double count = 0;
  for (const ExprInst& inst : expr.code) {
    if (arity(inst.op) > 0) count += inst.op == ExprOp::mul_add ? 2 : 1;
  }
  return count * static_cast<double>(domain.elements());
}

Cost fused_cost(const Graph& graph, const Node& node) {
  Cost cost;
  if (node.op->traits.kernel) {
    const std::vector<Spec> operands = operand_specs(graph, node);
    cost = node.op->cost(operands, node.op->infer(operands, node.attrs), node.attrs);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      cost.flops += expr_flops(node.fusion->operands[i].expr, operands[i].shape);
    }
  }
  const Shape domain = epilogue_domain(graph, node);
  cost.flops += expr_flops(node.fusion->epilogue, domain);
  for (const ResultKind kind : node.fusion->results) {
    if (kind == ResultKind::sum_channel) cost.flops += static_cast<double>(domain.elements());
  }
  // A tensor read by several operands is moved once.
  std::vector<Value> read = node.inputs;
  std::ranges::sort(read);
  read.erase(std::unique(read.begin(), read.end()), read.end());
  cost.bytes = ops::bytes_of(node.outputs);
  for (const Value value : read) cost.bytes += static_cast<double>(graph.spec(value).bytes());
  return cost;
}

}  // namespace

Cost cost_of(const Graph& graph, const Node& node) {
  if (node.fusion) return fused_cost(graph, node);
  std::vector<Spec> inputs;
  for (const Value input : node.inputs) inputs.push_back(graph.spec(input));
  return node.op->cost(inputs, node.outputs, node.attrs);
}

}  // namespace stoker
