// Writes composite ops in simpler ones, so that fusion sees their parts.
#include "base/error.h"
#include "passes/pass.h"
#include "passes/rewriter.h"

namespace stoker {

Graph expand(const Graph& graph, const Target&, const PassOptions&) {
  Rewriter rewriter(graph);
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const Node& node = graph.nodes[static_cast<std::size_t>(i)];
    if (!node.op->traits.composite) {
      rewriter.copy(i);
      continue;
    }
    rewriter.builder().set_phase(node.phase);
    rewriter.builder().set_name(node.name);
    const std::vector<Value> inputs = rewriter.map(node.inputs);
    const std::vector<Value> outputs = node.op->expand(rewriter.builder(), node, inputs);
    DCHECK(outputs.size() == node.outputs.size());
    for (std::size_t k = 0; k < outputs.size(); ++k) rewriter.replace({i, static_cast<int>(k)}, outputs[k]);
  }
  return std::move(rewriter).finish();
}

}  // namespace stoker
