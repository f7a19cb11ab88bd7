#include "passes/rewriter.h"

#include <functional>
#include <queue>

#include "base/error.h"

namespace stoker {

Rewriter::Rewriter(const Graph& from) : from_(from), mapped_(from.nodes.size()) {
  for (std::size_t i = 0; i < from.nodes.size(); ++i) mapped_[i].resize(from.nodes[i].outputs.size());
  for (const StateVar& state : from.states) builder_.declare_state(state);
}

Value Rewriter::map(Value old) const {
  return mapped_[static_cast<std::size_t>(old.node)][static_cast<std::size_t>(old.index)];
}

std::vector<Value> Rewriter::map(const std::vector<Value>& old) const {
  std::vector<Value> result;
  result.reserve(old.size());
  for (const Value value : old) result.push_back(map(value));
  return result;
}

void Rewriter::replace(Value old, Value value) {
  mapped_[static_cast<std::size_t>(old.node)][static_cast<std::size_t>(old.index)] = value;
}

void Rewriter::copy(int node) {
  Node copied = from_.nodes[static_cast<std::size_t>(node)];
  copied.inputs = map(copied.inputs);
  add(node, std::move(copied));
}

void Rewriter::add(int old, Node node) {
  const int outputs = static_cast<int>(node.outputs.size());
  const Value first = builder_.add_node(std::move(node));
  for (int i = 0; i < outputs; ++i) replace({old, i}, {first.node, i});
}

Graph Rewriter::finish() && {
  for (const NamedValue& input : from_.inputs) {
    if (!map(input.value).is_none()) builder_.declare_input(input.name, map(input.value));
  }
  for (const StateWrite& write : from_.writes) builder_.write_state(write.state, map(write.value));
  for (const NamedValue& output : from_.outputs) builder_.set_output(output.name, map(output.value));
  return std::move(builder_).finish();
}

Graph sort_topologically(Graph graph) {
  const std::size_t count = graph.nodes.size();
  std::vector<int> waiting(count, 0);
  std::vector<std::vector<int>> users(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (const Value input : graph.nodes[i].inputs) {
      users[static_cast<std::size_t>(input.node)].push_back(static_cast<int>(i));
      ++waiting[i];
    }
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (std::size_t i = 0; i < count; ++i) {
    if (waiting[i] == 0) ready.push(static_cast<int>(i));
  }
  std::vector<int> position(count, -1);
  std::vector<Node> sorted;
  sorted.reserve(count);
  while (!ready.empty()) {
    const auto next = static_cast<std::size_t>(ready.top());
    ready.pop();
    position[next] = static_cast<int>(sorted.size());
    sorted.push_back(std::move(graph.nodes[next]));
    for (const int user : users[next]) {
      if (--waiting[static_cast<std::size_t>(user)] == 0) ready.push(user);
    }
  }
  DCHECK(sorted.size() == count);
  const auto move = [&](Value& value) { value.node = position[static_cast<std::size_t>(value.node)]; };
  for (Node& node : sorted) {
    for (Value& input : node.inputs) move(input);
  }
  for (NamedValue& input : graph.inputs) move(input.value);
  for (NamedValue& output : graph.outputs) move(output.value);
  for (StateWrite& write : graph.writes) move(write.value);
  graph.nodes = std::move(sorted);
  return graph;
}

}  // namespace stoker
