#include "plan/schedule.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "graph/op_def.h"
#include "ops/registry.h"

namespace stoker {
namespace {

// Nodes that read state `state`'s old value, directly or through a view.
std::vector<std::vector<int>> readers_of_states(const Graph& graph) {
  std::vector<std::vector<int>> readers(graph.states.size());
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const Node& node = graph.nodes[static_cast<std::size_t>(i)];
    if (is_free(node)) continue;
    for (const Value input : node.inputs) {
      const Node& source = graph.node(storage_of(graph, input));
      if (source.op->name != "state") continue;
      std::vector<int>& list = readers[static_cast<std::size_t>(source.attrs.integer("index"))];
      if (list.empty() || list.back() != i) list.push_back(i);
    }
  }
  return readers;
}

bool is_pointwise(const Node& node) { return node.fusion ? node.op->name == "pointwise" : node.op->traits.pointwise; }

// Decides which writes can go straight into their state's memory. A write in place must follow every reader of the old
// value; these orders, added up over all writes, must not run in a circle.
class WritePlanner {
 public:
  explicit WritePlanner(const Graph& graph) : readers_(readers_of_states(graph)), waits_for_(graph.nodes.size()) {
    for (const NamedValue& output : graph.outputs) taken_.insert(storage_of(graph, output.value));
  }

  // Whether `write` may be done in place; if so, that is remembered.
  bool take(const Graph& graph, const StateWrite& write) {
    const int writer = write.value.node;
    const std::vector<int>& readers = readers_[static_cast<std::size_t>(write.state)];
    // A kernel may read the state's memory, even as an image, while it writes: only pointwise nodes can do without a
    // copy. A transient state that nobody reads lies in a memory of its own.
    const bool apart =
        readers.empty() && graph.states[static_cast<std::size_t>(write.state)].role == StateRole::transient;
    const Node& node = graph.node(write.value);
    if (taken_.contains(write.value) || is_free(node) || !(apart || is_pointwise(node))) return false;
    const auto waits_for_writer = [&](int reader) { return reader != writer && reaches(graph, writer, reader); };
    if (std::ranges::any_of(readers, waits_for_writer)) return false;
    taken_.insert(write.value);
    for (const int reader : readers) {
      if (reader != writer) waits_for_[static_cast<std::size_t>(writer)].push_back(reader);
    }
    return true;
  }

 private:
  // Whether node `to` must come after node `from`.
  [[nodiscard]] bool reaches(const Graph& graph, int from, int to) const {
    std::vector<bool> visited(graph.nodes.size(), false);
    std::vector<int> open{to};
    while (!open.empty()) {
      const int node = open.back();
      open.pop_back();
      if (node == from) return true;
      if (visited[static_cast<std::size_t>(node)]) continue;
      visited[static_cast<std::size_t>(node)] = true;
      for (const Value input : graph.nodes[static_cast<std::size_t>(node)].inputs) open.push_back(input.node);
      if (node >= static_cast<int>(waits_for_.size())) continue;
      const std::vector<int>& earlier = waits_for_[static_cast<std::size_t>(node)];
      open.insert(open.end(), earlier.begin(), earlier.end());
    }
    return false;
  }

  std::vector<std::vector<int>> readers_;
  std::vector<std::vector<int>> waits_for_;  // beyond the data: readers of a state before its writer
  std::set<Value> taken_;
};

Value add_copy(Graph& graph, Value value, const std::string& name) {
  const Spec spec = graph.spec(value);
  Node copy{.op = &find_op("pointwise"), .inputs = {value}, .outputs = {spec}, .phase = Phase::update, .name = name};
  copy.attrs.set("shape", Ints(spec.shape.dims().begin(), spec.shape.dims().end()));
  copy.fusion = std::make_shared<const Fusion>(Fusion{.extra = {{0, Access::full}}, .results = {ResultKind::store}});
  graph.nodes.push_back(std::move(copy));
  return {static_cast<int>(graph.nodes.size()) - 1, 0};
}

// Whether the value is that of a state that is itself written in this step.
bool copies_written_state(const Graph& graph, const StateWrite& write) {
  const Node& source = graph.node(storage_of(graph, write.value));
  if (source.op->name != "state") return false;
  const std::int64_t state = source.attrs.integer("index");
  return std::ranges::any_of(graph.writes, [&](const StateWrite& other) { return other.state == state; });
}

// What an order's next node would do to the memory in use.
class MemoryMeter {
 public:
  explicit MemoryMeter(const Graph& graph) : graph_(graph), uses_(graph.nodes.size()) {
    for (const Node& node : graph.nodes) {
      if (is_free(node)) continue;
      for (const Value input : distinct_storage(node)) ++uses_[static_cast<std::size_t>(input.node)][input.index];
    }
    for (const NamedValue& output : graph.outputs) {
      const Value value = storage_of(graph, output.value);
      ++uses_[static_cast<std::size_t>(value.node)][value.index];
    }
  }

  [[nodiscard]] std::int64_t growth(int number) const {
    const Node& node = graph_.nodes[static_cast<std::size_t>(number)];
    std::int64_t bytes = 0;
    for (const Spec& output : node.outputs) bytes += output.bytes();
    for (const Value input : distinct_storage(node)) {
      if (uses_[static_cast<std::size_t>(input.node)].at(input.index) == 1) bytes -= graph_.spec(input).bytes();
    }
    return bytes;
  }

  void run(int number) {
    for (const Value input : distinct_storage(graph_.nodes[static_cast<std::size_t>(number)])) {
      --uses_[static_cast<std::size_t>(input.node)][input.index];
    }
  }

 private:
  [[nodiscard]] std::set<Value> distinct_storage(const Node& node) const {
    std::set<Value> values;
    for (const Value input : node.inputs) {
      const Value value = storage_of(graph_, input);
      if (!graph_.node(value).op->traits.source) values.insert(value);
    }
    return values;
  }

  const Graph& graph_;
  std::vector<std::map<int, int>> uses_;
};

}  // namespace

Value storage_of(const Graph& graph, Value value) {
  while (graph.node(value).op->traits.view) value = graph.node(value).inputs[0];
  return value;
}

bool is_free(const Node& node) { return node.op->traits.source || node.op->traits.view; }

Graph with_safe_writes(Graph graph) {
  WritePlanner planner(graph);
  for (std::size_t i = 0; i < graph.writes.size(); ++i) {
    StateWrite& write = graph.writes[i];
    if (planner.take(graph, write)) continue;
    const std::string& name = graph.states[static_cast<std::size_t>(write.state)].name;
    // Two states may exchange their values, so the old value of one is put aside first.
    if (copies_written_state(graph, write)) write.value = add_copy(graph, write.value, name);
    write.value = add_copy(graph, write.value, name);
  }
  return graph;
}

Dependencies dependencies_of(const Graph& graph) {
  std::vector<std::set<int>> before(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const Value input : graph.nodes[i].inputs) before[i].insert(input.node);
  }
  const std::vector<std::vector<int>> readers = readers_of_states(graph);
  for (const StateWrite& write : graph.writes) {
    for (const int reader : readers[static_cast<std::size_t>(write.state)]) {
      if (reader != write.value.node) before[static_cast<std::size_t>(write.value.node)].insert(reader);
    }
  }
  Dependencies result{std::vector<std::vector<int>>(before.size()), std::vector<std::vector<int>>(before.size())};
  for (std::size_t i = 0; i < before.size(); ++i) {
    result.before[i].assign(before[i].begin(), before[i].end());
    for (const int node : before[i]) result.after[static_cast<std::size_t>(node)].push_back(static_cast<int>(i));
  }
  return result;
}

std::vector<int> schedule(const Graph& graph, const Dependencies& dependencies, Order order) {
  MemoryMeter meter(graph);
  std::vector<std::size_t> waiting(graph.nodes.size());
  std::set<int> ready;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    waiting[i] = dependencies.before[i].size();
    if (waiting[i] == 0) ready.insert(static_cast<int>(i));
  }
  const auto choose = [&]() {
    const auto free =
        std::ranges::find_if(ready, [&](int i) { return is_free(graph.nodes[static_cast<std::size_t>(i)]); });
    if (free != ready.end()) return *free;
    if (order == Order::early_updates) {
      const auto update = std::ranges::find_if(
          ready, [&](int i) { return graph.nodes[static_cast<std::size_t>(i)].phase == Phase::update; });
      if (update != ready.end()) return *update;
    }
    if (order == Order::least_memory) {
      return *std::ranges::min_element(ready, {}, [&](int i) { return meter.growth(i); });
    }
    return *ready.begin();
  };
  std::vector<int> steps;
  while (!ready.empty()) {
    const int next = choose();
    ready.erase(next);
    const Node& node = graph.nodes[static_cast<std::size_t>(next)];
    if (!is_free(node)) {
      steps.push_back(next);
      meter.run(next);
    }
    for (const int user : dependencies.after[static_cast<std::size_t>(next)]) {
      if (--waiting[static_cast<std::size_t>(user)] == 0) ready.insert(user);
    }
  }
  return steps;
}

namespace {

// Whether `step` must come after one of the nodes marked in `waiting`.
bool needs_any(const Graph& graph, const Dependencies& dependencies, int step, const std::vector<bool>& waiting) {
  std::vector<int> open = dependencies.before[static_cast<std::size_t>(step)];
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    if (waiting[static_cast<std::size_t>(node)]) return true;
    // Steps that do not wait have run; only views and sources can still hide one that waits.
    if (!is_free(graph.nodes[static_cast<std::size_t>(node)])) continue;
    const std::vector<int>& earlier = dependencies.before[static_cast<std::size_t>(node)];
    open.insert(open.end(), earlier.begin(), earlier.end());
  }
  return false;
}

}  // namespace

std::vector<int> with_small_steps_together(const Graph& graph, const Dependencies& dependencies, const Target& target,
                                           const std::vector<int>& steps) {
  std::vector<int> result;
  std::vector<int> small;
  std::vector<bool> waiting(graph.nodes.size(), false);
  const auto release = [&] {
    for (const int step : small) waiting[static_cast<std::size_t>(step)] = false;
    result.insert(result.end(), small.begin(), small.end());
    small.clear();
  };
  for (const int step : steps) {
    if (target.is_small(graph, graph.nodes[static_cast<std::size_t>(step)])) {
      small.push_back(step);
      waiting[static_cast<std::size_t>(step)] = true;
      continue;
    }
    if (needs_any(graph, dependencies, step, waiting)) release();
    result.push_back(step);
  }
  release();
  return result;
}

}  // namespace stoker
