// Lets the op that makes a tensor do what follows: a kernel op (or a `pointwise` node) takes in the pointwise nodes of
// its shape and the channel sums that read its results, as long as nothing they need waits for those results.
#include <algorithm>
#include <map>

#include "passes/pass.h"
#include "passes/point_expr.h"
#include "passes/rewriter.h"

namespace stoker {
namespace {

constexpr int kMostResults = 8;
constexpr int kMostInstructions = 64;

// A root and what it has taken in.
struct Group {
  explicit Group(const Graph& graph) : builder(graph) {}

  PointExprBuilder builder;
  std::map<Value, int> instructions;  // values computed inside, by instruction
  std::vector<Value> order;           // the same, in the order they were taken in
  std::map<Value, Value> sums;        // channel sums taken in -> the value that is summed
  std::vector<Value> sum_order;
  bool grew = false;
};

class EpilogueFuser {
 public:
  EpilogueFuser(const Graph& graph, const Target& target)
      : graph_(graph),
        target_(target),
        users_(users_of(graph)),
        groups_(graph.nodes.size()),
        needed_(graph.nodes.size()) {
    for (const NamedValue& output : graph.outputs) needed_[static_cast<std::size_t>(output.value.node)] = true;
    for (const StateWrite& write : graph.writes) needed_[static_cast<std::size_t>(write.value.node)] = true;
  }

  Graph run() {
    find_ready_times();
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      if (groups_.of(i) == i && is_root(i)) grow(i);
    }
    return emit();
  }

 private:
  [[nodiscard]] const Node& node(int i) const { return graph_.nodes[static_cast<std::size_t>(i)]; }

  [[nodiscard]] bool is_pointwise(int i) const { return node(i).fusion && node(i).op->name == "pointwise"; }

  bool is_root(int i) const {
    if (is_pointwise(i)) return true;
    return node(i).op->traits.kernel && !node(i).fusion && target_.takes_epilogue(graph_, node(i));
  }

  void grow(int root) {
    auto [at, inserted] = found_.emplace(root, Group(graph_));
    Group& group = at->second;
    if (is_pointwise(root)) {
      take_pointwise(group, root);
    } else {
      take_value(group, {root, 0}, group.builder.leaf({root, 0}));
    }
    group.grew = false;
    for (std::size_t i = 0; i < group.order.size(); ++i) {  // grows while it is walked
      const Value value = group.order[i];
      for (const int user : users_[static_cast<std::size_t>(value.node)]) {
        if (can_take(group, root, user)) take(group, root, user);
      }
    }
    if (!group.grew) found_.erase(root);
  }

  static void take_value(Group& group, Value value, int instruction) {
    group.instructions.emplace(value, instruction);
    group.order.push_back(value);
  }

  void take_pointwise(Group& group, int number) {
    const Node& part = node(number);
    std::vector<int> operands;
    for (const Value input : part.inputs) {
      const auto inside = group.instructions.find(input);
      operands.push_back(inside != group.instructions.end() ? inside->second : group.builder.leaf(input));
    }
    // A pointwise node's extra arguments are its inputs in order (point_expr.cpp).
    const std::vector<int> outputs = group.builder.code().append(part.fusion->epilogue, operands);
    for (std::size_t k = 0; k < outputs.size(); ++k) take_value(group, {number, static_cast<int>(k)}, outputs[k]);
  }

  bool can_take(const Group& group, int root, int user) {
    if (groups_.of(user) != user || user == root || found_.contains(user)) return false;
    if (static_cast<int>(group.order.size() + group.sum_order.size()) >= kMostResults * 2) return false;
    const Shape& shape = root_shape(root);
    if (node(user).phase != node(root).phase) return false;
    if (is_channel_sum(graph_, node(user))) return group.instructions.contains(node(user).inputs[0]);
    if (!is_pointwise(user) || node(user).outputs[0].shape != shape) return false;
    if (node(user).fusion->epilogue.code.size() > kMostInstructions) return false;
    const bool kernel = !is_pointwise(root);
    // What can vanish into its users costs no memory; taken into a pointwise node it would.
    if (!kernel && fits_as_prologue(graph_, target_, user, users_[static_cast<std::size_t>(user)])) return false;
    return std::ranges::all_of(node(user).inputs, [&](Value input) {
      if (group.instructions.contains(input)) return true;
      // A sum of this very group is complete only when the whole tensor is.
      if (kernel && access_of(graph_.spec(input).shape, shape) == Access::broadcast) return false;
      if (graph_.node(input).op->traits.source) return true;
      return is_ready(input, root) && !depends_on(graph_, input, root, groups_);
    });
  }

  // Whether a value is there when the root runs. One that comes later may be independent of the root, but the root, and
  // all that needs it, would have to wait. The updates of a tensor wait for its gradient's check anyway.
  bool is_ready(Value input, int root) const {
    if (node(root).phase == Phase::update && root_shape(root).elements() > 1) return true;
    return ready_after_[static_cast<std::size_t>(input.node)] <= ready_after_[static_cast<std::size_t>(root)];
  }

  // For each node, the last step of substance (no source, no pointwise node) that it needs, itself included.
  void find_ready_times() {
    ready_after_.assign(graph_.nodes.size(), -1);
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      int& time = ready_after_[static_cast<std::size_t>(i)];
      for (const Value input : node(i).inputs)
        time = std::max(time, ready_after_[static_cast<std::size_t>(input.node)]);
      if (!is_pointwise(i) && !node(i).op->traits.source && !node(i).op->traits.view) time = i;
    }
  }

  [[nodiscard]] const Shape& root_shape(int root) const { return node(root).outputs[0].shape; }

  void take(Group& group, int root, int user) {
    groups_.join(user, root);
    group.grew = true;
    if (is_pointwise(user)) {
      take_pointwise(group, user);
    } else {
      group.sums.emplace(Value{user, 0}, node(user).inputs[0]);
      group.sum_order.push_back({user, 0});
    }
  }

  bool is_used_outside(Value value, int root) {
    if (needed_[static_cast<std::size_t>(value.node)]) return true;
    return std::ranges::any_of(users_[static_cast<std::size_t>(value.node)], [&](int user) {
      return groups_.of(user) != root && std::ranges::find(node(user).inputs, value) != node(user).inputs.end();
    });
  }

  // The fused node, with old inputs; `outputs` are the old values that its outputs stand for.
  Node fused_node(int root, Group& group, std::vector<Value>& outputs) {
    std::vector<int> instructions;
    std::vector<Spec> specs;
    std::vector<ResultKind> results;
    for (const Value value : group.order) {
      if (!is_used_outside(value, root)) continue;
      outputs.push_back(value);
      specs.push_back(graph_.spec(value));
      results.push_back(ResultKind::store);
      instructions.push_back(group.instructions.at(value));
    }
    for (const Value sum : group.sum_order) {
      outputs.push_back(sum);
      specs.push_back(graph_.spec(sum));
      results.push_back(ResultKind::sum_channel);
      instructions.push_back(group.instructions.at(group.sums.at(sum)));
    }
    PointExpr all = group.builder.finish(instructions);
    if (is_pointwise(root)) return pointwise_node(graph_, all, specs, results, root_shape(root));
    return kernel_node(root, std::move(all), specs, results);
  }

  Node kernel_node(int root, PointExpr all, const std::vector<Spec>& specs, const std::vector<ResultKind>& results) {
    Node fused = node(root);
    Fusion fusion{.results = results};
    for (int i = 0; i < static_cast<int>(fused.inputs.size()); ++i) {
      fusion.operands.push_back({identity_expr(), {{i, Access::full}}});
    }
    // Operand 0 of the epilogue is the plain result; the other leaves follow in order.
    PointExprBuilder renumbered(graph_);
    static_cast<void>(renumbered.leaf({root, 0}));
    const std::vector<int> outputs = renumbered.append(all.expr, all.leaves);
    const std::vector<Value>& leaves = renumbered.leaves();
    fusion.epilogue = renumbered.code().finish(outputs, static_cast<int>(leaves.size()));
    for (std::size_t i = 1; i < leaves.size(); ++i) {
      fusion.extra.push_back(
          {static_cast<int>(fused.inputs.size()), access_of(graph_.spec(leaves[i]).shape, root_shape(root))});
      fused.inputs.push_back(leaves[i]);
    }
    fused.outputs = specs;
    fused.fusion = std::make_shared<const Fusion>(std::move(fusion));
    return fused;
  }

  // The graph with each group as one node in the root's place; inputs may then stand later, hence the sort.
  Graph emit() {
    Graph result{.states = graph_.states, .inputs = graph_.inputs, .outputs = graph_.outputs};
    result.writes = graph_.writes;
    std::map<Value, Value> moved;
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      if (groups_.of(i) != i) continue;
      const int number = static_cast<int>(result.nodes.size());
      if (const auto at = found_.find(i); at != found_.end()) {
        std::vector<Value> outputs;
        result.nodes.push_back(fused_node(i, at->second, outputs));
        result.nodes.back().phase = node(i).phase;
        result.nodes.back().name = node(i).name;
        for (int k = 0; k < static_cast<int>(outputs.size()); ++k)
          moved[outputs[static_cast<std::size_t>(k)]] = {number, k};
      } else {
        for (int k = 0; k < static_cast<int>(node(i).outputs.size()); ++k) moved[{i, k}] = {number, k};
        result.nodes.push_back(node(i));
      }
    }
    for (Node& moved_node : result.nodes) {
      for (Value& input : moved_node.inputs) input = moved.at(input);
    }
    for (NamedValue& input : result.inputs) input.value = moved.at(input.value);
    for (NamedValue& output : result.outputs) output.value = moved.at(output.value);
    for (StateWrite& write : result.writes) write.value = moved.at(write.value);
    return sort_topologically(std::move(result));
  }

  const Graph& graph_;
  const Target& target_;
  std::vector<std::vector<int>> users_;
  Groups groups_;
  std::vector<bool> needed_;
  std::vector<int> ready_after_;
  std::map<int, Group> found_;
};

}  // namespace

Graph fuse_epilogue(const Graph& graph, const Target& target, const PassOptions& options) {
  return eliminate_dead(EpilogueFuser(graph, target).run(), target, options);
}

}  // namespace stoker
