// make_plan(): order, lifetimes, places.
#include "plan/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "graph/op_def.h"
#include "plan/arena.h"
#include "plan/schedule.h"

namespace stoker {
namespace {

// Works out one plan for one order of steps.
class Planner {
 public:
  Planner(const Graph& graph, const Target& target, const PlanOptions& options)
      : graph_(graph), target_(target), options_(options) {
    for (const StateWrite& write : graph.writes) written_[write.value] = write.state;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) inputs_[graph.inputs[i].value.node] = static_cast<int>(i);
  }

  Plan plan(const std::vector<int>& order) {
    order_ = order;
    find_lifetimes();
    std::vector<Block> blocks = blocks_of_tensors();
    Plan plan;
    plan.arena_bytes =
        assign_offsets(blocks, {.alignment = target_.alignment(), .largest_buffer = target_.largest_buffer()});
    for (std::size_t i = 0; i < tensors_.size(); ++i) tensors_[i].offset = blocks[block_of_[i]].offset;
    for (int step = 0; step < static_cast<int>(order_.size()); ++step) plan.steps.push_back(make_step(step));
    for (const NamedValue& output : graph_.outputs) plan.outputs.push_back(place_of(output.value));
    plan.tensors = std::move(tensors_);
    return plan;
  }

 private:
  [[nodiscard]] const Node& node(int number) const { return graph_.nodes[static_cast<std::size_t>(number)]; }

  // A tensor that is neither a source nor written straight into a state has a place in the arena.
  [[nodiscard]] bool is_in_arena(Value value) const {
    return !node(value.node).op->traits.source && !written_.contains(value);
  }

  void find_lifetimes() {
    for (int step = 0; step < static_cast<int>(order_.size()); ++step) {
      const Node& current = node(order_[static_cast<std::size_t>(step)]);
      for (int k = 0; k < static_cast<int>(current.outputs.size()); ++k) {
        const Value value{order_[static_cast<std::size_t>(step)], k};
        if (!is_in_arena(value)) continue;
        number_of_[value] = tensors_.size();
        tensors_.push_back({.value = value, .bytes = graph_.spec(value).bytes(), .first = step, .last = step});
      }
      for (const Value input : current.inputs) {
        if (const Value value = storage_of(graph_, input); is_in_arena(value)) tensor(value).last = step;
      }
      if (const std::int64_t bytes = target_.workspace(graph_, current); bytes > 0) {
        scratch_of_[step] = tensors_.size();
        tensors_.push_back({.bytes = bytes, .first = step, .last = step});
      }
    }
    const int end = static_cast<int>(order_.size());  // after the last step: read by the caller
    for (const NamedValue& output : graph_.outputs) {
      if (const Value value = storage_of(graph_, output.value); is_in_arena(value)) tensor(value).last = end;
    }
  }

  ArenaTensor& tensor(Value value) { return tensors_[number_of_.at(value)]; }

  // Tensors that share a place in place are one block, alive from the first one's making to the last one's end.
  std::vector<Block> blocks_of_tensors() {
    std::vector<Block> blocks;
    block_of_.assign(tensors_.size(), 0);
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      ArenaTensor& current = tensors_[i];
      current.in_place_of = options_.in_place ? find_dying_input(current) : -1;
      if (current.in_place_of >= 0) {
        block_of_[i] = block_of_[static_cast<std::size_t>(current.in_place_of)];
        Block& block = blocks[block_of_[i]];
        block.last = std::max(block.last, kept_until(current));
        overwritten_.insert(current.in_place_of);
      } else {
        block_of_[i] = blocks.size();
        blocks.push_back({.bytes = current.bytes, .first = current.first, .last = kept_until(current)});
      }
    }
    return blocks;
  }

  [[nodiscard]] int kept_until(const ArenaTensor& current) const {
    constexpr std::int64_t kLittle = 256 * 1024;
    const int end = static_cast<int>(order_.size());
    return current.bytes > kLittle ? current.last : std::min(end, current.last + target_.lingering_steps());
  }

  // An input of a pointwise step, of the output's size and read element by element, that nothing reads afterwards.
  int find_dying_input(const ArenaTensor& output) {
    if (output.value.is_none()) return -1;
    const Node& maker = node(output.value.node);
    const bool fused = maker.fusion && maker.op->name == "pointwise";
    if (!fused && !(maker.op->traits.pointwise && !maker.fusion)) return -1;
    const Spec& spec = graph_.spec(output.value);
    if (fused && maker.fusion->results[static_cast<std::size_t>(output.value.index)] != ResultKind::store) return -1;
    for (const Value input : maker.inputs) {
      const Value value = storage_of(graph_, input);
      if (!is_in_arena(value) || graph_.spec(input).shape != spec.shape) continue;
      const auto number = static_cast<int>(number_of_.at(value));
      const ArenaTensor& candidate = tensors_[static_cast<std::size_t>(number)];
      if (candidate.bytes == output.bytes && candidate.last == output.first && graph_.spec(value).dtype == spec.dtype &&
          !overwritten_.contains(number)) {
        return number;
      }
    }
    return -1;
  }

  Place place_of(Value value) const {
    const Value root = storage_of(graph_, value);
    const Node& maker = node(root.node);
    Place place{.bytes = graph_.spec(value).bytes()};
    if (maker.op->name == "state") {
      place.kind = Place::Kind::state;
      place.index = static_cast<int>(maker.attrs.integer("index"));
    } else if (const auto input = inputs_.find(root.node); input != inputs_.end()) {
      place.kind = Place::Kind::input;
      place.index = input->second;
    } else if (maker.op->traits.source) {
      place.kind = Place::Kind::constant;
      place.index = root.node;
    } else if (const auto write = written_.find(root); write != written_.end()) {
      place.kind = Place::Kind::state;
      place.index = write->second;
    } else {
      place.kind = Place::Kind::arena;
      place.offset = tensors_[number_of_.at(root)].offset;
    }
    return place;
  }

  Step make_step(int number) const {
    const int node_number = order_[static_cast<std::size_t>(number)];
    const Node& current = node(node_number);
    Step step{.node = node_number, .phase = current.phase, .cost = cost_of(graph_, current)};
    for (const Value input : current.inputs) step.inputs.push_back(place_of(input));
    for (int k = 0; k < static_cast<int>(current.outputs.size()); ++k)
      step.outputs.push_back(place_of({node_number, k}));
    if (const auto scratch = scratch_of_.find(number); scratch != scratch_of_.end()) {
      const ArenaTensor& block = tensors_[scratch->second];
      step.scratch = {.kind = Place::Kind::arena, .offset = block.offset, .bytes = block.bytes};
    }
    return step;
  }

  const Graph& graph_;
  const Target& target_;
  const PlanOptions& options_;
  std::map<Value, int> written_;
  std::map<int, int> inputs_;
  std::vector<int> order_;
  std::vector<ArenaTensor> tensors_;
  std::map<Value, std::size_t> number_of_;
  std::map<int, std::size_t> scratch_of_;
  std::vector<std::size_t> block_of_;
  std::set<int> overwritten_;
};

void require_support(const Graph& graph, const Target& target) {
  for (const Node& node : graph.nodes) {
    if (is_free(node)) continue;
    require(target.supports(graph, node), Code::unsupported, "device ", target.name(), " cannot run op ", node.op->name,
            node.name.empty() ? "" : " of layer " + node.name, node.outputs.empty() ? "" : ", result ",
            node.outputs.empty() ? "" : to_string(node.outputs[0]));
  }
}

}  // namespace

Plan make_plan(Graph graph, const Target& target, const PlanOptions& options) {
  require_support(graph, target);
  graph = with_safe_writes(std::move(graph));
  const Dependencies dependencies = dependencies_of(graph);
  Plan best;
  bool first = true;
  const std::vector<Order> orders =
      options.early_update ? std::vector{Order::early_updates, Order::least_memory} : std::vector{Order::as_written};
  for (const Order order : orders) {
    const std::vector<int> steps =
        with_small_steps_together(graph, dependencies, target, schedule(graph, dependencies, order));
    Plan plan = Planner(graph, target, options).plan(steps);
    if (first || plan.arena_bytes < best.arena_bytes) best = std::move(plan);
    first = false;
  }
  for (const StateVar& state : graph.states) best.state_bytes += state.spec.bytes();
  for (const NamedValue& input : graph.inputs) best.input_bytes += graph.spec(input.value).bytes();
  best.graph = std::move(graph);
  return best;
}

}  // namespace stoker
