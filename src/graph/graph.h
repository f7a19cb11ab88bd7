// Graph: an SSA list of nodes in topological order, the State it reads and writes, its named inputs and outputs.
// A Graph is built by a GraphBuilder and not changed afterwards; a pass makes a new one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/shape.h"
#include "graph/attrs.h"
#include "graph/fusion.h"

namespace stoker {

struct OpDef;

// Output `index` of node `node`. A default Value is "none".
struct Value {
  int node = -1;
  int index = 0;

  [[nodiscard]] bool is_none() const { return node < 0; }
  friend auto operator<=>(const Value&, const Value&) = default;
};

enum class Phase : std::uint8_t { forward, backward, update };
[[nodiscard]] const char* to_string(Phase phase);

struct Node {
  const OpDef* op = nullptr;
  std::vector<Value> inputs;
  Attrs attrs;
  std::vector<Spec> outputs;
  Phase phase = Phase::forward;
  std::string name;                      // the layer it came from, for people
  std::shared_ptr<const Fusion> fusion;  // null: a plain op
};

enum class StateRole : std::uint8_t {
  parameter,
  statistic,
  moment,
  counter,
  transient,  // of the steps under way: not in checkpoints
};

// How a state is laid out in files, where that differs from memory.
enum class FileLayout : std::uint8_t {
  plain,
  conv_weight,  // [KH, KW, I, O] in memory, [O, I, KH, KW] in files
};

struct StateVar {
  std::string name;  // PyTorch's name, e.g. layer1.0.conv1.weight
  Spec spec;
  StateRole role = StateRole::parameter;
  FileLayout layout = FileLayout::plain;
};

struct StateWrite {
  int state = 0;
  Value value;
};

struct NamedValue {
  std::string name;
  Value value;
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<StateVar> states;
  std::vector<StateWrite> writes;  // each state at most once; done as the last reader of the old value has read
  std::vector<NamedValue> inputs;  // nodes of op `input`
  std::vector<NamedValue> outputs;

  [[nodiscard]] const Node& node(Value value) const { return nodes[static_cast<std::size_t>(value.node)]; }
  [[nodiscard]] const Spec& spec(Value value) const {
    return node(value).outputs[static_cast<std::size_t>(value.index)];
  }
  // The named input or output; an Error lists the names there are.
  [[nodiscard]] Value input(std::string_view name) const;
  [[nodiscard]] Value output(std::string_view name) const;
  [[nodiscard]] int find_state(std::string_view name) const;  // -1: no such state
};

// For each node, the numbers of the nodes that read one of its outputs (each once, ascending).
[[nodiscard]] std::vector<std::vector<int>> users_of(const Graph& graph);

// What the kernel op of a (fused) node sees as operand `operand`: the spec of its input, or of its prologue's value.
[[nodiscard]] Spec operand_spec(const Graph& graph, const Node& node, int operand);

// How a tensor of shape `from` is indexed relative to one of shape `to`, to which it broadcasts.
[[nodiscard]] Access access_of(const Shape& from, const Shape& to);

// One line a node; `%3 = add(%1, %2) : f32[2,3]`.
[[nodiscard]] std::string to_string(const Graph& graph);
[[nodiscard]] std::string to_string(const Graph& graph, int node);

// Checks what every pass must keep: order, indices, specs as the ops infer them, fusions well-formed, single writes.
// Throws std::logic_error: a broken graph is our own mistake.
void verify(const Graph& graph);

}  // namespace stoker
