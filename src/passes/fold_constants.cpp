// Computes small f32 nodes whose inputs are all constants, with the ops' references.
#include "ops/ops.h"
#include "passes/pass.h"
#include "passes/rewriter.h"

namespace stoker {
namespace {

constexpr std::int64_t kMostElements = 4096;

bool is_constant(const Graph& graph, Value value) { return graph.node(value).op->name == "constant"; }

bool can_fold(const Graph& graph, const Node& node) {
  if (node.inputs.empty() || node.outputs.size() != 1 || node.op->traits.random || node.fusion) return false;
  if (node.outputs[0].dtype != DType::f32 || node.outputs[0].shape.elements() > kMostElements) return false;
  for (const Value input : node.inputs) {
    if (!is_constant(graph, input)) return false;
  }
  return true;
}

std::vector<float> fold(const Graph& graph, const Node& node) {
  std::vector<RefTensor> inputs;
  for (const Value input : node.inputs) {
    const std::vector<float>& values = graph.node(input).attrs.floats("values");
    inputs.push_back({graph.spec(input).shape, {values.begin(), values.end()}});
  }
  std::vector<RefTensor> outputs(1);
  outputs[0].shape = node.outputs[0].shape;
  outputs[0].data.resize(static_cast<std::size_t>(outputs[0].shape.elements()));
  node.op->reference(inputs, outputs, node.attrs);
  return {outputs[0].data.begin(), outputs[0].data.end()};
}

}  // namespace

Graph fold_constants(const Graph& graph, const Target&, const PassOptions&) {
  Rewriter rewriter(graph);
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    // Inputs are looked up in the new graph, where they may have become constants.
    Node node = graph.nodes[static_cast<std::size_t>(i)];
    node.inputs = rewriter.map(node.inputs);
    GraphBuilder& builder = rewriter.builder();
    if (can_fold(builder.graph(), node)) {
      builder.set_phase(node.phase);
      rewriter.replace({i, 0}, ops::constant(builder, node.outputs[0].shape, fold(builder.graph(), node)));
    } else {
      rewriter.add(i, std::move(node));
    }
  }
  return std::move(rewriter).finish();
}

}  // namespace stoker
