#include "graph/builder.h"

#include "base/error.h"

namespace stoker {

Value GraphBuilder::add(const OpDef& op, std::span<const Value> inputs, Attrs attrs) {
  const int count = static_cast<int>(inputs.size());
  require(count >= op.min_inputs && count <= op.max_inputs, Code::bad_argument, op.name, " takes ", op.min_inputs,
          op.max_inputs == op.min_inputs ? "" : str(" to ", op.max_inputs), " inputs, not ", count);
  Node node{
      .op = &op, .inputs = {inputs.begin(), inputs.end()}, .attrs = std::move(attrs), .phase = phase_, .name = name_};
  std::vector<Spec> specs;
  for (const Value input : inputs) {
    require(input.node >= 0 && input.node < static_cast<int>(graph_.nodes.size()), Code::bad_argument, op.name,
            ": an input does not belong to this graph");
    specs.push_back(graph_.spec(input));
  }
  node.outputs = op.infer(specs, node.attrs);
  return add_node(std::move(node));
}

Value GraphBuilder::add_node(Node node) {
  graph_.nodes.push_back(std::move(node));
  return {static_cast<int>(graph_.nodes.size()) - 1, 0};
}

void GraphBuilder::declare_input(std::string name, Value value) {
  for (const NamedValue& input : graph_.inputs) {
    require(input.name != name, Code::bad_argument, "there are two inputs named '", name, "'");
  }
  graph_.inputs.push_back({std::move(name), value});
}

int GraphBuilder::declare_state(StateVar state) {
  require(graph_.find_state(state.name) < 0, Code::bad_argument, "there are two states named '", state.name, "'");
  graph_.states.push_back(std::move(state));
  return static_cast<int>(graph_.states.size()) - 1;
}

void GraphBuilder::write_state(int state, Value value) {
  const StateVar& var = graph_.states[static_cast<std::size_t>(state)];
  for (const StateWrite& write : graph_.writes) {
    require(write.state != state, Code::bad_argument, "state ", var.name, " is written twice");
  }
  require(spec(value) == var.spec, Code::bad_argument, "state ", var.name, " is ", var.spec, ", but the value is ",
          spec(value));
  graph_.writes.push_back({state, value});
}

void GraphBuilder::set_output(std::string name, Value value) { graph_.outputs.push_back({std::move(name), value}); }

}  // namespace stoker
