// The OpenCL backend's own promises: the same bits however memory is cut and steps are submitted, results in order.
#include <gtest/gtest.h>

#include "backends/backend.h"
#include "base/error.h"
#include "base/random.h"
#include "devices.h"
#include "graph_runner.h"
#include "run/step_graph.h"
#include "test_models.h"

namespace stoker::test {
namespace {

class OpenClBackend : public ::testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OpenClBackend);
INSTANTIATE_TEST_SUITE_P(Devices, OpenClBackend, ::testing::ValuesIn(testing::opencl_ids()),
                         [](const auto& device) { return testing::as_test_name(device.param); });

RefTensor random_tensor(const Spec& spec, Random& random) {
  RefTensor tensor{spec.shape, std::vector<double>(static_cast<std::size_t>(spec.shape.elements()))};
  for (double& value : tensor.data)
    value = spec.dtype == DType::f32 ? random.uniform() - 0.5 : static_cast<double>(random.below(4));
  return tensor;
}

// A training step of a small convolutional net on random data: outputs, then states.
std::vector<RefTensor> train_once(const std::string& device, const BackendOptions& options) {
  const Graph graph = build_step(small_conv_net(), {}, StepKind::train, 8).graph;
  Random random(5);
  std::vector<RefTensor> inputs;
  std::vector<RefTensor> states;
  for (const NamedValue& input : graph.inputs) inputs.push_back(random_tensor(graph.spec(input.value), random));
  for (const StateVar& state : graph.states) {
    states.push_back(random_tensor(state.spec, random));
    if (state.role == StateRole::counter) std::ranges::fill(states.back().data, 0.0);
  }
  const auto backend = make_backend(device, options);
  std::vector<RefTensor> result = run_on(*backend, graph, inputs, states);
  result.insert(result.end(), states.begin(), states.end());
  return result;
}

void expect_same_bits(const std::vector<RefTensor>& a, const std::vector<RefTensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i].data, b[i].data) << "tensor " << i;
}

TEST_P(OpenClBackend, an_arena_of_several_buffers_gives_the_same_bits) {
  const std::vector<RefTensor> whole = train_once(GetParam(), {.self_test = false});
  const std::vector<RefTensor> cut = train_once(GetParam(), {.self_test = false, .largest_buffer = 64 * 1024});
  expect_same_bits(whole, cut);
}

TEST_P(OpenClBackend, replay_gives_the_same_bits_as_launch_by_launch) {
  expect_same_bits(train_once(GetParam(), {.self_test = false, .replay = true}),
                   train_once(GetParam(), {.self_test = false, .replay = false}));
}

TEST_P(OpenClBackend, a_tensor_larger_than_the_largest_buffer_is_an_error_that_says_what_to_do) {
  try {
    static_cast<void>(train_once(GetParam(), {.self_test = false, .largest_buffer = 1024}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::no_memory);
    EXPECT_NE(std::string(error.what()).find("smaller batch"), std::string::npos);
  }
}

}  // namespace
}  // namespace stoker::test
