#include "graph/graph.h"

#include <algorithm>
#include <stdexcept>

#include "base/error.h"
#include "graph/op_def.h"

namespace stoker {
namespace {

Value find_named(const std::vector<NamedValue>& list, std::string_view name, const char* what) {
  std::string known;
  for (const NamedValue& entry : list) {
    if (entry.name == name) return entry.value;
    known += (known.empty() ? "" : ", ") + entry.name;
  }
  fail(Code::bad_argument, "the graph has no ", what, " named '", name, "'; it has: ", known);
}

std::string text_of(Value value) {
  return value.index == 0 ? str("%", value.node) : str("%", value.node, ".", value.index);
}

std::string text_of(const Fusion& fusion) {
  const auto args = [](const std::vector<FusedArg>& list) {
    std::string text;
    for (const FusedArg& arg : list) text += str(text.empty() ? "" : ",", arg.input, ":", to_string(arg.access));
    return text;
  };
  std::string text;
  for (std::size_t i = 0; i < fusion.operands.size(); ++i) {
    const Prologue& prologue = fusion.operands[i];
    if (!prologue.expr.is_identity()) {
      text += str(" pre", i, "{", to_string(prologue.expr), " | ", args(prologue.args), "}");
    }
  }
  if (fusion.epilogue.is_identity() && fusion.results == std::vector{ResultKind::store}) return text;
  text += str(" post{", to_string(fusion.epilogue), " | ", args(fusion.extra), " ->");
  for (const ResultKind kind : fusion.results) text += kind == ResultKind::store ? " store" : " sum_channel";
  return text + "}";
}

}  // namespace

const char* to_string(Access access) {
  switch (access) {
    case Access::full: return "full";
    case Access::channel: return "channel";
    case Access::row: return "row";
    case Access::scalar: return "scalar";
    case Access::broadcast: return "broadcast";
  }
  return "?";
}

const char* to_string(Phase phase) {
  switch (phase) {
    case Phase::forward: return "forward";
    case Phase::backward: return "backward";
    case Phase::update: return "update";
  }
  return "?";
}

Value Graph::input(std::string_view name) const { return find_named(inputs, name, "input"); }
Value Graph::output(std::string_view name) const { return find_named(outputs, name, "output"); }

int Graph::find_state(std::string_view name) const {
  const auto at = std::ranges::find(states, name, &StateVar::name);
  return at == states.end() ? -1 : static_cast<int>(at - states.begin());
}

std::vector<std::vector<int>> users_of(const Graph& graph) {
  std::vector<std::vector<int>> users(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const Value input : graph.nodes[i].inputs) {
      std::vector<int>& list = users[static_cast<std::size_t>(input.node)];
      if (list.empty() || list.back() != static_cast<int>(i)) list.push_back(static_cast<int>(i));
    }
  }
  return users;
}

Spec operand_spec(const Graph& graph, const Node& node, int operand) {
  if (!node.fusion) return graph.spec(node.inputs[static_cast<std::size_t>(operand)]);
  for (const FusedArg& arg : node.fusion->operands[static_cast<std::size_t>(operand)].args) {
    if (arg.access == Access::full) {
      return {DType::f32, graph.spec(node.inputs[static_cast<std::size_t>(arg.input)]).shape};
    }
  }
  throw std::logic_error("graph: a prologue reads no tensor of its operand's shape");
}

Access access_of(const Shape& from, const Shape& to) {
  if (from == to) return Access::full;
  if (from.elements() == 1) return Access::scalar;
  if (from[-1] == to[-1] && from.elements() == to[-1]) return Access::channel;
  if (from.rank() == to.rank() && from[-1] == 1 && from.elements() * to[-1] == to.elements()) return Access::row;
  return Access::broadcast;
}

std::string to_string(const Graph& graph, int number) {
  const Node& node = graph.nodes[static_cast<std::size_t>(number)];
  std::string text = str("%", number, " = ", node.op->name, "(");
  for (std::size_t i = 0; i < node.inputs.size(); ++i) text += (i ? ", " : "") + text_of(node.inputs[i]);
  text += ")";
  if (!node.attrs.entries().empty()) text += " {" + to_string(node.attrs) + "}";
  if (node.fusion) text += text_of(*node.fusion);
  text += " :";
  for (const Spec& spec : node.outputs) text += " " + to_string(spec);
  text += str("  # ", to_string(node.phase));
  if (!node.name.empty()) text += " " + node.name;
  return text;
}

std::string to_string(const Graph& graph) {
  std::string text;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) text += to_string(graph, static_cast<int>(i)) + "\n";
  for (const StateWrite& write : graph.writes) {
    text += str("state ", graph.states[static_cast<std::size_t>(write.state)].name, " <- ", text_of(write.value), "\n");
  }
  for (const NamedValue& output : graph.outputs)
    text += str("output ", output.name, " = ", text_of(output.value), "\n");
  return text;
}

}  // namespace stoker
