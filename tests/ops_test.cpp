// Every registered op against what the engine asks of it: a row in the op cases, a cost, a gradient that central
// differences confirm, an expansion that agrees with its reference; and the errors of the shape rules.
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "autodiff/backward.h"
#include "base/random.h"
#include "op_cases.h"
#include "ops/common.h"
#include "ops/cost.h"
#include "ops/evaluate.h"
#include "ops/registry.h"
#include "stoker/error.hpp"

namespace stoker::test {
namespace {

std::vector<RefTensor> zero_states(const Graph& graph) {
  std::vector<RefTensor> states;
  for (const StateVar& state : graph.states) {
    states.push_back({state.spec.shape, std::vector<double>(static_cast<std::size_t>(state.spec.shape.elements()))});
  }
  return states;
}

std::vector<RefTensor> run(const Graph& graph, const std::vector<RefTensor>& inputs) {
  std::vector<RefTensor> states = zero_states(graph);
  return evaluate_reference(graph, inputs, states);
}

double dot(const RefTensor& x, const RefTensor& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.data.size(); ++i) sum += x.data[i] * y.data[i];
  return sum;
}

RefTensor random_tensor(const Shape& shape, std::uint64_t seed) {
  Random random(seed);
  RefTensor tensor{shape, {}};
  for (std::int64_t i = 0; i < shape.elements(); ++i) tensor.data.push_back(random.normal());
  return tensor;
}

// Compares a gradient with central differences at up to this many elements.
constexpr std::size_t kSamples = 24;

void check_input(const OpCase& op_case, const Graph& graph, std::vector<RefTensor> inputs, std::size_t which,
                 const RefTensor& cotangent, const RefTensor& gradient) {
  constexpr double kStep = 1e-5;
  const std::size_t count = inputs[which].data.size();
  Random random(which + 7);
  for (std::size_t k = 0; k < std::min(count, kSamples); ++k) {
    const std::size_t i = count <= kSamples ? k : static_cast<std::size_t>(random.below(count));
    double& x = inputs[which].data[i];
    const double old = x;
    x = old + kStep;
    const double above = dot(run(graph, inputs)[0], cotangent);
    x = old - kStep;
    const double below = dot(run(graph, inputs)[0], cotangent);
    x = old;
    const double expected = (above - below) / (2 * kStep);
    EXPECT_NEAR(gradient.data[i], expected, 2e-5 * std::max(1.0, std::abs(expected)))
        << op_case.name << ", input " << which << ", element " << i;
  }
}

// The graph of a case with its gradients for a cotangent given as the last input.
struct Differentiated {
  Graph graph;
  std::vector<std::size_t> wrt;  // which inputs have a gradient, in the order of the graph's outputs
};

Differentiated differentiate(const OpCase& op_case) {
  GraphBuilder b;
  std::vector<Value> inputs;
  std::vector<Value> wrt;
  Differentiated result;
  for (std::size_t i = 0; i < op_case.inputs.size(); ++i) {
    inputs.push_back(ops::input(b, "x" + std::to_string(i), op_case.inputs[i]));
    if (op_case.inputs[i].dtype == DType::f32) wrt.push_back(inputs.back());
  }
  const Value y[] = {op_case.build(b, inputs)};
  const Value dy[] = {ops::input(b, "dy", Spec(b.spec(y[0])))};
  const std::vector<Value> gradients = backward(b, y, dy, wrt);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].is_none()) continue;
    EXPECT_EQ(b.shape(gradients[i]), b.shape(wrt[i])) << op_case.name;
    result.wrt.push_back(static_cast<std::size_t>(wrt[i].node));
    b.set_output("g" + std::to_string(i), gradients[i]);
  }
  result.graph = std::move(b).finish();
  return result;
}

void expect_near(const RefTensor& got, const RefTensor& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(got.shape, expected.shape) << what;
  for (std::size_t i = 0; i < got.data.size(); ++i) {
    ASSERT_NEAR(got.data[i], expected.data[i], tolerance * std::max(1.0, std::abs(expected.data[i])))
        << what << ", element " << i;
  }
}

TEST(OpCases, EveryRegisteredOpHasARowThatUsesIt) {
  std::set<std::string> covered;
  for (const OpCase& op_case : all_op_cases()) {
    bool used = false;
    for (const Node& node : graph_of(op_case).nodes) used |= node.op->name == op_case.op;
    EXPECT_TRUE(used) << op_case.name << " does not use " << op_case.op;
    covered.insert(op_case.op);
  }
  for (const OpDef& op : all_ops()) EXPECT_TRUE(covered.contains(op.name)) << op.name << " has no row";
}

TEST(OpCases, NamesAreUniqueAndGraphsAreWellFormed) {
  std::set<std::string> names;
  for (const OpCase& op_case : all_op_cases()) {
    const Graph graph = graph_of(op_case);
    EXPECT_NO_THROW(verify(graph)) << op_case.name;
    EXPECT_TRUE(names.insert(op_case.name).second) << op_case.name << " is there twice";
  }
}

TEST(Ops, EveryOpIsCompletelyDefined) {
  for (const OpDef& op : all_ops()) {
    EXPECT_TRUE(op.infer) << op.name;
    EXPECT_TRUE(op.cost) << op.name;
    EXPECT_NE(static_cast<bool>(op.grad), op.no_grad) << op.name;
    EXPECT_TRUE(op.reference || op.name == "input" || op.name == "state") << op.name;
    EXPECT_EQ(static_cast<bool>(op.emit), op.traits.pointwise) << op.name;
    EXPECT_EQ(static_cast<bool>(op.expand), op.traits.composite) << op.name;
    EXPECT_EQ(&find_op(op.name), &op);
  }
  EXPECT_THROW((void)find_op("no such op"), Error);
}

TEST(Ops, CostsAreFiniteAndCountAtLeastTheOutputs) {
  for (const OpCase& op_case : all_op_cases()) {
    const Graph graph = graph_of(op_case);
    for (const Node& node : graph.nodes) {
      const Cost cost = cost_of(graph, node);
      EXPECT_TRUE(std::isfinite(cost.flops) && cost.flops >= 0) << op_case.name;
      if (node.op->traits.view || node.op->traits.source) continue;
      EXPECT_GE(cost.bytes, ops::bytes_of(node.outputs)) << op_case.name;
    }
  }
}

TEST(Ops, GradientsAgreeWithCentralDifferences) {
  for (const OpCase& op_case : all_op_cases()) {
    if (!op_case.differentiable) continue;
    const Graph forward = graph_of(op_case);
    const auto [graph, wrt] = differentiate(op_case);
    EXPECT_NO_THROW(verify(graph)) << op_case.name;
    EXPECT_EQ(wrt.empty(), op_case.op == "floor") << op_case.name;
    const std::vector<RefTensor> inputs = random_inputs(op_case, 11);
    const RefTensor cotangent = random_tensor(forward.spec(forward.outputs[0].value).shape, 5);
    std::vector<RefTensor> all = inputs;
    all.push_back(cotangent);
    const std::vector<RefTensor> gradients = run(graph, all);
    for (std::size_t i = 0; i < wrt.size(); ++i) check_input(op_case, forward, inputs, wrt[i], cotangent, gradients[i]);
  }
}

TEST(Ops, EmittedExpressionsAgreeWithTheReference) {
  for (const OpCase& op_case : all_op_cases()) {
    const OpDef& op = find_op(op_case.op);
    const Graph graph = graph_of(op_case);
    const Node& node = graph.node(graph.outputs[0].value);
    if (!op.traits.pointwise || node.op != &op) continue;
    ExprBuilder builder;
    std::vector<int> arguments;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) arguments.push_back(builder.input(static_cast<int>(i)));
    const int result[] = {op.emit(builder, arguments, node.attrs)};
    const Expr expr = builder.finish(result, static_cast<int>(arguments.size()));
    const std::vector<RefTensor> inputs = random_inputs(op_case, 3);
    const RefTensor expected = run(graph, inputs)[0];
    RefTensor got = expected;
    for (std::size_t i = 0; i < got.data.size(); ++i) {
      std::vector<double> x;
      for (const RefTensor& input : inputs) {
        const auto at = ops::broadcast_offset(input.shape, expected.shape, static_cast<std::int64_t>(i));
        x.push_back(input.data[static_cast<std::size_t>(at)]);
      }
      evaluate(expr, x, std::span(got.data).subspan(i, 1), i);
    }
    expect_near(got, expected, 2e-6, op_case.name);
  }
}

TEST(Ops, ExpansionsAgreeWithTheReference) {
  for (const OpCase& op_case : all_op_cases()) {
    const OpDef& op = find_op(op_case.op);
    if (!op.traits.composite) continue;
    const Graph graph = graph_of(op_case);
    const Node node = graph.node(graph.outputs[0].value);
    GraphBuilder b;
    std::vector<Value> inputs;
    for (std::size_t i = 0; i < op_case.inputs.size(); ++i) {
      inputs.push_back(ops::input(b, "x" + std::to_string(i), op_case.inputs[i]));
    }
    const std::vector<Value> outputs = op.expand(b, node, inputs);
    ASSERT_EQ(outputs.size(), node.outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(b.spec(outputs[i]), node.outputs[i]) << op_case.name;
      b.set_output("y" + std::to_string(i), outputs[i]);
    }
    const std::vector<RefTensor> values = random_inputs(op_case, 4);
    const std::vector<RefTensor> expected = run(graph, values);
    const std::vector<RefTensor> got = run(std::move(b).finish(), values);
    for (std::size_t i = 0; i < got.size(); ++i) expect_near(got[i], expected[i], 1e-5, op_case.name);
  }
}

// What a shape rule says of bad inputs.
struct BadCase {
  const char* op;
  std::vector<Spec> inputs;
  Attrs attrs;
  const char* says;
};

Attrs conv_attrs(Ints stride, Ints pad, Ints dilation, std::int64_t groups) {
  return {
      {"stride", std::move(stride)}, {"pad", std::move(pad)}, {"dilation", std::move(dilation)}, {"groups", groups}};
}

Attrs pool_attrs(Ints kernel, Ints pad) {
  return {{"kernel", std::move(kernel)}, {"stride", Ints{1, 1}}, {"pad", std::move(pad)}, {"dilation", Ints{1, 1}}};
}

Attrs matmul_attrs(std::int64_t tx, std::int64_t ty) { return {{"transpose_x", tx}, {"transpose_y", ty}}; }

std::vector<BadCase> bad_cases() {
  const Attrs conv = conv_attrs({1, 1}, {0, 0, 0, 0}, {1, 1}, 1);
  const Spec image = f32({1, 5, 5, 4});
  return {
      {"add", {f32({3}), f32({4})}, {}, "do not broadcast"},
      {"matmul", {f32({2, 3}), f32({4, 5})}, matmul_attrs(0, 0), "inner sizes differ: 3 and 4"},
      {"matmul", {f32({2, 3}), f32({4, 5})}, matmul_attrs(0, 1), "inner sizes differ: 3 and 5"},
      {"matmul", {f32({3}), f32({3, 5})}, matmul_attrs(0, 0), "two matrices"},
      {"matmul", {f32({2, 3, 3}), f32({4, 3, 3})}, matmul_attrs(0, 0), "batch dimensions differ"},
      {"matmul", {f32({3, 3}), f32({3, 3})}, matmul_attrs(1, 1), "both sides"},
      {"matmul", {i32({3, 3}), f32({3, 3})}, matmul_attrs(0, 0), "expected f32"},
      {"conv2d", {image, f32({3, 3, 5, 2})}, conv, "take 5 input channels"},
      {"conv2d", {image, f32({6, 3, 4, 2})}, conv, "larger than the padded input"},
      {"conv2d", {image, f32({3, 3, 4, 2})}, conv_attrs({0, 1}, {0, 0, 0, 0}, {1, 1}, 1), "strides"},
      {"conv2d", {image, f32({3, 3, 4, 2})}, conv_attrs({1, 1}, {0, 0, 0, 0}, {1, 0}, 1), "dilations"},
      {"conv2d", {image, f32({3, 3, 4, 2})}, conv_attrs({1, 1}, {0, -1, 0, 0}, {1, 1}, 1), "negative"},
      {"conv2d", {image, f32({3, 3, 4, 3})}, conv_attrs({1, 1}, {0, 0, 0, 0}, {1, 1}, 3), "3 groups do not divide"},
      {"conv2d", {f32({5, 5, 4}), f32({3, 3, 4, 3})}, conv, "expected images"},
      {"depthwise", {image, f32({3, 3, 1, 5})}, conv, "expected weights [KH, KW, 1, 4]"},
      {"max_pool", {image}, pool_attrs({2, 2}, {2, 0, 0, 0}), "more than half"},
      {"max_pool", {f32({1, 20, 20, 1})}, pool_attrs({17, 16}, {0, 0, 0, 0}), "at most 256"},
      {"batch_norm_train", {f32({3, 4}), f32({4}), f32({3}), f32({4})}, {{"eps", 1e-5}}, "expected [4]"},
      {"layer_norm", {f32({3, 4}), f32({4}), f32({4})}, {{"eps", 0.0}}, "eps must be positive"},
      {"softmax_cross_entropy", {f32({3, 4}), f32({3})}, {{"label_smoothing", 0.0}}, "expected labels i32[3]"},
      {"softmax_cross_entropy", {f32({3, 4}), i32({3})}, {{"label_smoothing", 1.5}}, "label smoothing"},
      {"gather", {f32({3, 4}), f32({3})}, {}, "indices are i32"},
      {"reshape", {f32({3, 4})}, {{"shape", Ints{5}}}, "12 elements"},
      {"broadcast_to", {f32({3, 4})}, {{"shape", Ints{4, 3}}}, "does not broadcast"},
      {"transpose", {f32({3, 4})}, {{"order", Ints{1, 1}}}, "once"},
      {"slice", {f32({3, 4})}, {{"begin", Ints{0, 2}}, {"size", Ints{3, 3}}}, "not within"},
      {"concat", {f32({3, 4}), f32({4, 4})}, {{"axis", std::int64_t{1}}}, "does not match"},
      {"pad", {f32({3})}, {{"before", Ints{-1}}, {"after", Ints{0}}, {"value", 0.0}}, "negative"},
      {"dropout_mask", {i32({}), i32({})}, {{"p", 1.0}, {"id", std::int64_t{0}}, {"shape", Ints{3}}}, "below 1"},
      {"select", {f32({3})}, {}, "takes 3 inputs"},
      {"constant", {}, {{"shape", Ints{3}}, {"values", std::vector<float>{1}}}, "1 values for shape [3]"},
  };
}

TEST(Ops, ShapeRulesRejectBadInputsAndNameTheOp) {
  for (const BadCase& bad : bad_cases()) {
    GraphBuilder b;
    std::vector<Value> inputs;
    for (const Spec& spec : bad.inputs) inputs.push_back(ops::input(b, "x" + std::to_string(inputs.size()), spec));
    try {
      b.add(find_op(bad.op), inputs, bad.attrs);
      ADD_FAILURE() << bad.op << " accepted what it should reject: " << bad.says;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::bad_argument);
      const std::string text = error.what();
      EXPECT_NE(text.find(bad.says), std::string::npos) << text;
      const std::string op = bad.op == std::string("dropout_mask") ? "dropout" : bad.op;
      EXPECT_NE(text.find(op), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace stoker::test
