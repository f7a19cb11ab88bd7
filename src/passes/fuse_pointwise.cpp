// Joins pointwise ops. Every pointwise value becomes one `pointwise` node over values that are really stored; values
// that are cheaper to compute again than to keep (normalise + activation, masks) are recomputed where they are used.
//
// A value is kept if something needs it in memory, if it may be an epilogue of the op that makes its tensor (then it
// costs nothing), or if recomputing would read more than storing does.
#include <algorithm>

#include "passes/pass.h"
#include "passes/point_expr.h"
#include "passes/rewriter.h"

namespace stoker {
namespace {

constexpr int kMostInstructions = 24;
constexpr int kMostLeaves = 8;
constexpr std::int64_t kSmall = 8192;  // elements; a vector of channels, not a tensor

class PointwiseFuser {
 public:
  PointwiseFuser(const Graph& graph, const Target& target, const PassOptions& options)
      : graph_(graph),
        target_(target),
        epilogues_(options.is_on("fuse-epilogue")),
        prologues_(options.is_on("fuse-prologue")),
        users_(users_of(graph)),
        exprs_(graph.nodes.size()),
        recompute_(graph.nodes.size(), false),
        epilogue_root_(graph.nodes.size(), -1),
        needed_(graph.nodes.size(), false),
        alone_(graph.nodes.size()) {
    for (const NamedValue& output : graph.outputs) needed_[static_cast<std::size_t>(output.value.node)] = true;
    for (const StateWrite& write : graph.writes) needed_[static_cast<std::size_t>(write.value.node)] = true;
  }

  Graph run() {
    Rewriter rewriter(graph_);
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      const Node& node = graph_.nodes[static_cast<std::size_t>(i)];
      if (!node.op->traits.pointwise) {
        rewriter.copy(i);
        continue;
      }
      const auto at = static_cast<std::size_t>(i);
      exprs_[at] = expression(node);
      epilogue_root_[at] = find_epilogue_root(i);
      recompute_[at] = should_recompute(i);
      Node fused = pointwise_node(graph_, exprs_[at], node.outputs, {ResultKind::store}, node.outputs[0].shape);
      fused.inputs = rewriter.map(fused.inputs);
      fused.phase = node.phase;
      fused.name = node.name;
      rewriter.add(i, std::move(fused));
    }
    return std::move(rewriter).finish();
  }

 private:
  [[nodiscard]] const Shape& shape(int node) const {
    return graph_.nodes[static_cast<std::size_t>(node)].outputs[0].shape;
  }

  PointExpr expression(const Node& node) {
    PointExprBuilder builder(graph_);
    std::vector<int> arguments;
    for (const Value input : node.inputs) {
      const bool inlined =
          recompute_[static_cast<std::size_t>(input.node)] && graph_.spec(input).shape == node.outputs[0].shape;
      arguments.push_back(inlined ? builder.append(exprs_[static_cast<std::size_t>(input.node)]) : builder.leaf(input));
    }
    const int output[] = {node.op->emit(builder.code(), arguments, node.attrs)};
    return builder.finish(output);
  }

  // The kernel op whose epilogue could compute this value: it makes one of the leaves, and no other leaf waits for it.
  int find_epilogue_root(int number) {
    if (!epilogues_) return -1;
    const PointExpr& value = exprs_[static_cast<std::size_t>(number)];
    for (const Value leaf : value.leaves) {
      if (graph_.spec(leaf).shape != shape(number)) continue;
      const Node& producer = graph_.node(leaf);
      int root = epilogue_root_[static_cast<std::size_t>(leaf.node)];
      if (producer.op->traits.kernel && target_.takes_epilogue(graph_, producer)) root = leaf.node;
      if (root >= 0 &&
          graph_.nodes[static_cast<std::size_t>(root)].phase != graph_.nodes[static_cast<std::size_t>(number)].phase)
        continue;
      if (root >= 0 && others_are_ready(value, leaf, root, shape(number))) return root;
    }
    return -1;
  }

  bool others_are_ready(const PointExpr& value, Value own, int root, const Shape& to) {
    return std::ranges::all_of(value.leaves, [&](Value leaf) {
      if (leaf == own || epilogue_root_[static_cast<std::size_t>(leaf.node)] == root || leaf.node == root) return true;
      return access_of(graph_.spec(leaf).shape, to) != Access::broadcast && !depends_on(graph_, leaf, root, alone_);
    });
  }

  // Whether a user that is no pointwise op can do without the value in memory.
  bool user_can_fuse(int user, int number, const ExprWeight& weight) {
    const Node& node = graph_.nodes[static_cast<std::size_t>(user)];
    if (is_channel_sum(graph_, node)) return true;
    if (!prologues_ || !node.op->traits.kernel || weight.broadcasts > 0) return false;
    for (std::size_t operand = 0; operand < node.inputs.size(); ++operand) {
      if (node.inputs[operand].node != number) continue;
      if (weight.tensors < 1 || weight.tensors > target_.prologue_tensors(graph_, node, static_cast<int>(operand))) {
        return false;
      }
    }
    return true;
  }

  bool should_recompute(int number) {
    const auto at = static_cast<std::size_t>(number);
    const Node& node = graph_.nodes[at];
    const ExprWeight weight = weigh(graph_, exprs_[at], shape(number));
    const std::vector<int>& users = users_[at];
    if (needed_[at] || epilogue_root_[at] >= 0 || users.empty()) return false;
    if (weight.instructions > kMostInstructions || exprs_[at].leaves.size() > kMostLeaves) return false;
    bool later_phase = false;
    for (const int user : users) {
      const Node& reader = graph_.nodes[static_cast<std::size_t>(user)];
      later_phase |= reader.phase != node.phase;
      if (reader.op->traits.pointwise ? reader.outputs[0].shape != shape(number)
                                      : !user_can_fuse(user, number, weight)) {
        return false;
      }
    }
    if (users.size() == 1 && !later_phase) return true;
    if (node.phase == Phase::update) return false;  // its users follow it into one node (fuse-epilogue)
    if (shape(number).elements() <= kSmall) return weight.instructions <= 4;
    if (weight.costly > 1) return false;
    // Recomputing n times reads tensors * n; storing reads tensors + n and writes 1, but frees what it read.
    return weight.tensors <= 1 || (weight.tensors == 2 && users.size() <= 3 && !later_phase);
  }

  const Graph& graph_;
  const Target& target_;
  bool epilogues_;
  bool prologues_;
  std::vector<std::vector<int>> users_;
  std::vector<PointExpr> exprs_;
  std::vector<bool> recompute_;
  std::vector<int> epilogue_root_;
  std::vector<bool> needed_;
  Groups alone_;  // nothing is joined yet
};

}  // namespace

Graph fuse_pointwise(const Graph& graph, const Target& target, const PassOptions& options) {
  return eliminate_dead(PointwiseFuser(graph, target, options).run(), target, options);
}

}  // namespace stoker
