// The reference evaluator on fused nodes and state, and backward() as a sweep over the graph.
#include "ops/evaluate.h"

#include <gtest/gtest.h>

#include "autodiff/backward.h"
#include "op_cases.h"
#include "ops/common.h"
#include "ops/cost.h"
#include "ops/ops.h"
#include "ops/registry.h"
#include "stoker/error.hpp"

namespace stoker::test {
namespace {

using B = GraphBuilder;

std::vector<Spec> fused_inputs() {
  return {f32({2, 3, 4, 5}), f32({2, 3, 4, 5}), f32({5}), f32({3, 3, 5, 7}), f32({7}), f32({2, 3, 4, 1})};
}

// relu(conv2d(x0 * x2 + x1, x3, padded) + x4) * x5: stored, and summed per channel. Padding is zero after the prologue.
Value plain_convolution(B& b, const std::vector<Value>& x) {
  const Value operand = ops::add(b, ops::mul(b, x[0], x[2]), x[1]);
  const Value y = ops::conv2d(b, operand, x[3], {.pad = {1, 1, 1, 1}});
  return ops::mul(b, ops::relu(b, ops::add(b, y, x[4])), x[5]);
}

Value fused_convolution(B& b, const std::vector<Value>& x) {
  ExprBuilder pre;
  const int operand[] = {pre.add(pre.mul(pre.input(0), pre.input(2)), pre.input(1))};
  ExprBuilder post;
  const int y = post.mul(post.maximum(post.add(post.input(0), post.input(1)), post.constant(0.0F)), post.input(2));
  const int results[] = {y, y};
  Fusion fusion;
  fusion.operands = {
      {.expr = pre.finish(operand, 3), .args = {{0, Access::full}, {1, Access::full}, {2, Access::channel}}},
      {.args = {{3, Access::full}}}};
  fusion.epilogue = post.finish(results, 3);
  fusion.extra = {{4, Access::channel}, {5, Access::row}};
  fusion.results = {ResultKind::store, ResultKind::sum_channel};
  const Value plain = plain_convolution(b, x);  // its attributes are the fused node's
  Node node;
  for (const Node& other : b.graph().nodes) {
    if (other.op->name == "conv2d") node = other;
  }
  node.inputs = x;
  node.outputs = {b.spec(plain), f32({7})};
  node.fusion = std::make_shared<const Fusion>(fusion);
  return b.add_node(node);
}

std::vector<Value> inputs_of(B& b, const std::vector<Spec>& specs) {
  std::vector<Value> values;
  for (const Spec& spec : specs) values.push_back(ops::input(b, "x" + std::to_string(values.size()), spec));
  return values;
}

TEST(Evaluate, FusedKernelOpsAgreeWithThePlainGraph) {
  B b;
  const std::vector<Value> x = inputs_of(b, fused_inputs());
  const Value plain = plain_convolution(b, x);
  const Value fused = fused_convolution(b, x);
  b.set_output("plain", plain);
  b.set_output("plain sum", ops::reduce_sum(b, plain, {0, 1, 2}));
  b.set_output("fused", fused);
  b.set_output("fused sum", {fused.node, 1});
  const Graph graph = std::move(b).finish();
  ASSERT_NO_THROW(verify(graph));
  const OpCase shapes{.inputs = fused_inputs(), .ranges = std::vector<Range>(6)};
  const std::vector<RefTensor> y = evaluate_reference(graph, random_inputs(shapes, 1), {});
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(y[i].shape, y[i + 2].shape);
    for (std::size_t k = 0; k < y[i].data.size(); ++k) EXPECT_NEAR(y[i].data[k], y[i + 2].data[k], 1e-12);
  }
}

TEST(Cost, OfAFusedNodeAddsItsExpressionsToTheKernels) {
  B b;
  const std::vector<Value> x = inputs_of(b, fused_inputs());
  const Value fused = fused_convolution(b, x);
  const Cost cost = cost_of(b.graph(), b.graph().node(fused));
  const double pixels = 2 * 3 * 4;
  // Convolution; multiply and add in the prologue; add, maximum, multiply in the epilogue; one sum.
  EXPECT_EQ(cost.flops, 2 * pixels * 7 * 45 + 2 * pixels * 5 + 3 * pixels * 7 + pixels * 7);
  EXPECT_EQ(cost.bytes, 4 * (2 * pixels * 5 + 5 + 315 + 7 + pixels + pixels * 7 + 7));
}

TEST(Evaluate, PointwiseNodesBroadcast) {
  B b;
  const std::vector<Value> x = inputs_of(b, {f32({3, 1}), f32({2, 1, 5}), f32({})});
  ExprBuilder e;
  const int result[] = {e.add(e.mul(e.input(0), e.input(1)), e.input(2))};
  const Fusion fusion{.epilogue = e.finish(result, 3),
                      .extra = {{0, Access::broadcast}, {1, Access::broadcast}, {2, Access::scalar}},
                      .results = {ResultKind::store}};
  b.set_output("fused", b.add_node({.op = &find_op("pointwise"),
                                    .inputs = x,
                                    .outputs = {f32({2, 3, 5})},
                                    .fusion = std::make_shared<const Fusion>(fusion)}));
  b.set_output("plain", ops::add(b, ops::mul(b, x[0], x[1]), x[2]));
  const OpCase shapes{.inputs = {f32({3, 1}), f32({2, 1, 5}), f32({})}, .ranges = std::vector<Range>(3)};
  const std::vector<RefTensor> y = evaluate_reference(std::move(b).finish(), random_inputs(shapes, 2), {});
  EXPECT_EQ(y[0].data, y[1].data);
}

TEST(Evaluate, WritesStateAfterAllOfTheGraphHasReadIt) {
  B b;
  const int first = b.declare_state({"first", f32({2})});
  const int second = b.declare_state({"second", f32({2})});
  b.write_state(first, ops::add(b, ops::state(b, second), 1.0F));
  b.write_state(second, ops::state(b, first));
  b.set_output("y", ops::state(b, first));
  std::vector<RefTensor> states = {{{2}, {1, 2}}, {{2}, {10, 20}}};
  const std::vector<RefTensor> y = evaluate_reference(std::move(b).finish(), {}, states);
  EXPECT_EQ(y[0].data, (std::vector<double>{1, 2}));
  EXPECT_EQ(states[0].data, (std::vector<double>{11, 21}));
  EXPECT_EQ(states[1].data, (std::vector<double>{1, 2}));
}

TEST(Evaluate, RejectsInputsOfAnotherShape) {
  B b;
  b.set_output("y", ops::neg(b, ops::input(b, "x", f32({3}))));
  const Graph graph = std::move(b).finish();
  const std::vector<RefTensor> wrong = {{{2}, {1, 2}}};
  EXPECT_THROW((void)evaluate_reference(graph, wrong, {}), Error);
  EXPECT_THROW((void)evaluate_reference(graph, {}, {}), Error);
}

TEST(Backward, SumsContributionsAndLeavesNoneWhereNoPathLeads) {
  B b;
  const Value x = ops::input(b, "x", f32({2}));
  const Value unused = ops::input(b, "unused", f32({2}));
  const Value y = ops::add(b, ops::mul(b, x, x), x);
  const Value outputs[] = {y, y};
  const Value one = ops::constant(b, {2}, {1, 1});
  const Value cotangents[] = {one, one};
  const Value wrt[] = {x, unused};
  const std::vector<Value> gradients = backward(b, outputs, cotangents, wrt);
  EXPECT_TRUE(gradients[1].is_none());
  b.set_output("g", gradients[0]);
  const std::vector<RefTensor> inputs = {{{2}, {3, -1}}, {{2}, {0, 0}}};
  EXPECT_EQ(evaluate_reference(std::move(b).finish(), inputs, {})[0].data, (std::vector<double>{14, -2}));
}

TEST(Backward, NodesAreOfItsPhaseAndCarryTheForwardName) {
  B b;
  const Value x = ops::input(b, "x", f32({2}));
  b.set_name("layer1");
  const Value y[] = {ops::exp(b, x)};
  b.set_name("after");
  const auto forward = static_cast<int>(b.graph().nodes.size());
  const Value wrt[] = {x};
  const Value gradient = backward(b, y, y, wrt)[0];
  ASSERT_GE(gradient.node, forward);
  EXPECT_EQ(b.graph().node(gradient).phase, Phase::backward);
  EXPECT_EQ(b.graph().node(gradient).name, "layer1");
  EXPECT_EQ(b.phase(), Phase::forward);
  EXPECT_EQ(b.name(), "after");
}

TEST(Backward, DoesNoWorkForInputsThatAreNotAskedFor) {
  B b;
  const Value x = ops::input(b, "x", f32({2}));
  const Value w = ops::input(b, "w", f32({2}));
  const Value y[] = {ops::mul(b, ops::tanh(b, ops::exp(b, x)), w)};
  const Value wrt[] = {w};
  const auto forward = b.graph().nodes.size();
  (void)backward(b, y, y, wrt);
  for (std::size_t i = forward; i < b.graph().nodes.size(); ++i) EXPECT_EQ(b.graph().nodes[i].op->name, "mul");
}

TEST(Backward, NamesAnOpThatHasNoGradient) {
  B b;
  const Value x = ops::input(b, "x", f32({1, 4, 4, 1}));
  const Value w = ops::input(b, "w", f32({1, 1, 1, 1}));
  Attrs attrs{{"stride", Ints{1, 1}}, {"pad", Ints{0, 0, 0, 0}}, {"dilation", Ints{1, 1}}, {"groups", std::int64_t{1}}};
  attrs.set("input_shape", Ints{1, 4, 4, 1});
  const Value y[] = {ops::make(b, "conv2d_input_grad", {x, w}, attrs)};
  const Value wrt[] = {x};
  try {
    (void)backward(b, y, y, wrt);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("conv2d_input_grad"), std::string::npos);
  }
}

TEST(Backward, StopsAtIntegersBoolsAndStopGradient) {
  B b;
  const Value x = ops::input(b, "x", f32({4}));
  const Value wrt[] = {x};
  for (const Value y : {ops::cast(b, ops::argmax(b, x, 0), DType::f32), ops::stop_gradient(b, x),
                        ops::cast(b, ops::gt(b, x, ops::constant(b, 0.0F)), DType::f32)}) {
    const Value outputs[] = {y};
    EXPECT_TRUE(backward(b, outputs, outputs, wrt)[0].is_none()) << b.graph().node(y).op->name;
  }
}

TEST(Backward, RejectsACotangentOfAnotherShape) {
  B b;
  const Value x[] = {ops::input(b, "x", f32({4}))};
  const Value y[] = {ops::neg(b, x[0])};
  const Value wrong[] = {ops::constant(b, 1.0F)};
  EXPECT_THROW((void)backward(b, y, wrong, x), Error);
  EXPECT_THROW((void)backward(b, y, {}, x), Error);
}

}  // namespace
}  // namespace stoker::test
