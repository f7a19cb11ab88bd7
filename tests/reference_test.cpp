// The reference evaluator and the details in which references and gradients follow PyTorch, worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "autodiff/backward.h"
#include "op_cases.h"
#include "ops/common.h"
#include "ops/cost.h"
#include "ops/evaluate.h"
#include "ops/ops.h"
#include "ops/registry.h"
#include "stoker/error.hpp"

namespace stoker::test {
namespace {

using B = GraphBuilder;
using Doubles = std::vector<double>;

void expect_near(const Doubles& got, const Doubles& expected, double tolerance = 1e-6) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << "element " << i;
    } else if (std::isinf(expected[i])) {
      EXPECT_EQ(got[i], expected[i]) << "element " << i;
    } else {
      EXPECT_NEAR(got[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << "element " << i;
    }
  }
}

struct Input {
  Spec spec;
  Doubles values;
};

struct Outcome {
  std::vector<Doubles> outputs;    // of the node that was built
  std::vector<Doubles> gradients;  // by input, of the sum of its first output; empty where nothing flows
};

// Builds a graph on the inputs and evaluates all outputs of the node that `build` returns, and its gradients.
template <typename Build>
Outcome run(const std::vector<Input>& inputs, const Build& build) {
  B b;
  std::vector<Value> x;
  std::vector<RefTensor> tensors;
  for (const Input& input : inputs) {
    x.push_back(ops::input(b, "x" + std::to_string(x.size()), input.spec));
    tensors.push_back({input.spec.shape, input.values});
  }
  const Value y[] = {build(b, x)};
  const auto outputs = static_cast<int>(b.graph().node(y[0]).outputs.size());
  for (int i = 0; i < outputs; ++i) b.set_output("y" + std::to_string(i), {y[0].node, i});
  const Shape shape = b.shape(y[0]);
  const Value ones[] = {ops::broadcast_to(b, ops::constant(b, 1.0F), shape)};
  const bool differentiable = b.spec(y[0]).dtype == DType::f32;
  const std::vector<Value> gradients = differentiable ? backward(b, y, ones, x) : std::vector<Value>(x.size());
  for (const Value gradient : gradients) {
    if (!gradient.is_none()) b.set_output("g" + std::to_string(b.graph().outputs.size()), gradient);
  }
  std::vector<RefTensor> results = evaluate_reference(std::move(b).finish(), tensors, {});
  Outcome result;
  std::size_t at = 0;
  for (; at < static_cast<std::size_t>(outputs); ++at) result.outputs.push_back(results[at].data);
  for (const Value gradient : gradients)
    result.gradients.push_back(gradient.is_none() ? Doubles{} : results[at++].data);
  return result;
}

// A pointwise op of one argument.
template <typename Op>
Outcome unary(const Doubles& x, const Op& op) {
  return run({{f32({static_cast<std::int64_t>(x.size())}), x}},
             [&](B& b, const std::vector<Value>& in) { return op(b, in[0]); });
}

TEST(Pointwise, GradientsAtKinksArePyTorchs) {
  expect_near(unary({-1, 0, 2}, ops::relu).gradients[0], {0, 0, 1});
  expect_near(unary({-1, 0, 3, 6, 7}, ops::relu6).gradients[0], {0, 0, 1, 0, 0});
  expect_near(unary({-2, 0, 2}, ops::abs).gradients[0], {-1, 0, 1});
  expect_near(unary({-4, -3, 0, 3, 4}, ops::hard_swish).gradients[0], {0, 0, 0.5, 1, 1});
  const auto leaky = [](B& b, Value x) { return ops::leaky_relu(b, x, 0.25); };
  expect_near(unary({-1, 0, 1}, leaky).gradients[0], {0.25, 0.25, 1});
}

TEST(Pointwise, TiesOfMaximumAndMinimumShareTheGradient) {
  const std::vector<Input> inputs = {{f32({3}), {1, 2, 3}}, {f32({3}), {3, 2, 1}}};
  const Outcome most = run(inputs, [](B& b, const auto& x) { return ops::maximum(b, x[0], x[1]); });
  expect_near(most.outputs[0], {3, 2, 3});
  expect_near(most.gradients[0], {0, 0.5, 1});
  expect_near(most.gradients[1], {1, 0.5, 0});
  const Outcome least = run(inputs, [](B& b, const auto& x) { return ops::minimum(b, x[0], x[1]); });
  expect_near(least.gradients[0], {1, 0.5, 0});
}

TEST(Pointwise, NaNIsNotHidden) {
  const double nan = std::nan("");
  for (const auto& op : {ops::relu, ops::relu6, ops::hard_swish, ops::abs}) {
    EXPECT_TRUE(std::isnan(unary({nan}, op).outputs[0][0]));
  }
  const Outcome most = run({{f32({2}), {nan, 1}}, {f32({2}), {1, nan}}},
                           [](B& b, const auto& x) { return ops::maximum(b, x[0], x[1]); });
  expect_near(most.outputs[0], {nan, nan});
}

TEST(Pointwise, PowerHasFiniteGradientsAtZero) {
  const Outcome result =
      run({{f32({3}), {0, 0, 2}}, {f32({3}), {0, 2, 0}}}, [](B& b, const auto& x) { return ops::pow(b, x[0], x[1]); });
  expect_near(result.outputs[0], {1, 0, 1});
  expect_near(result.gradients[0], {0, 0, 0});
  expect_near(result.gradients[1], {0, 0, std::log(2.0)});
}

TEST(Pointwise, CastTruncatesTowardsZero) {
  const auto cast = [](B& b, Value x) { return ops::cast(b, x, DType::i32); };
  expect_near(unary({-1.7, -0.2, 0.9, 2.5}, cast).outputs[0], {-1, 0, 0, 2});
}

TEST(Dropout, KeepsTheMeanAndDependsOnSeedStepAndId) {
  constexpr std::int64_t kCount = 4000;
  const auto mask = [&](double seed, double step, std::int64_t id) {
    return run({{i32({}), {seed}}, {i32({}), {step}}},
               [&](B& b, const auto& x) {
                 return ops::dropout(b, ops::broadcast_to(b, ops::constant(b, 1.0F), {kCount}), 0.25, x[0], x[1], id);
               })
        .outputs[0];
  };
  const Doubles first = mask(1, 2, 3);
  double sum = 0;
  for (const double x : first) {
    EXPECT_TRUE(x == 0.0 || std::abs(x - 1 / 0.75) < 1e-6) << x;
    sum += x;
  }
  EXPECT_NEAR(sum / kCount, 1.0, 0.05);
  EXPECT_EQ(first, mask(1, 2, 3));
  EXPECT_NE(first, mask(2, 2, 3));
  EXPECT_NE(first, mask(1, 3, 3));
  EXPECT_NE(first, mask(1, 2, 4));
}

TEST(Reductions, MaximaShareTheGradientAndArgmaxTakesTheFirst) {
  const std::vector<Input> inputs = {{f32({2, 3}), {1, 5, 5, 7, 2, 7}}};
  const Outcome most = run(inputs, [](B& b, const auto& x) { return ops::reduce_max(b, x[0], {1}); });
  expect_near(most.outputs[0], {5, 7});
  expect_near(most.gradients[0], {0, 0.5, 0.5, 0.5, 0, 0.5});
  expect_near(run(inputs, [](B& b, const auto& x) { return ops::argmax(b, x[0], -1); }).outputs[0], {1, 0});
  expect_near(run(inputs, [](B& b, const auto& x) { return ops::argmax(b, x[0], 0); }).outputs[0], {1, 0, 1});
  expect_near(run(inputs, [](B& b, const auto& x) { return ops::reduce_mean(b, x[0], {}); }).outputs[0], {4.5});
}

TEST(Conv2d, IsACrossCorrelationWithGroupsSideBySide) {
  const auto conv = [](std::int64_t groups, const ops::Window& window) {
    return [=](B& b, const auto& x) { return ops::conv2d(b, x[0], x[1], window, groups); };
  };
  const Outcome plain = run({{f32({1, 1, 3, 1}), {1, 2, 3}}, {f32({1, 2, 1, 1}), {10, 1}}}, conv(1, {}));
  expect_near(plain.outputs[0], {12, 23});
  expect_near(plain.gradients[0], {10, 11, 1});
  expect_near(plain.gradients[1], {3, 5});
  const Outcome padded =
      run({{f32({1, 1, 3, 1}), {1, 2, 3}}, {f32({1, 2, 1, 1}), {10, 1}}}, conv(1, {.pad = {0, 0, 0, 1}}));
  expect_near(padded.outputs[0], {12, 23, 30});
  // Two groups of two inputs and one output: [KH, KW, Cin / groups, Cout].
  const Outcome grouped =
      run({{f32({1, 1, 1, 4}), {1, 2, 3, 4}}, {f32({1, 1, 2, 2}), {1, 10, 100, 1000}}}, conv(2, {}));
  expect_near(grouped.outputs[0], {201, 4030});
}

TEST(Conv2d, OneFilterAChannelIsDepthwise) {
  B b;
  const Value x = ops::input(b, "x", f32({1, 4, 4, 6}));
  const Value w = ops::input(b, "w", f32({3, 3, 1, 6}));
  EXPECT_EQ(b.graph().node(ops::conv2d(b, x, w, {}, 6)).op->name, "depthwise");
  const Value doubled = ops::input(b, "w2", f32({3, 3, 1, 12}));
  EXPECT_EQ(b.graph().node(ops::conv2d(b, x, doubled, {}, 6)).op->name, "conv2d");
}

TEST(Conv2d, SamePaddingPutsTheOddOneAtTheEnd) {
  using Pad = std::array<std::int64_t, 4>;
  EXPECT_EQ(ops::same_padding({1, 5, 6, 1}, {3, 3}, {.stride = {2, 2}}), (Pad{1, 0, 1, 1}));
  EXPECT_EQ(ops::same_padding({1, 5, 5, 1}, {2, 5}, {}), (Pad{0, 2, 1, 2}));
  EXPECT_EQ(ops::same_padding({1, 9, 9, 1}, {3, 1}, {.stride = {1, 3}, .dilation = {2, 1}}), (Pad{2, 0, 2, 0}));
}

TEST(Pooling, TheFirstOfTiesWinsAndPaddingNever) {
  const auto pool = [](B& b, const auto& x) {
    return ops::max_pool(b, x[0], {2, 2}, {.stride = {2, 2}, .pad = {1, 1, 1, 1}}).y;
  };
  const Outcome result = run({{f32({1, 2, 2, 1}), {-1, -2, -3, -4}}}, pool);
  expect_near(result.outputs[0], {-1, -2, -3, -4});
  expect_near(result.outputs[1], {3, 2, 1, 0});
  const Outcome ties = run({{f32({1, 2, 2, 1}), {5, 7, 7, 7}}}, [](B& b, const auto& x) {
    return ops::max_pool(b, x[0], {2, 2}, {}).y;
  });
  expect_near(ties.outputs[1], {1});
  expect_near(ties.gradients[0], {0, 1, 0, 0});
}

TEST(Pooling, AveragesCountPaddingOnlyWhenAsked) {
  const auto pool = [](bool include) {
    return [=](B& b, const auto& x) {
      return ops::avg_pool(b, x[0], {1, 2}, {.stride = {1, 2}, .pad = {0, 1, 0, 1}}, include);
    };
  };
  const std::vector<Input> inputs = {{f32({1, 1, 2, 1}), {4, 8}}};
  expect_near(run(inputs, pool(true)).outputs[0], {2, 4});
  expect_near(run(inputs, pool(false)).outputs[0], {4, 8});
  expect_near(run(inputs, pool(true)).gradients[0], {0.5, 0.5});
  expect_near(run(inputs, pool(false)).gradients[0], {1, 1});
}

TEST(BatchNorm, NormalisesByTheBiasedVarianceAndReportsIt) {
  const Outcome result =
      run({{f32({4, 1}), {1, 2, 3, 6}}, {f32({1}), {2}}, {f32({1}), {10}}, {f32({1}), {5}}},
          [](B& b, const auto& x) { return ops::batch_norm_train(b, x[0], x[1], x[2], x[3], 0.5).y; });
  const double rstd = 1 / std::sqrt(3.5 + 0.5);
  expect_near(result.outputs[0], {10 - 4 * rstd, 10 - 2 * rstd, 10, 10 + 6 * rstd});
  expect_near(result.outputs[1], {3});
  expect_near(result.outputs[2], {3.5});
  EXPECT_TRUE(result.gradients[3].empty());  // the shift is a matter of rounding only
}

TEST(BatchNorm, RunningStatisticsArePyTorchs) {
  const std::vector<Input> inputs = {{f32({1}), {1}}, {f32({1}), {2}}};
  const auto mean = [](B& b, const auto& x) { return ops::running_mean(b, x[0], x[1], 0.1); };
  const auto variance = [](B& b, const auto& x) { return ops::running_variance(b, x[0], x[1], 4, 0.1); };
  expect_near(run(inputs, mean).outputs[0], {1.1});
  expect_near(run(inputs, variance).outputs[0], {0.9 + 0.1 * 2 * 4 / 3});
}

TEST(BatchNorm, RefusesAGradientThroughItsStatistics) {
  B b;
  const Value x = ops::input(b, "x", f32({4, 3}));
  const Value channel = ops::input(b, "c", f32({3}));
  const Value mean[] = {ops::batch_norm_train(b, x, channel, channel, channel).mean};
  const Value wrt[] = {x};
  EXPECT_THROW((void)backward(b, mean, mean, wrt), Error);
}

TEST(CrossEntropy, SmoothsLabelsAsPyTorch) {
  const auto loss = [](double smoothing) {
    return [=](B& b, const auto& x) { return ops::softmax_cross_entropy(b, x[0], x[1], smoothing); };
  };
  const std::vector<Input> inputs = {{f32({1, 3}), {1, 2, 3}}, {i32({1}), {2}}};
  expect_near(run(inputs, loss(0)).outputs[0], {0.4076059644});
  expect_near(run(inputs, loss(0.1)).outputs[0], {0.5076059644});
  expect_near(run(inputs, loss(0)).gradients[0], {0.0900305732, 0.2447284711, 0.6652409558 - 1});
  const double share = 0.1 / 3;
  expect_near(run(inputs, loss(0.1)).gradients[0],
              {0.0900305732 - share, 0.2447284711 - share, 0.6652409558 - 0.9 - share});
}

TEST(CrossEntropy, StaysFiniteForLargeLogitsAndNotForALabelThatIsNoClass) {
  const auto loss = [](B& b, const auto& x) { return ops::softmax_cross_entropy(b, x[0], x[1]); };
  expect_near(run({{f32({2, 2}), {1000, 0, -1000, 0}}, {i32({2}), {1, 1}}}, loss).outputs[0], {1000, 0});
  EXPECT_TRUE(std::isnan(run({{f32({1, 2}), {1, 2}}, {i32({1}), {2}}}, loss).outputs[0][0]));
  EXPECT_TRUE(std::isnan(run({{f32({1, 2}), {1, 2}}, {i32({1}), {-1}}}, loss).outputs[0][0]));
}

TEST(Losses, BinaryCrossEntropyClampsItsLogarithmsAndItsSlope) {
  const auto bce = [](B& b, const auto& x) { return ops::binary_cross_entropy(b, x[0], x[1]); };
  const Outcome result = run({{f32({4}), {0, 1, 0.25, 0}}, {f32({4}), {1, 0, 1, 0}}}, bce);
  expect_near(result.outputs[0], {(100 + 100 - std::log(0.25) + 0) / 4});
  expect_near(result.gradients[0], {-1e12 / 4, 1e12 / 4, -4.0 / 4, 0});
}

TEST(Losses, BinaryCrossEntropyWithLogitsNeverOverflows) {
  const auto bce = [](B& b, const auto& x) { return ops::binary_cross_entropy_with_logits(b, x[0], x[1]); };
  const Outcome result = run({{f32({4}), {0, 800, -800, 800}}, {f32({4}), {0.25, 1, 1, 0}}}, bce);
  expect_near(result.outputs[0], {(std::log(2.0) + 0 + 800 + 800) / 4});
  expect_near(result.gradients[0], {0.25 / 4, 0, -1.0 / 4, 1.0 / 4});
}

TEST(Losses, MeanSquaredErrorIsTheMeanOverAllElements) {
  const Outcome result = run({{f32({2, 2}), {1, 2, 3, 4}}, {f32({2, 2}), {1, 1, 1, 1}}},
                             [](B& b, const auto& x) { return ops::mse(b, x[0], x[1]); });
  expect_near(result.outputs[0], {14.0 / 4});
  expect_near(result.gradients[0], {0, 0.5, 1, 1.5});
}

TEST(Gather, MissingRowsAreNaNAndTakeNoGradient) {
  const Outcome result = run({{f32({2, 2}), {1, 2, 3, 4}}, {i32({3}), {1, 2, 1}}},
                             [](B& b, const auto& x) { return ops::embedding(b, x[0], x[1]); });
  const double nan = std::nan("");
  expect_near(result.outputs[0], {3, 4, nan, nan, 3, 4});
  expect_near(result.gradients[0], {0, 0, 2, 2});
}

TEST(Movement, FlattenPutsChannelsOutermost) {
  const Outcome result =
      run({{f32({1, 1, 2, 3}), {1, 2, 3, 4, 5, 6}}}, [](B& b, const auto& x) { return ops::flatten(b, x[0]); });
  expect_near(result.outputs[0], {1, 4, 2, 5, 3, 6});
}

}  // namespace
}  // namespace stoker::test
