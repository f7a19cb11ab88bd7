#include "ops/evaluate.h"

#include <algorithm>

#include "base/error.h"
#include "ops/common.h"

namespace stoker {
namespace {

using Values = std::vector<std::vector<RefTensor>>;  // by node and output

RefTensor zeros(const Shape& shape) {
  return {shape, std::vector<double>(static_cast<std::size_t>(shape.elements()), 0.0)};
}

const RefTensor& at(const Values& values, Value value) {
  return values[static_cast<std::size_t>(value.node)][static_cast<std::size_t>(value.index)];
}

// One element of an argument, for element `i` of a domain of shape [..., C].
double load(const RefTensor& x, Access access, const Shape& domain, std::int64_t i) {
  const std::int64_t channels = domain.rank() > 0 ? domain[-1] : 1;
  std::int64_t from = 0;
  switch (access) {
    case Access::full: from = i; break;
    case Access::channel: from = i % channels; break;
    case Access::row: from = i / channels; break;
    case Access::scalar: break;
    case Access::broadcast: from = ops::broadcast_offset(x.shape, domain, i); break;
  }
  return x.data[static_cast<std::size_t>(from)];
}

// Evaluates an expression over a domain; `plain`, if any, is its operand 0. Calls store(output, element, value).
template <typename Store>
void run_expr(const Node& node, const Values& values, const Expr& expr, std::span<const FusedArg> args,
              const Shape& domain, const RefTensor* plain, const Store& store) {
  std::vector<double> x(static_cast<std::size_t>(expr.inputs));
  std::vector<double> y(expr.outputs.size());
  const std::size_t own = plain != nullptr ? 1 : 0;
  for (std::int64_t i = 0; i < domain.elements(); ++i) {
    if (plain != nullptr) x[0] = plain->data[static_cast<std::size_t>(i)];
    for (std::size_t k = 0; k < args.size(); ++k) {
      const Value from = node.inputs[static_cast<std::size_t>(args[k].input)];
      x[own + k] = load(at(values, from), args[k].access, domain, i);
    }
    evaluate(expr, x, y, static_cast<std::uint64_t>(i));
    for (std::size_t k = 0; k < y.size(); ++k) store(k, i, y[k]);
  }
}

std::vector<RefTensor> outputs_of(std::span<const Spec> specs) {
  std::vector<RefTensor> outputs;
  for (const Spec& spec : specs) outputs.push_back(zeros(spec.shape));
  return outputs;
}

// The kernel op's result before the epilogue.
RefTensor plain_result(const Graph& graph, const Node& node, const Values& values) {
  const std::vector<Spec> specs = operand_specs(graph, node);
  std::vector<RefTensor> operands;
  for (std::size_t k = 0; k < specs.size(); ++k) {
    const Prologue& prologue = node.fusion->operands[k];
    RefTensor operand = zeros(specs[k].shape);
    run_expr(node, values, prologue.expr, prologue.args, specs[k].shape, nullptr,
             [&](std::size_t, std::int64_t i, double y) { operand.data[static_cast<std::size_t>(i)] = y; });
    operands.push_back(std::move(operand));
  }
  std::vector<RefTensor> results = outputs_of(node.op->infer(specs, node.attrs));
  node.op->reference(operands, results, node.attrs);
  return std::move(results[0]);
}

std::vector<RefTensor> run_fused(const Graph& graph, const Node& node, const Values& values) {
  const Fusion& fusion = *node.fusion;
  RefTensor plain;
  const bool kernel = node.op->traits.kernel;
  if (kernel) plain = plain_result(graph, node, values);
  const Shape domain = epilogue_domain(graph, node);
  const std::int64_t channels = domain.rank() > 0 ? domain[-1] : 1;
  std::vector<RefTensor> outputs = outputs_of(node.outputs);
  run_expr(node, values, fusion.epilogue, fusion.extra, domain, kernel ? &plain : nullptr,
           [&](std::size_t k, std::int64_t i, double y) {
             if (fusion.results[k] == ResultKind::store) {
               outputs[k].data[static_cast<std::size_t>(i)] = y;
             } else {
               outputs[k].data[static_cast<std::size_t>(i % channels)] += y;
             }
           });
  return outputs;
}

std::vector<RefTensor> run_plain(const Node& node, const Values& values) {
  std::vector<RefTensor> inputs;
  for (const Value input : node.inputs) inputs.push_back(at(values, input));
  std::vector<RefTensor> outputs = outputs_of(node.outputs);
  node.op->reference(inputs, outputs, node.attrs);
  return outputs;
}

// A tensor from outside, checked.
RefTensor given(const RefTensor& tensor, const Spec& spec, const std::string& name) {
  require(tensor.shape == spec.shape && static_cast<std::int64_t>(tensor.data.size()) == spec.shape.elements(),
          Code::bad_argument, "evaluate: '", name, "' is ", spec.shape, ", got ", tensor.shape);
  return tensor;
}

RefTensor source(const Graph& graph, int number, std::span<const RefTensor> inputs, std::span<RefTensor> states) {
  const Node& node = graph.nodes[static_cast<std::size_t>(number)];
  if (node.op->name == "state") {
    const auto index = static_cast<std::size_t>(node.attrs.integer("index"));
    return given(states[index], node.outputs[0], graph.states[index].name);
  }
  const auto input = std::ranges::find(graph.inputs, Value{number, 0}, &NamedValue::value);
  require(input != graph.inputs.end(), Code::bad_argument, "evaluate: an input is not declared");
  return given(inputs[static_cast<std::size_t>(input - graph.inputs.begin())], node.outputs[0], input->name);
}

}  // namespace

Shape fused_domain(const Graph& graph, const Node& node, std::span<const FusedArg> args) {
  const auto shape_of = [&](const FusedArg& arg) -> const Shape& {
    return graph.spec(node.inputs[static_cast<std::size_t>(arg.input)]).shape;
  };
  Shape shape;
  for (const FusedArg& arg : args) {
    if (arg.access == Access::full) return shape_of(arg);
    shape = broadcast(shape, shape_of(arg), "a fused expression");
  }
  return shape;
}

std::vector<Spec> operand_specs(const Graph& graph, const Node& node) {
  std::vector<Spec> specs;
  for (const Prologue& prologue : node.fusion->operands) {
    specs.push_back({DType::f32, fused_domain(graph, node, prologue.args)});
  }
  return specs;
}

Shape epilogue_domain(const Graph& graph, const Node& node) {
  if (node.op->traits.kernel) return node.op->infer(operand_specs(graph, node), node.attrs)[0].shape;
  // Sums of broadcast tensors alone do not tell the domain: a pointwise node names it.
  if (node.attrs.has("shape")) return Shape(node.attrs.ints("shape"));
  return fused_domain(graph, node, node.fusion->extra);
}

std::vector<RefTensor> evaluate_reference(const Graph& graph, std::span<const RefTensor> inputs,
                                          std::span<RefTensor> states) {
  require(inputs.size() == graph.inputs.size() && states.size() == graph.states.size(), Code::bad_argument,
          "evaluate: the graph has ", graph.inputs.size(), " inputs and ", graph.states.size(), " states, got ",
          inputs.size(), " and ", states.size());
  Values values;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.fusion) {
      values.push_back(run_fused(graph, node, values));
    } else if (node.op->traits.source && !node.op->reference) {
      values.push_back({source(graph, static_cast<int>(i), inputs, states)});
    } else {
      values.push_back(run_plain(node, values));
    }
  }
  std::vector<RefTensor> outputs;
  for (const NamedValue& output : graph.outputs) outputs.push_back(at(values, output.value));
  for (const StateWrite& write : graph.writes) states[static_cast<std::size_t>(write.state)] = at(values, write.value);
  return outputs;
}

}  // namespace stoker
