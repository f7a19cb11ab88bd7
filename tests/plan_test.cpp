// Plans: no two live tensors overlap, writes come after reads, the peak is what is used.
#include "plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "backends/null/null_backend.h"
#include "base/error.h"
#include "base/random.h"
#include "graph/op_def.h"
#include "nn/model.h"
#include "ops/ops.h"
#include "passes/pass.h"
#include "plan/arena.h"
#include "plan/schedule.h"
#include "run/step_graph.h"
#include "test_models.h"

namespace stoker {
namespace {

void expect_no_overlap(const Plan& plan) {
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const ArenaTensor& a = plan.tensors[i];
    EXPECT_EQ(a.offset % ArenaRules{}.alignment, 0);
    EXPECT_LE(a.offset + a.bytes, plan.arena_bytes);
    for (std::size_t j = i + 1; j < plan.tensors.size(); ++j) {
      const ArenaTensor& b = plan.tensors[j];
      const bool apart_in_time = a.last < b.first || b.last < a.first;
      const bool apart_in_space = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
      const bool in_place = b.in_place_of == static_cast<int>(i) && a.last == b.first;
      ASSERT_TRUE(apart_in_time || apart_in_space || in_place) << to_string(plan) << "tensors " << i << " and " << j;
    }
  }
}

// Every input of a step was written before, and a state is not read after it was written, but for its own new value.
void expect_ordered(const Plan& plan) {
  std::map<int, int> position;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) position[plan.steps[i].node] = static_cast<int>(i);
  std::map<int, int> written_at;
  for (const StateWrite& write : plan.graph.writes) written_at[write.state] = position.at(write.value.node);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    for (const Value input : plan.graph.nodes[static_cast<std::size_t>(plan.steps[i].node)].inputs) {
      const Value storage = storage_of(plan.graph, input);
      const Node& maker = plan.graph.node(storage);
      if (maker.op->name == "state") {
        const auto at = written_at.find(static_cast<int>(maker.attrs.integer("index")));
        const int written = at == written_at.end() ? static_cast<int>(plan.steps.size()) : at->second;
        EXPECT_LE(static_cast<int>(i), written) << to_string(plan.graph, plan.steps[i].node);
      } else if (!maker.op->traits.source) {
        EXPECT_LT(position.at(storage.node), static_cast<int>(i));
      }
    }
  }
}

Plan plan_of(const Graph& graph, const NullOptions& null = {}, const PlanOptions& options = {}) {
  const auto backend = make_null_backend(null);
  return make_plan(run_passes(graph, backend->target()), backend->target(), options);
}

TEST(Arena, never_overlaps_two_live_blocks) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<Block> blocks(1 + random.below(60));
    for (Block& block : blocks) {
      block.bytes = static_cast<std::int64_t>(random.below(5000));
      block.first = static_cast<int>(random.below(30));
      block.last = block.first + static_cast<int>(random.below(10));
    }
    const std::int64_t peak = assign_offsets(blocks);
    EXPECT_GE(peak, lower_bound_bytes(blocks));
    std::int64_t used = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      used = std::max(used, blocks[i].offset + blocks[i].bytes);
      for (std::size_t j = i + 1; j < blocks.size(); ++j) {
        const bool apart_in_time = blocks[i].last < blocks[j].first || blocks[j].last < blocks[i].first;
        const bool apart_in_space = blocks[i].offset + blocks[i].bytes <= blocks[j].offset ||
                                    blocks[j].offset + blocks[j].bytes <= blocks[i].offset;
        ASSERT_TRUE(apart_in_time || apart_in_space);
      }
    }
    EXPECT_LE(used, peak);
    EXPECT_LT(peak - used, ArenaRules{}.alignment);
  }
}

TEST(Arena, puts_no_block_across_a_cut) {
  Random random(4);
  const ArenaRules rules{.alignment = 128, .largest_buffer = 8192};
  for (int round = 0; round < 100; ++round) {
    std::vector<Block> blocks(1 + random.below(60));
    for (Block& block : blocks) {
      block.bytes = static_cast<std::int64_t>(random.below(8000));
      block.first = static_cast<int>(random.below(30));
      block.last = block.first + static_cast<int>(random.below(10));
    }
    assign_offsets(blocks, rules);
    for (const Block& block : blocks) {
      EXPECT_EQ(block.offset % rules.alignment, 0);
      const std::int64_t last = block.offset + std::max<std::int64_t>(block.bytes, 1) - 1;
      ASSERT_EQ(block.offset / rules.largest_buffer, last / rules.largest_buffer);
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      for (std::size_t j = i + 1; j < blocks.size(); ++j) {
        const bool apart_in_time = blocks[i].last < blocks[j].first || blocks[j].last < blocks[i].first;
        const bool apart_in_space = blocks[i].offset + blocks[i].bytes <= blocks[j].offset ||
                                    blocks[j].offset + blocks[j].bytes <= blocks[i].offset;
        ASSERT_TRUE(apart_in_time || apart_in_space);
      }
    }
  }
}

TEST(Arena, says_so_if_a_block_is_larger_than_the_largest_buffer) {
  std::vector<Block> blocks{{.bytes = 9000, .first = 0, .last = 0}};
  EXPECT_THROW(assign_offsets(blocks, {.alignment = 128, .largest_buffer = 8192}), Error);
}

// A random graph of pointwise ops, matmuls and reshapes over [4, 4] tensors, with state written here and there.
Graph random_graph(std::uint64_t seed) {
  Random random(seed);
  GraphBuilder b;
  std::vector<Value> values{ops::input(b, "x", {DType::f32, {4, 4}})};
  std::vector<int> states;
  for (int i = 0; i < 3; ++i) {
    states.push_back(b.declare_state({"s" + std::to_string(i), {DType::f32, {4, 4}}, StateRole::parameter}));
    values.push_back(ops::state(b, states.back()));
  }
  const auto pick = [&] { return values[random.below(values.size())]; };
  for (int i = 0; i < 30; ++i) {
    switch (random.below(5)) {
      case 0: values.push_back(ops::matmul(b, pick(), pick())); break;
      case 1: values.push_back(ops::tanh(b, pick())); break;
      case 2: values.push_back(ops::transpose(b, pick(), {1, 0})); break;
      case 3: values.push_back(ops::reshape(b, ops::reshape(b, pick(), {16}), {4, 4})); break;
      default: values.push_back(ops::add(b, pick(), pick()));
    }
  }
  for (const int state : states) {
    if (random.below(2) == 0) b.write_state(state, pick());
  }
  b.set_output("y", pick());
  b.set_output("z", values.back());
  return std::move(b).finish();
}

TEST(Plan, of_random_graphs_is_sound) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    for (const bool in_place : {true, false}) {
      const Plan plan = plan_of(random_graph(seed), {.workspace = 100}, {.in_place = in_place});
      expect_no_overlap(plan);
      expect_ordered(plan);
    }
  }
}

TEST(Plan, of_every_model_is_sound) {
  for (const nn::Model& model : nn::zoo()) {
    for (const StepKind kind : {StepKind::train, StepKind::predict}) {
      const Plan plan = plan_of(build_step(model, {}, kind, 2).graph);
      expect_no_overlap(plan);
      expect_ordered(plan);
    }
  }
}

TEST(Plan, small_steps_stand_together_and_the_plan_stays_sound) {
  const Graph graph = build_step(test::residual_net(), {}, StepKind::train, 4).graph;
  constexpr std::int64_t kSmall = 64;
  const auto runs_of_small = [&](const Plan& plan) {
    int runs = 0;
    bool before = false;
    for (const Step& step : plan.steps) {
      const Node& node = plan.graph.nodes[static_cast<std::size_t>(step.node)];
      const bool small =
          std::ranges::all_of(node.outputs, [](const Spec& spec) { return spec.shape.elements() <= kSmall; });
      runs += small && !before ? 1 : 0;
      before = small;
    }
    return runs;
  };
  const Plan apart = plan_of(graph);
  const Plan together = plan_of(graph, {.small = kSmall});
  expect_no_overlap(together);
  expect_ordered(together);
  EXPECT_EQ(apart.steps.size(), together.steps.size());
  EXPECT_LT(runs_of_small(together), runs_of_small(apart)) << to_string(together);
}

TEST(Plan, peak_is_the_end_of_the_highest_tensor) {
  const Plan plan = plan_of(build_step(test::residual_net(), {}, StepKind::train, 4).graph);
  std::int64_t end = 0;
  for (const ArenaTensor& tensor : plan.tensors) end = std::max(end, tensor.offset + tensor.bytes);
  EXPECT_LT(plan.arena_bytes - end, ArenaRules{}.alignment);
}

TEST(Plan, updates_early_need_less_memory_than_updates_at_the_end) {
  const Graph graph = build_step(nn::find_model("resnet18-32"), {}, StepKind::train, 2).graph;
  const Plan early = plan_of(graph);
  const Plan late = plan_of(graph, {}, {.early_update = false});
  EXPECT_LT(early.arena_bytes, late.arena_bytes);
  // The last layer's weight is written before the first layer's gradient is computed.
  std::map<std::string, int> written;
  int last_backward = 0;
  for (std::size_t i = 0; i < early.steps.size(); ++i) {
    for (const Place& place : early.steps[i].outputs) {
      if (place.kind == Place::Kind::state)
        written[early.graph.states[static_cast<std::size_t>(place.index)].name] = static_cast<int>(i);
    }
    if (early.steps[i].phase == Phase::backward) last_backward = static_cast<int>(i);
  }
  EXPECT_LT(written.at("fc.weight"), last_backward);
}

TEST(Plan, in_place_saves_memory) {
  GraphBuilder b;
  Value x = ops::input(b, "x", {DType::f32, {64, 64}});
  x = ops::matmul(b, x, x);
  for (int i = 0; i < 3; ++i) x = ops::softmax(b, ops::tanh(b, x));
  b.set_output("y", x);
  const Graph graph = std::move(b).finish();
  const auto backend = make_null_backend({.epilogues = false});
  const Graph fused = run_passes(graph, backend->target());
  EXPECT_LE(make_plan(fused, backend->target(), {.in_place = true}).arena_bytes,
            make_plan(fused, backend->target(), {.in_place = false}).arena_bytes);
}

TEST(Plan, an_output_is_never_written_over) {
  GraphBuilder b;
  const Value x = ops::input(b, "x", {DType::f32, {8, 8}});
  const Value y = ops::softmax(b, x);
  b.set_output("y", y);
  b.set_output("z", ops::tanh(b, y));
  const Plan plan = plan_of(std::move(b).finish());
  EXPECT_NE(plan.outputs[0].offset, plan.outputs[1].offset) << to_string(plan);
}

TEST(Plan, an_op_that_the_device_lacks_is_an_error_that_names_it) {
  try {
    static_cast<void>(
        plan_of(build_step(test::small_conv_net(), {}, StepKind::train, 2).graph, {.unsupported_op = "max_pool"}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_NE(std::string(error.what()).find("max_pool"), std::string::npos);
  }
}

TEST(Plan, prints_as_a_table_and_as_a_picture) {
  const Plan plan = plan_of(build_step(test::residual_net(), {}, StepKind::train, 2).graph);
  EXPECT_NE(to_string(plan).find("conv2d_weight_grad"), std::string::npos);
  const std::string svg = to_svg(plan);
  EXPECT_TRUE(svg.starts_with("<svg"));
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(svg, '\n')) > plan.tensors.size(), true);
}

}  // namespace
}  // namespace stoker
