// Passes: what they compute stays the same, what they save is gone.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/null/null_backend.h"
#include "base/error.h"
#include "base/random.h"
#include "graph/op_def.h"
#include "ops/evaluate.h"
#include "ops/ops.h"
#include "passes/pass.h"
#include "run/step_graph.h"
#include "test_models.h"

namespace stoker {
namespace {

using test::residual_net;
using test::small_conv_net;

int count(const Graph& graph, std::string_view op) {
  return static_cast<int>(std::ranges::count_if(graph.nodes, [&](const Node& node) { return node.op->name == op; }));
}

struct Numbers {
  std::vector<RefTensor> outputs;
  std::vector<RefTensor> states;
};

// Runs a step graph with the references, on inputs and states drawn from a fixed seed.
Numbers evaluate(const Graph& graph) {
  Random random(7);
  const auto tensor = [&](const Spec& spec, float low, float high) {
    RefTensor result{spec.shape, std::vector<double>(static_cast<std::size_t>(spec.shape.elements()))};
    for (double& value : result.data) {
      value = spec.dtype == DType::f32 ? random.uniform(low, high) : static_cast<double>(random.below(3));
    }
    return result;
  };
  std::vector<RefTensor> inputs;
  for (const NamedValue& input : graph.inputs) inputs.push_back(tensor(graph.spec(input.value), -1, 1));
  Numbers numbers;
  for (const StateVar& state : graph.states) {
    const bool positive = state.role == StateRole::statistic || state.role == StateRole::moment;
    numbers.states.push_back(tensor(state.spec, positive ? 0.5F : -0.5F, positive ? 1.5F : 0.5F));
  }
  numbers.outputs = evaluate_reference(graph, inputs, numbers.states);
  return numbers;
}

void expect_same(const std::vector<RefTensor>& a, const std::vector<RefTensor>& b, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].data.size(), b[i].data.size());
    for (std::size_t k = 0; k < a[i].data.size(); ++k) {
      ASSERT_NEAR(a[i].data[k], b[i].data[k], tolerance * (1 + std::abs(a[i].data[k])))
          << what << " tensor " << i << " element " << k;
    }
  }
}

SessionOptions adam() {
  SessionOptions options;
  options.optimizer = {.kind = nn::Optimizer::Kind::adam, .weight_decay = 0.01};
  options.schedule = {.kind = nn::Schedule::Kind::cosine, .rate = 0.1, .warmup_steps = 2, .total_steps = 50};
  return options;
}

Graph with_passes(const Graph& graph, const NullOptions& null = {}, const PassOptions& options = {}) {
  return run_passes(graph, make_null_backend(null)->target(), options);
}

// Composite ops written out and nothing else: the step that the optional passes start from.
Graph expanded(const Graph& graph) {
  PassOptions options;
  for (const Pass& pass : all_passes()) {
    if (!pass.required) options.off.emplace_back(pass.name);
  }
  return with_passes(graph, {}, options);
}

class PassesOnModels : public ::testing::TestWithParam<int> {
 protected:
  static nn::Model model() { return GetParam() == 0 ? residual_net() : small_conv_net(); }
};
INSTANTIATE_TEST_SUITE_P(Models, PassesOnModels, ::testing::Values(0, 1));

TEST_P(PassesOnModels, all_together_keep_every_output_and_state) {
  for (const StepKind kind :
       {StepKind::train, StepKind::accumulate, StepKind::apply, StepKind::evaluate, StepKind::predict}) {
    const StepGraph step = build_step(model(), adam(), kind, 3);
    const Numbers before = evaluate(expanded(step.graph));
    const Numbers after = evaluate(with_passes(step.graph));
    // Constants are rounded to fp32 when folded.
    expect_same(before.outputs, after.outputs, 1e-6, "output");
    expect_same(before.states, after.states, 1e-6, "state");
  }
}

TEST_P(PassesOnModels, writing_out_composite_ops_keeps_the_numbers) {
  const StepGraph step = build_step(model(), adam(), StepKind::train, 3);
  // The written-out form has its constants (eps, 1 / count) in fp32.
  expect_same(evaluate(step.graph).states, evaluate(expanded(step.graph)).states, 2e-5, "state");
}

TEST_P(PassesOnModels, each_one_switched_off_keeps_every_output_and_state) {
  const StepGraph step = build_step(model(), adam(), StepKind::train, 2);
  const Numbers before = evaluate(expanded(step.graph));
  for (const Pass& pass : all_passes()) {
    if (pass.required) continue;
    const Numbers after = evaluate(with_passes(step.graph, {}, {.off = {pass.name}}));
    expect_same(before.outputs, after.outputs, 1e-6, std::string("without ") + pass.name + ": output");
    expect_same(before.states, after.states, 1e-6, std::string("without ") + pass.name + ": state");
  }
}

TEST_P(PassesOnModels, keep_the_numbers_on_targets_that_fuse_less) {
  const StepGraph step = build_step(model(), adam(), StepKind::train, 2);
  const Numbers before = evaluate(expanded(step.graph));
  for (const int tensors : {0, 1, 2}) {
    for (const bool epilogues : {false, true}) {
      const Numbers after = evaluate(with_passes(step.graph, {.prologue_tensors = tensors, .epilogues = epilogues}));
      expect_same(before.states, after.states, 1e-6, "state");
    }
  }
}

TEST(Passes, normalised_tensors_of_batch_norm_are_never_stored) {
  const Graph graph = with_passes(build_step(residual_net(), {}, StepKind::train, 4).graph);
  // Kept per convolution: its output and its gradient. Stored by pointwise nodes: the residual sum, forward, and what
  // reaches it backward.
  int stored = 0;
  for (const Node& node : graph.nodes) {
    if (node.op->name != "pointwise") continue;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      stored += node.fusion->results[i] == ResultKind::store && node.outputs[i].shape.rank() == 4 &&
                node.phase != Phase::update;
    }
  }
  EXPECT_LE(stored, 3) << to_string(graph);
}

TEST(Passes, batch_statistics_come_from_the_epilogue_of_the_convolution) {
  const Graph graph = with_passes(build_step(residual_net(), {}, StepKind::train, 4).graph);
  for (const Node& node : graph.nodes) {
    if (node.phase != Phase::forward || (node.op->name != "conv2d" && node.op->name != "depthwise")) continue;
    ASSERT_TRUE(node.fusion) << to_string(graph);
    EXPECT_EQ(std::ranges::count(node.fusion->results, ResultKind::sum_channel), 2);
    EXPECT_EQ(std::ranges::count(node.fusion->results, ResultKind::store), 1);
  }
}

TEST(Passes, bias_and_activation_join_the_op_before_them) {
  const Graph graph = with_passes(build_step(small_conv_net(), {}, StepKind::predict, 4).graph);
  EXPECT_EQ(count(graph, "pointwise"), 0) << to_string(graph);
  EXPECT_EQ(count(graph, "conv2d"), 1);
  EXPECT_EQ(count(graph, "matmul"), 2);
}

TEST(Passes, an_optimizer_update_is_one_node_a_parameter) {
  for (const bool nesterov : {false, true}) {
    SessionOptions momentum;
    momentum.optimizer = {.momentum = 0.9, .nesterov = nesterov, .weight_decay = nesterov ? 0.01 : 0.0};
    const Graph graph = with_passes(build_step(small_conv_net(), momentum, StepKind::train, 4).graph);
    int updates = 0;
    for (const Node& node : graph.nodes) {
      updates += node.phase == Phase::update && node.op->name == "pointwise" && node.outputs[0].shape.elements() > 1;
    }
    EXPECT_EQ(updates, 6) << to_string(graph);
  }
}

TEST(Passes, the_first_layers_input_gradient_is_never_computed) {
  const Graph conv = with_passes(build_step(residual_net(), {}, StepKind::train, 2).graph);
  EXPECT_EQ(count(conv, "conv2d_weight_grad"), 3);
  EXPECT_EQ(count(conv, "conv2d_input_grad"), 2);
}

TEST(Passes, freezing_removes_the_backward_work_that_only_the_frozen_needed) {
  const Graph whole = with_passes(build_step(residual_net(), {}, StepKind::train, 2).graph);
  SessionOptions options;
  options.freeze = {"stem", "block.0", "block.1"};
  const Graph frozen = with_passes(build_step(residual_net(), options, StepKind::train, 2).graph);
  EXPECT_EQ(count(frozen, "conv2d_weight_grad"), 1);
  EXPECT_EQ(count(frozen, "conv2d_input_grad"), 0);
  EXPECT_EQ(count(frozen, "depthwise_weight_grad"), 0);
  EXPECT_LT(frozen.nodes.size(), whole.nodes.size());
  options.freeze = {"nothing.like.this"};
  EXPECT_THROW(static_cast<void>(build_step(residual_net(), options, StepKind::train, 2)), Error);
  options.freeze = {"stem", "block", "fc"};
  EXPECT_THROW(static_cast<void>(build_step(residual_net(), options, StepKind::train, 2)), Error);
}

TEST(Passes, equal_values_are_computed_once_and_unused_ones_not_at_all) {
  GraphBuilder b;
  const Value x = ops::input(b, "x", {DType::f32, {3, 4}});
  const Value a = ops::exp(b, x);
  const Value again = ops::exp(b, x);
  static_cast<void>(ops::tanh(b, x));
  b.set_output("y", ops::matmul(b, a, again, false, true));
  const PassOptions plain{.off = {"fuse-pointwise", "fuse-epilogue", "fuse-prologue"}};
  const Graph graph = with_passes(std::move(b).finish(), {}, plain);
  EXPECT_EQ(count(graph, "exp"), 1);
  EXPECT_EQ(count(graph, "tanh"), 0);
}

TEST(Passes, constants_are_folded) {
  GraphBuilder b;
  const Value x = ops::input(b, "x", {DType::f32, {3}});
  const Value two = ops::add(b, ops::constant(b, 1.5F), ops::constant(b, 0.5F));
  b.set_output("y", ops::mul(b, x, ops::exp(b, two)));
  const Graph graph = with_passes(std::move(b).finish(), {}, {.off = {"fuse-pointwise"}});
  EXPECT_EQ(count(graph, "exp"), 0);
  EXPECT_EQ(count(graph, "add"), 0);
}

TEST(Passes, an_unknown_name_is_an_error_that_lists_the_known_ones) {
  const Graph graph = build_step(residual_net(), {}, StepKind::predict, 1).graph;
  try {
    static_cast<void>(with_passes(graph, {}, {.off = {"fuse-everything"}}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("fuse-epilogue"), std::string::npos) << error.what();
  }
  EXPECT_THROW(static_cast<void>(with_passes(graph, {}, {.off = {"expand"}})), Error);
}

TEST(Passes, show_the_graph_before_and_after_each) {
  std::vector<std::string> names;
  const PassOptions options{.observe = [&](std::string_view name, const Graph& before, const Graph& after) {
    names.emplace_back(name);
    EXPECT_FALSE(to_string(before).empty());
    EXPECT_FALSE(to_string(after).empty());
  }};
  static_cast<void>(with_passes(build_step(residual_net(), {}, StepKind::train, 1).graph, {}, options));
  EXPECT_EQ(names.size(), all_passes().size());
}

}  // namespace
}  // namespace stoker
