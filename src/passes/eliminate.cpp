// Common subexpressions and dead code.
#include <map>
#include <utility>

#include "passes/pass.h"
#include "passes/rewriter.h"

namespace stoker {

Graph eliminate_common(const Graph& graph, const Target&, const PassOptions&) {
  using Key = std::tuple<const OpDef*, std::vector<Value>, std::string>;
  std::map<Key, std::vector<int>> seen;  // new nodes with this op, inputs and (abbreviated) attributes
  Rewriter rewriter(graph);
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const Node& node = graph.nodes[static_cast<std::size_t>(i)];
    if (node.op->traits.random || node.fusion || node.op->name == "input") {
      rewriter.copy(i);
      continue;
    }
    std::vector<int>& same = seen[{node.op, rewriter.map(node.inputs), to_string(node.attrs)}];
    int found = -1;
    for (const int candidate : same) {
      if (rewriter.builder().graph().nodes[static_cast<std::size_t>(candidate)].attrs == node.attrs) found = candidate;
    }
    if (found < 0) {
      rewriter.copy(i);
      same.push_back(rewriter.map(Value{i, 0}).node);
      continue;
    }
    for (int k = 0; k < static_cast<int>(node.outputs.size()); ++k) rewriter.replace({i, k}, {found, k});
  }
  return std::move(rewriter).finish();
}

Graph eliminate_dead(const Graph& graph, const Target&, const PassOptions&) {
  std::vector<bool> live(graph.nodes.size(), false);
  const auto mark = [&](Value value) { live[static_cast<std::size_t>(value.node)] = true; };
  for (const NamedValue& input : graph.inputs) mark(input.value);  // a caller fills them all
  for (const NamedValue& output : graph.outputs) mark(output.value);
  for (const StateWrite& write : graph.writes) mark(write.value);
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    if (!live[i]) continue;
    for (const Value input : graph.nodes[i].inputs) mark(input);
  }
  Rewriter rewriter(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (live[i]) rewriter.copy(static_cast<int>(i));
  }
  return std::move(rewriter).finish();
}

}  // namespace stoker
