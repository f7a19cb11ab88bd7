// GraphBuilder: the only way to make a Graph. add() checks the inputs and infers the output shapes.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/op_def.h"

namespace stoker {

class GraphBuilder {
 public:
  GraphBuilder() = default;
  // Goes on building where `graph` ends.
  explicit GraphBuilder(Graph graph) : graph_(std::move(graph)) {}

  // Adds a node and returns its first output; further ones are {value.node, i}.
  Value add(const OpDef& op, std::span<const Value> inputs, Attrs attrs = {});
  Value add(const OpDef& op, std::initializer_list<Value> inputs, Attrs attrs = {}) {
    return add(op, std::span(inputs.begin(), inputs.size()), std::move(attrs));
  }
  // Adds a node whose outputs are known already: a copy of another graph's, or a fused one.
  Value add_node(Node node);

  // Declares a named input of the graph, made by op `input`.
  void declare_input(std::string name, Value value);
  int declare_state(StateVar state);
  void write_state(int state, Value value);
  void set_output(std::string name, Value value);

  // Nodes added from now on carry this phase and name.
  void set_phase(Phase phase) { phase_ = phase; }
  [[nodiscard]] Phase phase() const { return phase_; }
  void set_name(std::string name) { name_ = std::move(name); }
  [[nodiscard]] const std::string& name() const { return name_; }

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] const Spec& spec(Value value) const { return graph_.spec(value); }
  [[nodiscard]] const Shape& shape(Value value) const { return graph_.spec(value).shape; }
  [[nodiscard]] Graph finish() && { return std::move(graph_); }

 private:
  Graph graph_;
  Phase phase_ = Phase::forward;
  std::string name_;
};

}  // namespace stoker
