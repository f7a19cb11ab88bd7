// Layers, the zoo and optimizers: names, counts, initial values, and update formulas against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "nn/model.h"
#include "nn/optimizer.h"
#include "ops/evaluate.h"

namespace stoker::nn {
namespace {

struct Built {
  Graph graph;
  std::vector<Init> inits;
  std::vector<StateWrite> statistic_writes;
};

Built build(const Model& model, std::int64_t batch, bool training) {
  GraphBuilder builder;
  Net net(builder, training);
  Shape shape{batch};
  for (const std::int64_t size : model.item.dims()) shape.push_back(size);
  const Value y = model.forward(net, ops::input(builder, "x", {DType::f32, shape}));
  EXPECT_EQ(builder.shape(y), (Shape{batch, model.outputs}));
  Built built{.inits = net.inits(), .statistic_writes = net.statistic_writes()};
  built.graph = std::move(builder).finish();
  return built;
}

const StateVar& state(const Graph& graph, const std::string& name) {
  const int index = graph.find_state(name);
  EXPECT_GE(index, 0) << name;
  return graph.states[static_cast<std::size_t>(std::max(index, 0))];
}

TEST(Zoo, HasTheParametersOfPyTorchsModels) {
  EXPECT_EQ(parameter_count(find_model("mlp")), 235920);
  EXPECT_EQ(parameter_count(find_model("lenet5")), 431080);
  EXPECT_EQ(parameter_count(find_model("mobilenetv2-32")), 2236682);
  EXPECT_EQ(parameter_count(find_model("resnet18-32")), 11173962);
}

TEST(Zoo, NamesParametersAsTorchvisionDoes) {
  const Graph resnet = build(find_model("resnet18-32"), 2, true).graph;
  for (const char* name : {"conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var",
                           "bn1.num_batches_tracked", "layer1.0.conv1.weight", "layer2.0.downsample.0.weight",
                           "layer2.0.downsample.1.running_var", "layer4.1.bn2.bias", "fc.weight", "fc.bias"}) {
    EXPECT_GE(resnet.find_state(name), 0) << name;
  }
  EXPECT_LT(resnet.find_state("layer1.0.downsample.0.weight"), 0);
  EXPECT_LT(resnet.find_state("conv1.bias"), 0);
  // state_dict() of torchvision's resnet18 has 122 entries.
  EXPECT_EQ(resnet.states.size(), 122U);

  const Graph mobile = build(find_model("mobilenetv2-32"), 2, true).graph;
  for (const char* name :
       {"features.0.0.weight", "features.0.1.running_mean", "features.1.conv.0.0.weight", "features.1.conv.1.weight",
        "features.1.conv.2.bias", "features.2.conv.1.0.weight", "features.2.conv.3.num_batches_tracked",
        "features.17.conv.2.weight", "features.18.0.weight", "classifier.1.weight", "classifier.1.bias"}) {
    EXPECT_GE(mobile.find_state(name), 0) << name;
  }
  // state_dict() of torchvision's mobilenet_v2 has 314 entries.
  EXPECT_EQ(mobile.states.size(), 314U);

  const Graph mlp = build(find_model("mlp"), 1, true).graph;
  EXPECT_EQ(state(mlp, "0.weight").spec.shape, (Shape{256, 784}));
  EXPECT_EQ(state(mlp, "4.bias").spec.shape, (Shape{16}));
}

TEST(Zoo, DeclaresTheSameStatesForTrainingAndInference) {
  for (const Model& model : zoo()) {
    const Built training = build(model, 2, true);
    const Built inference = build(model, 3, false);
    ASSERT_EQ(training.graph.states.size(), inference.graph.states.size()) << model.name;
    EXPECT_EQ(training.inits.size(), training.graph.states.size());
    EXPECT_TRUE(inference.statistic_writes.empty());
    for (std::size_t i = 0; i < training.graph.states.size(); ++i) {
      EXPECT_EQ(training.graph.states[i].name, inference.graph.states[i].name);
      EXPECT_EQ(training.graph.states[i].spec, inference.graph.states[i].spec);
    }
  }
}

TEST(Zoo, AnswersAnUnknownNameWithTheNamesThereAre) {
  try {
    static_cast<void>(find_model("alexnet"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::bad_argument);
    EXPECT_NE(std::string(error.what()).find("lenet5"), std::string::npos);
  }
  EXPECT_THROW(static_cast<void>(layers_model(std::vector<std::int64_t>{784})), Error);
  EXPECT_THROW(static_cast<void>(layers_model(std::vector<std::int64_t>{784, 0, 10})), Error);
}

TEST(Zoo, TakesFullyConnectedNetsByTheirSizes) {
  const Model model = find_model("mlp:784-256-128-16");
  EXPECT_EQ(model.name, "mlp:784-256-128-16");
  EXPECT_EQ(parameter_count(model), parameter_count(find_model("mlp")));
  EXPECT_EQ(parameter_count(find_model("mlp:16-16")), 16 * 16 + 16);
  for (const char* bad : {"mlp:", "mlp:16", "mlp:16-", "mlp:-16", "mlp:16--16", "mlp:16,16", "mlp:16-x", "mlp:16-0"})
    EXPECT_THROW(static_cast<void>(find_model(bad)), Error) << bad;
}

TEST(Net, BatchNormWritesItsStatisticsOnlyInTraining) {
  const Model model{
      .name = "norm", .item = {4}, .outputs = 4, .forward = [](Net& net, Value x) { return net.batch_norm(x, "bn"); }};
  Built built = build(model, 8, true);
  ASSERT_EQ(built.statistic_writes.size(), 3U);
  built.graph.writes = built.statistic_writes;
  std::vector<RefTensor> states;
  for (std::size_t i = 0; i < built.graph.states.size(); ++i) {
    const std::vector<float> values = initial_values(built.inits[i], built.graph.states[i], 1);
    states.push_back({built.graph.states[i].spec.shape, {values.begin(), values.end()}});
  }
  RefTensor x{{8, 4}, std::vector<double>(32)};
  for (std::size_t i = 0; i < 32; ++i) x.data[i] = static_cast<double>(i % 4) + (i / 4 % 2 == 0 ? 1.0 : -1.0);
  static_cast<void>(evaluate_reference(built.graph, std::span(&x, 1), states));
  const auto at = [&](const char* name) { return states[static_cast<std::size_t>(built.graph.find_state(name))]; };
  for (std::size_t c = 0; c < 4; ++c) {
    EXPECT_NEAR(at("bn.running_mean").data[c], 0.1 * static_cast<double>(c), 1e-6);
    EXPECT_NEAR(at("bn.running_var").data[c], 0.9 + 0.1 * 8.0 / 7.0, 1e-6);  // unbiased
  }
  EXPECT_EQ(at("bn.num_batches_tracked").data[0], 1);
}

TEST(InitialValues, DependOnSeedAndNameAlone) {
  const Init init{Init::Kind::uniform, -1, 1};
  const StateVar weight{"a.weight", {DType::f32, {37}}};
  StateVar longer = weight;
  longer.spec.shape = {41};
  const std::vector<float> values = initial_values(init, weight, 3);
  const std::vector<float> more = initial_values(init, longer, 3);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), more.begin()));
  EXPECT_NE(values, initial_values(init, weight, 4));
  StateVar other = weight;
  other.name = "b.weight";
  EXPECT_NE(values, initial_values(init, other, 3));
}

TEST(InitialValues, FollowPyTorchsDistributions) {
  const Built lenet = build(find_model("lenet5"), 1, true);
  const auto values_of = [](const Built& built, const std::string& name) {
    const auto index = static_cast<std::size_t>(built.graph.find_state(name));
    return initial_values(built.inits[index], built.graph.states[index], 1);
  };
  const std::vector<float> uniform = values_of(lenet, "conv2.weight");  // fan in 20 * 5 * 5
  const float bound = 1 / std::sqrt(500.0F);
  EXPECT_NEAR(*std::ranges::max_element(uniform), bound, bound * 0.01);
  EXPECT_NEAR(*std::ranges::min_element(uniform), -bound, bound * 0.01);
  EXPECT_NEAR(std::ranges::max(values_of(lenet, "fc1.bias")), 1 / std::sqrt(800.0F), 1e-3);

  const std::vector<float> normal = values_of(build(find_model("resnet18-32"), 1, true), "layer3.0.conv2.weight");
  const double count = static_cast<double>(normal.size());
  const double mean = std::accumulate(normal.begin(), normal.end(), 0.0) / count;
  double square = 0;
  for (const float value : normal) square += (value - mean) * (value - mean);
  EXPECT_NEAR(mean, 0, 2e-4);
  EXPECT_NEAR(std::sqrt(square / count), std::sqrt(2.0 / (256 * 9)), 2e-4);
}

// Runs `steps` updates through the graph in the reference, with gradient = parameter * 0.3 + 0.1 * step.
std::vector<double> run_updates(const Optimizer& optimizer, const Schedule& schedule, int steps) {
  GraphBuilder b;
  const Value gradient = ops::input(b, "gradient", {DType::f32, {3}});
  const int parameter = b.declare_state({"p", {DType::f32, {3}}});
  const int step = b.declare_state({"step", {DType::i32, {}}, StateRole::counter});
  std::vector<int> moment_states;
  std::vector<Value> moments;
  for (const std::string& name : moment_names(optimizer)) {
    moment_states.push_back(b.declare_state({name, {DType::f32, {3}}, StateRole::moment}));
    moments.push_back(ops::state(b, moment_states.back()));
  }
  const Value at = ops::state(b, step);
  const Update next =
      update(b, optimizer, ops::state(b, parameter), gradient, moments, learning_rate(b, schedule, at), at);
  b.write_state(parameter, next.parameter);
  for (std::size_t i = 0; i < moments.size(); ++i) b.write_state(moment_states[i], next.moments[i]);
  const Graph graph = std::move(b).finish();
  std::vector<RefTensor> states{{{3}, {1.0, -2.0, 0.5}}, {{}, {0}}};
  while (states.size() < graph.states.size()) states.push_back({{3}, {0, 0, 0}});
  for (int i = 0; i < steps; ++i) {
    states[1].data[0] = i;
    RefTensor g{{3}, {}};
    for (const double p : states[0].data) g.data.push_back(p * 0.3 + 0.1 * i);
    static_cast<void>(evaluate_reference(graph, std::span(&g, 1), states));
  }
  return states[0].data;
}

// PyTorch's documented algorithms, written out.
std::vector<double> plain_updates(const Optimizer& o, double rate, int steps) {
  std::vector<double> p{1.0, -2.0, 0.5};
  std::vector<double> first(3, 0.0);
  std::vector<double> second(3, 0.0);
  for (int i = 0; i < steps; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      double g = p[j] * 0.3 + 0.1 * i;
      const double t = i + 1;
      if (o.kind == Optimizer::Kind::adamw) {
        p[j] -= rate * o.weight_decay * p[j];
      } else {
        g += o.weight_decay * p[j];
      }
      if (o.kind == Optimizer::Kind::sgd) {
        first[j] = i == 0 ? g : o.momentum * first[j] + g;
        p[j] -= rate * (o.nesterov ? g + o.momentum * first[j] : first[j]);
      } else if (o.kind == Optimizer::Kind::rmsprop) {
        second[j] = o.alpha * second[j] + (1 - o.alpha) * g * g;
        first[j] = o.momentum * first[j] + g / (std::sqrt(second[j]) + o.eps);
        p[j] -= rate * first[j];
      } else {
        first[j] = o.beta1 * first[j] + (1 - o.beta1) * g;
        second[j] = o.beta2 * second[j] + (1 - o.beta2) * g * g;
        const double root = std::sqrt(second[j]) / std::sqrt(1 - std::pow(o.beta2, t));
        p[j] -= rate / (1 - std::pow(o.beta1, t)) * first[j] / (root + o.eps);
      }
    }
  }
  return p;
}

TEST(Optimizer, FollowsPyTorchsFormulas) {
  using Kind = Optimizer::Kind;
  const std::vector<Optimizer> optimizers{{.kind = Kind::sgd},
                                          {.kind = Kind::sgd, .momentum = 0.9, .weight_decay = 0.01},
                                          {.kind = Kind::sgd, .momentum = 0.8, .nesterov = true},
                                          {.kind = Kind::adam, .weight_decay = 0.02},
                                          {.kind = Kind::adamw, .weight_decay = 0.1},
                                          {.kind = Kind::rmsprop},
                                          {.kind = Kind::rmsprop, .momentum = 0.5, .weight_decay = 0.01}};
  for (const Optimizer& optimizer : optimizers) {
    const std::vector<double> ours = run_updates(optimizer, {.rate = 0.05}, 7);
    const std::vector<double> plain = plain_updates(optimizer, 0.05, 7);
    for (std::size_t i = 0; i < 3; ++i) {
      // Numbers such as 0.999 are kept in fp32.
      EXPECT_NEAR(ours[i], plain[i], 2e-6) << to_string(optimizer.kind) << " " << optimizer.momentum;
    }
  }
}

TEST(Schedule, IsTheSameInTheGraphAndOnTheHost) {
  const std::vector<Schedule> schedules{
      {.rate = 0.1},
      {.rate = 0.1, .warmup_steps = 4},
      {.kind = Schedule::Kind::step, .rate = 0.2, .step_size = 5, .gamma = 0.5},
      {.kind = Schedule::Kind::cosine, .rate = 0.3, .warmup_steps = 3, .total_steps = 20, .final_rate = 0.01}};
  for (const Schedule& schedule : schedules) {
    GraphBuilder b;
    const int step = b.declare_state({"step", {DType::i32, {}}, StateRole::counter});
    b.set_output("rate", learning_rate(b, schedule, ops::state(b, step)));
    const Graph graph = std::move(b).finish();
    for (int i = 0; i < 25; ++i) {
      std::vector<RefTensor> states{{{}, {static_cast<double>(i)}}};
      EXPECT_NEAR(evaluate_reference(graph, {}, states)[0].data[0], learning_rate(schedule, i), 1e-7) << i;
    }
  }
  EXPECT_DOUBLE_EQ(learning_rate(schedules[1], 0), 0.025);
  EXPECT_DOUBLE_EQ(learning_rate(schedules[2], 10), 0.05);
  EXPECT_NEAR(learning_rate(schedules[3], 20), 0.01, 1e-12);
}

TEST(Schedule, RefusesWhatCannotBe) {
  EXPECT_THROW(static_cast<void>(learning_rate({.kind = Schedule::Kind::cosine, .total_steps = 0}, 1)), Error);
  EXPECT_THROW(static_cast<void>(learning_rate({.kind = Schedule::Kind::step}, 1)), Error);
  EXPECT_THROW(static_cast<void>(learning_rate({.rate = -1}, 1)), Error);
  EXPECT_THROW(static_cast<void>(parse_optimizer("lion")), Error);
  EXPECT_THROW(static_cast<void>(parse_schedule("linear")), Error);
}

}  // namespace
}  // namespace stoker::nn
