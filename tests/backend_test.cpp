// Every backend against the references: every op case forward and backward, random fused nodes, whole training steps;
// on the CPU the same bits for 1, 2 and 3 threads.
#include "backends/backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "autodiff/backward.h"
#include "base/error.h"
#include "base/random.h"
#include "graph_runner.h"
#include "op_cases.h"
#include "ops/evaluate.h"
#include "ops/ops.h"
#include "ops/registry.h"
#include "run/step_graph.h"
#include "test_models.h"

namespace stoker::test {
namespace {

std::vector<RefTensor> zero_states(const Graph& graph) {
  std::vector<RefTensor> states;
  for (const StateVar& state : graph.states) {
    states.push_back({state.spec.shape, std::vector<double>(static_cast<std::size_t>(state.spec.shape.elements()))});
  }
  return states;
}

// |difference| <= tolerance * max(1, largest |expected| of the tensor): sums of many terms cancel.
void expect_near(const std::vector<RefTensor>& expected, const std::vector<RefTensor>& actual, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(expected[i].data.size(), actual[i].data.size()) << what;
    double scale = 1;
    for (const double value : expected[i].data) scale = std::max(scale, std::isfinite(value) ? std::abs(value) : 0);
    for (std::size_t k = 0; k < expected[i].data.size(); ++k) {
      const double e = expected[i].data[k];
      const double a = actual[i].data[k];
      if (std::isnan(e) && std::isnan(a)) continue;
      if (std::isinf(e) && e == a) continue;
      ASSERT_LE(std::abs(e - a), tolerance * scale)
          << what << ", output " << i << ", element " << k << ": expected " << e << ", got " << a;
    }
  }
}

bool same_bits(const std::vector<RefTensor>& a, const std::vector<RefTensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = 0; k < a[i].data.size(); ++k) {
      if (std::memcmp(&a[i].data[k], &b[i].data[k], sizeof(double)) != 0) return false;
    }
  }
  return a.size() == b.size();
}

// The ways to run a graph that must give the same bits.
class Backends {
 public:
  // Outputs followed by states, after checking that all ways agree to the bit.
  std::vector<RefTensor> run(const Graph& graph, const std::vector<RefTensor>& inputs,
                             const std::vector<RefTensor>& states, const std::string& what,
                             const PassOptions& passes = {}) {
    std::vector<RefTensor> first;
    for (std::size_t i = 0; i < backends_.size(); ++i) {
      std::vector<RefTensor> after = states;
      std::vector<RefTensor> result = run_on(*backends_[i], graph, inputs, after, passes);
      result.insert(result.end(), after.begin(), after.end());
      if (i == 0) {
        first = std::move(result);
      } else {
        EXPECT_TRUE(same_bits(first, result)) << what << ": way " << i + 1 << " gives other bits than the first";
      }
    }
    return first;
  }

  void add(const std::string& device, const BackendOptions& options) {
    backends_.push_back(make_backend(device, options));
  }
  Backend& one() { return *backends_[0]; }
  [[nodiscard]] bool builds_programs() const { return backends_[0]->describe().id != "cpu"; }

 private:
  std::vector<std::unique_ptr<Backend>> backends_;
};

// The parameter is a kind of device: "cpu", or "opencl" for all of that kind.
class EveryBackend : public ::testing::TestWithParam<const char*> {
 protected:
  // Calls test(backends) for each device of the kind.
  template <typename Test>
  void for_devices(const Test& test) {
    const std::string kind = GetParam();
    bool found = false;
    for (const DeviceInfo& device : list_devices()) {
      if (!device.id.starts_with(kind)) continue;
      found = true;
      SCOPED_TRACE(device.id + " " + device.name);
      Backends backends;
      if (kind == "cpu") {
        for (const int threads : {1, 2, 3}) backends.add("cpu", {.threads = threads});
      } else {
        backends.add(device.id, {.self_test = false});  // opencl_backend_test compares replay with plain launches
      }
      test(backends);
    }
    if (!found) GTEST_SKIP() << "there is no device of kind " << kind;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, EveryBackend, ::testing::Values("cpu", "opencl"));

std::vector<RefTensor> reference(const Graph& graph, const std::vector<RefTensor>& inputs,
                                 std::vector<RefTensor> states) {
  std::vector<RefTensor> result = evaluate_reference(graph, inputs, states);
  result.insert(result.end(), states.begin(), states.end());
  return result;
}

PassOptions only_required() {
  PassOptions options;
  for (const Pass& pass : all_passes()) {
    if (!pass.required) options.off.emplace_back(pass.name);
  }
  return options;
}

TEST_P(EveryBackend, runs_every_op_case_forward) {
  for_devices([](Backends& backends) {
    for (const OpCase& op_case : all_op_cases()) {
      const Graph graph = graph_of(op_case);
      const std::vector<RefTensor> inputs = random_inputs(op_case, 11);
      const std::vector<RefTensor> states = zero_states(graph);
      const std::vector<RefTensor> expected = reference(graph, inputs, states);
      expect_near(expected, backends.run(graph, inputs, states, op_case.name, only_required()), op_case.tolerance,
                  op_case.name);
      expect_near(expected, backends.run(graph, inputs, states, op_case.name), op_case.tolerance,
                  op_case.name + " (fused)");
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST_P(EveryBackend, runs_every_op_case_backward) {
  for_devices([](Backends& backends) {
    for (const OpCase& op_case : all_op_cases()) {
      if (!op_case.differentiable) continue;
      GraphBuilder b;
      std::vector<Value> inputs;
      std::vector<Value> wrt;
      for (std::size_t i = 0; i < op_case.inputs.size(); ++i) {
        inputs.push_back(ops::input(b, "x" + std::to_string(i), op_case.inputs[i]));
        if (op_case.inputs[i].dtype == DType::f32) wrt.push_back(inputs.back());
      }
      const Value y = op_case.build(b, inputs);
      const Value cotangent = ops::input(b, "cotangent", b.spec(y));
      const std::vector<Value> gradients = backward(b, std::span(&y, 1), std::span(&cotangent, 1), wrt);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (!gradients[i].is_none()) b.set_output("d" + std::to_string(i), gradients[i]);
      }
      std::vector<RefTensor> values = random_inputs(op_case, 12);
      Random random(5);
      RefTensor last{b.shape(y), {}};
      for (std::int64_t i = 0; i < last.shape.elements(); ++i) last.data.push_back(random.uniform(-1, 1));
      values.push_back(last);
      const Graph graph = std::move(b).finish();
      const std::vector<RefTensor> states = zero_states(graph);
      expect_near(reference(graph, values, states), backends.run(graph, values, states, op_case.name + " backward"),
                  5 * op_case.tolerance, op_case.name + " backward");
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

// Puts a random pointwise computation before an operand: what a prologue does.
Value random_prologue(GraphBuilder& b, Random& random, Value x, std::vector<Spec>& extra,
                      std::vector<Value>& extra_inputs) {
  const Shape shape = b.shape(x);
  const auto more = [&](const Shape& s) {
    extra.push_back({DType::f32, s});
    extra_inputs.push_back(ops::input(b, "e" + std::to_string(extra.size()), extra.back()));
    return extra_inputs.back();
  };
  switch (random.below(4)) {
    case 0: return ops::relu6(b, ops::add(b, ops::mul(b, x, more({shape[-1]})), more({shape[-1]})));
    case 1: return ops::add(b, ops::mul(b, x, more({shape[-1]})), ops::mul(b, more(shape), more({shape[-1]})));
    case 2: return ops::add(b, ops::tanh(b, x), 1.5F);  // not zero at zero: padding must come after it
    default: return ops::mul(b, ops::silu(b, x), more(Shape{}));
  }
}

// Follows a result with pointwise work and channel sums: what an epilogue does.
void random_epilogue(GraphBuilder& b, Random& random, Value y, std::vector<Spec>& extra,
                     std::vector<Value>& extra_inputs) {
  const Shape shape = b.shape(y);
  const auto more = [&](const Shape& s) {
    extra.push_back({DType::f32, s});
    extra_inputs.push_back(ops::input(b, "e" + std::to_string(extra.size()), extra.back()));
    return extra_inputs.back();
  };
  std::vector<std::int64_t> rows;
  for (int i = 0; i + 1 < shape.rank(); ++i) rows.push_back(i);
  Value z = ops::relu(b, ops::add(b, y, more({shape[-1]})));
  if (random.below(2) == 0) z = ops::add(b, z, more(shape));
  if (random.below(2) == 0) b.set_output("plain", y);
  if (random.below(3) != 0) b.set_output("stored", z);
  b.set_output("sum", ops::reduce_sum(b, z, rows));
  b.set_output("squares", ops::reduce_sum(b, ops::mul(b, z, z), rows));
}

TEST_P(EveryBackend, runs_random_fused_nodes_on_every_kernel_op) {
  for_devices([](Backends& backends) {
    std::set<std::string> fused_ops;
    std::uint64_t seeds = 1;
    for (const OpCase& op_case : all_op_cases()) {
      if (!find_op(op_case.op).traits.kernel) continue;
      const std::uint64_t first_seed = std::exchange(seeds, seeds + 3);
      // Each is a program to build, where programs are: with an epilogue, and with prologues too.
      for (int round = 0; round < (backends.builds_programs() ? 2 : 3); ++round) {
        const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(round);
        Random random(seed);
        GraphBuilder b;
        std::vector<Value> inputs;
        std::vector<Spec> extra;
        std::vector<Value> extra_inputs;
        for (std::size_t i = 0; i < op_case.inputs.size(); ++i) {
          inputs.push_back(ops::input(b, "x" + std::to_string(i), op_case.inputs[i]));
        }
        std::vector<Value> operands = inputs;
        if (round > 0) {
          for (Value& operand : operands) {
            if (random.below(3) != 0 && b.shape(operand).rank() >= 1) {
              operand = random_prologue(b, random, operand, extra, extra_inputs);
            }
          }
        }
        const Value y = op_case.build(b, operands);
        if (b.shape(y).rank() < 2 || b.graph().node(y).op->name != op_case.op) continue;
        random_epilogue(b, random, y, extra, extra_inputs);
        std::vector<RefTensor> values = random_inputs(op_case, seed);
        for (const Spec& spec : extra) {
          RefTensor tensor{spec.shape, {}};
          for (std::int64_t i = 0; i < spec.shape.elements(); ++i) tensor.data.push_back(random.uniform(-1, 1));
          values.push_back(std::move(tensor));
        }
        const Graph graph = std::move(b).finish();
        const Graph fused = run_passes(graph, backends.one().target());
        for (const Node& node : fused.nodes) {
          if (node.fusion && node.op->traits.kernel) fused_ops.insert(node.op->name);
        }
        const std::vector<RefTensor> states = zero_states(graph);
        expect_near(reference(graph, values, states), backends.run(graph, values, states, op_case.name + " fused"),
                    1e-4, op_case.name + " fused as\n" + to_string(fused));
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
    for (const char* op : {"matmul", "conv2d", "conv2d_input_grad", "depthwise", "depthwise_input_grad"}) {
      EXPECT_TRUE(fused_ops.contains(op)) << op << " was never fused: the test tests nothing";
    }
  });
}

// Inputs and states as training has them.
std::vector<RefTensor> training_values(const Graph& graph, bool states) {
  Random random(21);
  std::vector<RefTensor> tensors;
  // A running mean far from the batch's would test cancellation, not the kernels; nor may Adam divide by almost
  // nothing.
  const auto add = [&](const Spec& spec, StateRole role, bool mean = false) {
    RefTensor tensor{spec.shape, {}};
    for (std::int64_t i = 0; i < spec.shape.elements(); ++i) {
      const double value = mean                           ? random.uniform(-0.1F, 0.1F)
                           : role == StateRole::statistic ? random.uniform(0.5F, 1.5F)
                           : role == StateRole::moment    ? random.uniform(0.05F, 0.15F)
                                                          : random.uniform(-0.5F, 0.5F);
      tensor.data.push_back(spec.dtype == DType::f32 ? value : static_cast<double>(random.below(4)));
    }
    tensors.push_back(std::move(tensor));
  };
  if (states) {
    for (const StateVar& state : graph.states) add(state.spec, state.role, state.name.ends_with("running_mean"));
  } else {
    for (const NamedValue& input : graph.inputs) add(graph.spec(input.value), StateRole::parameter);
  }
  return tensors;
}

void run_training_steps(Backends& backends, const nn::Model& model) {
  SessionOptions options;
  options.optimizer = {.kind = nn::Optimizer::Kind::adamw, .weight_decay = 0.01};
  options.schedule = {.kind = nn::Schedule::Kind::cosine, .rate = 0.01, .total_steps = 100};
  options.clip = 0.5;
  for (const StepKind kind : {StepKind::train, StepKind::accumulate, StepKind::apply, StepKind::evaluate}) {
    const Graph graph = build_step(model, options, kind, 5).graph;
    const std::vector<RefTensor> inputs = training_values(graph, false);
    const std::vector<RefTensor> states = training_values(graph, true);
    const std::vector<RefTensor> expected = reference(graph, inputs, states);
    expect_near(expected, backends.run(graph, inputs, states, "all passes"), 5e-5, "all passes");
    for (const char* pass :
         {"fold-constants", "cse", "dce", "fuse-pointwise", "fuse-epilogue", "fuse-prologue", kInPlace, kEarlyUpdate}) {
      // Without fusion there are hundreds of programs to build: on such devices only what costs little.
      const bool cheap = pass == std::string("dce") || pass == std::string(kInPlace);
      if (backends.builds_programs() && !(cheap && kind == StepKind::train)) continue;
      expect_near(expected, backends.run(graph, inputs, states, pass, {.off = {pass}}), 5e-5,
                  std::string("without ") + pass);
    }
  }
}

TEST_P(EveryBackend, trains_a_residual_net_as_the_reference_does_with_any_pass_switched_off) {
  for_devices([](Backends& backends) { run_training_steps(backends, residual_net()); });
}

TEST_P(EveryBackend, trains_a_convolutional_net_as_the_reference_does_with_any_pass_switched_off) {
  for_devices([](Backends& backends) { run_training_steps(backends, small_conv_net()); });
}

TEST(CpuBackend, says_which_devices_there_are) {
  EXPECT_EQ(list_devices().at(0).id, "cpu");
  try {
    static_cast<void>(make_backend("toaster"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cpu"), std::string::npos);
  }
}

TEST(CpuBackend, refuses_too_many_threads_without_starting_them) {
  EXPECT_THROW(static_cast<void>(make_backend("cpu", {.threads = -1})), Error);
  // More than any system starts: trying would end with its error, not with ours.
  EXPECT_THROW(static_cast<void>(make_backend("cpu", {.threads = 2'000'000'000})), Error);
}

}  // namespace
}  // namespace stoker::test
