// The verifier that follows every pass.
#include <stdexcept>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/op_def.h"

namespace stoker {
namespace {

[[noreturn]] void broken(const Graph& graph, int node, const std::string& what) {
  throw std::logic_error(str("graph: ", what, "\n  ", to_string(graph, node)));
}

void verify_args(const Graph& graph, int number, const std::vector<FusedArg>& args, const Expr& expr, std::size_t own) {
  const Node& node = graph.nodes[static_cast<std::size_t>(number)];
  if (static_cast<std::size_t>(expr.inputs) != args.size() + own)
    broken(graph, number, "an expression's operands do not match");
  for (const FusedArg& arg : args) {
    if (arg.input < 0 || arg.input >= static_cast<int>(node.inputs.size()))
      broken(graph, number, "a fused input is out of range");
  }
  for (std::size_t i = 0; i < expr.code.size(); ++i) {
    const ExprInst& inst = expr.code[i];
    const int count = arity(inst.op);
    const std::int32_t arguments[] = {inst.a, inst.b, inst.c};
    for (int k = 0; k < count; ++k) {
      if (arguments[k] < 0 || arguments[k] >= static_cast<std::int32_t>(i))
        broken(graph, number, "an expression is out of order");
    }
    if (inst.op == ExprOp::input && (inst.a < 0 || inst.a >= expr.inputs))
      broken(graph, number, "an expression reads no operand");
  }
}

void verify_fusion(const Graph& graph, int number) {
  const Node& node = graph.nodes[static_cast<std::size_t>(number)];
  const Fusion& fusion = *node.fusion;
  const bool kernel = node.op->traits.kernel;
  for (const Prologue& prologue : fusion.operands) verify_args(graph, number, prologue.args, prologue.expr, 0);
  verify_args(graph, number, fusion.extra, fusion.epilogue, kernel ? 1 : 0);
  if (fusion.results.size() != node.outputs.size() || fusion.epilogue.outputs.size() != node.outputs.size()) {
    broken(graph, number, "a fused node's results and outputs differ in number");
  }
}

void verify_node(const Graph& graph, int number) {
  const Node& node = graph.nodes[static_cast<std::size_t>(number)];
  std::vector<Spec> inputs;
  for (const Value input : node.inputs) {
    if (input.node < 0 || input.node >= number) broken(graph, number, "an input is not defined before its use");
    if (input.index < 0 || input.index >= static_cast<int>(graph.node(input).outputs.size())) {
      broken(graph, number, "an input names an output that does not exist");
    }
    inputs.push_back(graph.spec(input));
  }
  if (node.fusion) {
    verify_fusion(graph, number);
  } else if (node.op->infer(inputs, node.attrs) != node.outputs) {
    broken(graph, number, "output specs are not what the op infers");
  }
}

}  // namespace

void verify(const Graph& graph) {
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) verify_node(graph, i);
  std::vector<bool> written(graph.states.size(), false);
  for (const StateWrite& write : graph.writes) {
    const auto state = static_cast<std::size_t>(write.state);
    if (written[state]) throw std::logic_error("graph: state " + graph.states[state].name + " is written twice");
    written[state] = true;
    if (graph.spec(write.value) != graph.states[state].spec) {
      throw std::logic_error("graph: state " + graph.states[state].name + " is written with another spec");
    }
  }
}

}  // namespace stoker
