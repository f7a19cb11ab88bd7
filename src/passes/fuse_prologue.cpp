// Lets kernel ops compute their operands while they load them: a `pointwise` node all of whose users are kernel ops
// that can take it disappears into them, so its value is never stored.
#include <algorithm>

#include "passes/pass.h"
#include "passes/point_expr.h"
#include "passes/rewriter.h"

namespace stoker {
namespace {

class PrologueFuser {
 public:
  PrologueFuser(const Graph& graph, const Target& target)
      : graph_(graph), target_(target), users_(users_of(graph)), inlined_(graph.nodes.size(), false) {}

  Graph run() {
    std::vector<bool> needed(graph_.nodes.size(), false);
    for (const NamedValue& output : graph_.outputs) needed[static_cast<std::size_t>(output.value.node)] = true;
    for (const StateWrite& write : graph_.writes) needed[static_cast<std::size_t>(write.value.node)] = true;
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      inlined_[static_cast<std::size_t>(i)] = !needed[static_cast<std::size_t>(i)] &&
                                              fits_as_prologue(graph_, target_, i, users_[static_cast<std::size_t>(i)]);
    }
    Rewriter rewriter(graph_);
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      if (inlined_[static_cast<std::size_t>(i)]) continue;
      Node node = graph_.nodes[static_cast<std::size_t>(i)];
      if (node.op->traits.kernel) node = with_prologues(node);
      node.inputs = rewriter.map(node.inputs);
      rewriter.add(i, std::move(node));
    }
    return std::move(rewriter).finish();
  }

 private:
  Node with_prologues(const Node& node) const {
    const auto is_inlined = [&](Value value) { return inlined_[static_cast<std::size_t>(value.node)]; };
    if (std::ranges::none_of(node.inputs, is_inlined)) return node;
    Fusion fusion = node.fusion ? *node.fusion : Fusion{};
    const std::size_t operands = node.fusion ? fusion.operands.size() : node.inputs.size();
    if (!node.fusion) fusion.results.assign(node.outputs.size(), ResultKind::store);
    fusion.operands.resize(operands);
    Node fused = node;
    fused.inputs.clear();
    const auto place = [&](Value value) {
      const auto at = std::ranges::find(fused.inputs, value);
      if (at != fused.inputs.end()) return static_cast<int>(at - fused.inputs.begin());
      fused.inputs.push_back(value);
      return static_cast<int>(fused.inputs.size()) - 1;
    };
    for (std::size_t i = 0; i < operands; ++i) {
      const Value operand = node.inputs[i];
      Prologue& prologue = fusion.operands[i];
      if (!is_inlined(operand)) {
        prologue = {identity_expr(), {{place(operand), Access::full}}};
        continue;
      }
      const Node& source = graph_.node(operand);
      prologue = {source.fusion->epilogue, {}};
      for (const FusedArg& arg : source.fusion->extra) {
        prologue.args.push_back({place(source.inputs[static_cast<std::size_t>(arg.input)]), arg.access});
      }
    }
    for (FusedArg& arg : fusion.extra) arg.input = place(node.inputs[static_cast<std::size_t>(arg.input)]);
    fused.fusion = std::make_shared<const Fusion>(std::move(fusion));
    return fused;
  }

  const Graph& graph_;
  const Target& target_;
  std::vector<std::vector<int>> users_;
  std::vector<bool> inlined_;
};

}  // namespace

Graph fuse_prologue(const Graph& graph, const Target& target, const PassOptions& options) {
  return eliminate_dead(PrologueFuser(graph, target).run(), target, options);
}

}  // namespace stoker
