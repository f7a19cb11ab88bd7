#include "passes/point_expr.h"

#include <algorithm>

#include "ops/evaluate.h"
#include "ops/registry.h"

namespace stoker {

int PointExprBuilder::leaf(Value value) {
  const Node& node = graph_.node(value);
  if (node.op->name == "constant" && node.outputs[0].shape.elements() == 1) {
    return code_.constant(node.attrs.floats("values")[0]);
  }
  const auto at = std::ranges::find(leaves_, value);
  if (at != leaves_.end()) return code_.input(static_cast<int>(at - leaves_.begin()));
  leaves_.push_back(value);
  return code_.input(static_cast<int>(leaves_.size()) - 1);
}

int PointExprBuilder::append(const PointExpr& part) { return append(part.expr, part.leaves)[0]; }

std::vector<int> PointExprBuilder::append(const Expr& expr, std::span<const Value> operands) {
  std::vector<int> instructions;
  for (const Value value : operands) instructions.push_back(leaf(value));
  return code_.append(expr, instructions);
}

PointExpr PointExprBuilder::finish(std::span<const int> outputs) const {
  PointExpr result;
  const Expr all = code_.finish(outputs, static_cast<int>(leaves_.size()));
  std::vector<int> renumbered(leaves_.size(), -1);
  result.expr = all;
  for (ExprInst& inst : result.expr.code) {
    if (inst.op != ExprOp::input) continue;
    int& number = renumbered[static_cast<std::size_t>(inst.a)];
    if (number < 0) {
      number = static_cast<int>(result.leaves.size());
      result.leaves.push_back(leaves_[static_cast<std::size_t>(inst.a)]);
    }
    inst.a = number;
  }
  result.expr.inputs = static_cast<int>(result.leaves.size());
  return result;
}

NodeExpr expression_of(const Graph& graph, const Node& node) {
  NodeExpr result;
  if (node.fusion) {
    for (const FusedArg& arg : node.fusion->extra) result.inputs.push_back(arg.input);
    result.expr = node.fusion->epilogue;
    result.results = node.fusion->results;
    result.shape = epilogue_domain(graph, node);
    return result;
  }
  ExprBuilder builder;
  std::vector<int> operands;
  for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
    operands.push_back(builder.input(i));
    result.inputs.push_back(i);
  }
  const int output[] = {node.op->emit(builder, operands, node.attrs)};
  result.expr = builder.finish(output, static_cast<int>(operands.size()));
  result.results = {ResultKind::store};
  result.shape = node.outputs[0].shape;
  return result;
}

ExprWeight weigh(const Graph& graph, const PointExpr& value, const Shape& shape) {
  ExprWeight weight;
  for (const Value leaf : value.leaves) {
    const Access access = access_of(graph.spec(leaf).shape, shape);
    weight.tensors += access == Access::full ? 1 : 0;
    weight.broadcasts += access == Access::broadcast ? 1 : 0;
  }
  for (const ExprInst& inst : value.expr.code) {
    if (inst.op == ExprOp::input || inst.op == ExprOp::constant) continue;
    ++weight.instructions;
    switch (inst.op) {
      case ExprOp::exp:
      case ExprOp::expm1:
      case ExprOp::log:
      case ExprOp::tanh:
      case ExprOp::sigmoid:
      case ExprOp::erf:
      case ExprOp::cos:
      case ExprOp::pow:
      case ExprOp::uniform: ++weight.costly; break;
      default: break;
    }
  }
  return weight;
}

Node pointwise_node(const Graph& graph, const PointExpr& value, std::vector<Spec> outputs,
                    std::vector<ResultKind> results, const Shape& shape) {
  Fusion fusion{.epilogue = value.expr, .results = std::move(results)};
  Node node{.op = &find_op("pointwise"), .outputs = std::move(outputs)};
  for (const Value leaf : value.leaves) {
    fusion.extra.push_back({static_cast<int>(node.inputs.size()), access_of(graph.spec(leaf).shape, shape)});
    node.inputs.push_back(leaf);
  }
  // The rows and channels that the expression runs over: sums alone do not tell.
  node.attrs.set("shape", Ints(shape.dims().begin(), shape.dims().end()));
  node.fusion = std::make_shared<const Fusion>(std::move(fusion));
  return node;
}

bool is_channel_sum(const Graph& graph, const Node& node) {
  if (node.op->name != "reduce_sum" || node.fusion || node.attrs.integer("keep_dims") != 0) return false;
  const int rank = graph.spec(node.inputs[0]).shape.rank();
  const Ints& axes = node.attrs.ints("axes");
  return rank >= 2 && static_cast<int>(axes.size()) == rank - 1 && axes.back() == rank - 2;
}

Groups::Groups(std::size_t nodes) : root_(nodes), members_(nodes) {
  for (std::size_t i = 0; i < nodes; ++i) {
    root_[i] = static_cast<int>(i);
    members_[i] = {static_cast<int>(i)};
  }
}

void Groups::join(int node, int root) {
  members_[static_cast<std::size_t>(root)].push_back(node);
  members_[static_cast<std::size_t>(node)].clear();
  root_[static_cast<std::size_t>(node)] = root;
}

bool depends_on(const Graph& graph, Value value, int root, const Groups& groups) {
  const int target = groups.of(root);
  std::vector<bool> visited(graph.nodes.size(), false);
  std::vector<int> open{groups.of(value.node)};
  while (!open.empty()) {
    const int group = open.back();
    open.pop_back();
    if (group == target) return true;
    if (visited[static_cast<std::size_t>(group)]) continue;
    visited[static_cast<std::size_t>(group)] = true;
    for (const int member : groups.members(group)) {
      for (const Value input : graph.nodes[static_cast<std::size_t>(member)].inputs)
        open.push_back(groups.of(input.node));
    }
  }
  return false;
}

bool fits_as_prologue(const Graph& graph, const Target& target, int number, std::span<const int> users) {
  const Node& node = graph.nodes[static_cast<std::size_t>(number)];
  if (!node.fusion || node.op->name != "pointwise" || node.outputs.size() != 1) return false;
  if (node.fusion->results[0] != ResultKind::store || node.outputs[0].dtype != DType::f32) return false;
  const ExprWeight weight = weigh(graph, {node.fusion->epilogue, node.inputs}, node.outputs[0].shape);
  if (weight.tensors < 1 || weight.broadcasts > 0 || users.empty()) return false;
  // Every use must be as a whole operand, not as an extra argument of an epilogue.
  return std::ranges::all_of(users, [&](int user) {
    const Node& reader = graph.nodes[static_cast<std::size_t>(user)];
    if (!reader.op->traits.kernel) return false;
    const std::size_t operands = reader.fusion ? reader.fusion->operands.size() : reader.inputs.size();
    for (std::size_t i = 0; i < reader.inputs.size(); ++i) {
      if (reader.inputs[i].node != number) continue;
      if (i >= operands || weight.tensors > target.prologue_tensors(graph, reader, static_cast<int>(i))) return false;
    }
    return true;
  });
}

}  // namespace stoker
