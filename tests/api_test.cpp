// The public API: networks, losses and data of the caller's own, several networks at once, mistakes.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "stoker/stoker.hpp"

namespace stoker {
namespace {

// y = f(x) for one item; returns the network's outputs. A network needs a parameter: it has one that does nothing.
std::vector<float> compute(const std::vector<float>& item, std::int64_t outputs, const BuildFunction& build) {
  const auto with_parameter = [&build](Builder& net, Tensor x) {
    return build(net, x * net.parameter("one", {1}, {Init::Kind::constant, 1}));
  };
  Network net(Model::custom("test", {static_cast<std::int64_t>(item.size())}, outputs, with_parameter));
  return net.predict(item);
}

TEST(Api, PublicOpsComputeWhatTheirNamesSay) {
  const std::vector<float> y = compute({0.5F, -2.0F}, 14, [](Builder&, Tensor x) {
    return concat({x + x, x - 1.0F, x * x, x / 2.0F, -x, maximum(x, -x), where(less(x, x * 0.0F), x, exp(x))}, 1);
  });
  const std::vector<float> expected{1, -4, -0.5F, -3, 0.25F, 4, 0.25F, -1, -0.5F, 2, 0.5F, 2, std::exp(0.5F), -2};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-6) << i;

  const std::vector<float> z = compute({1, 2, 3, 4}, 4, [](Builder&, Tensor x) {
    return concat({sum(x, {1}, true), mean(x, {-1}, true), max(x, {1}, true), sum(softmax(x), {1}, true)}, 1);
  });
  EXPECT_EQ(z[0], 10);
  EXPECT_EQ(z[1], 2.5F);
  EXPECT_EQ(z[2], 4);
  EXPECT_NEAR(z[3], 1, 1e-6);
}

TEST(Api, ALossOfOnesOwnTrains) {
  const std::vector<float> items{0, 0, 0, 1, 1, 0, 1, 1};
  const std::vector<std::int32_t> labels{0, 1, 1, 0};  // exclusive or
  const auto squared = [](Builder&, Tensor output, Tensor target) {
    const Tensor error = output - one_hot(target, 2);
    return mean(error * error, {1});
  };
  Network net(
      Model::custom("xor", {2}, 2, [](Builder& b, Tensor x) { return b.linear(tanh(b.linear(x, "a", 16)), "b", 2); }),
      {.optimizer = "adam", .lr = 0.05, .loss = squared});
  StepReport report;
  for (int i = 0; i < 300; ++i) report = net.train_step(items, labels);
  EXPECT_LT(report.loss, 0.01);
  EXPECT_EQ(net.evaluate(items, labels).correct, 4);
  EXPECT_EQ(net.steps_done(), 300);
}

TEST(Api, FloatTargetsTrainARegression) {
  const auto squared = [](Builder&, Tensor output, Tensor target) {
    const Tensor error = output - target;
    return sum(error * error, {1});
  };
  Network net(Model::layers({2, 1}), {.lr = 0.1, .loss = squared, .target = {1}});
  const std::vector<float> items{0, 0, 1, 0, 0, 1, 1, 1};
  const std::vector<float> targets{1, 3, 0, 2};  // 1 + 2 x - y
  StepReport report;
  for (int i = 0; i < 300; ++i) report = net.train_step(items, targets);
  EXPECT_LT(report.loss, 1e-6);
  EXPECT_LT(net.evaluate(items, targets).loss, 1e-6);
  EXPECT_NEAR(net.parameter("0.weight")[0], 2, 1e-3);
  EXPECT_NEAR(net.parameter("0.weight")[1], -1, 1e-3);
  EXPECT_THROW(net.train_step(items, std::vector<std::int32_t>{0, 1, 0, 1}), Error);
  EXPECT_THROW(net.train_step(items, std::vector<float>{0, 1, 0}), Error);
}

TEST(Api, NetworksInOneProcessDoNotDisturbEachOther) {
  const std::vector<float> items{0.1F, 0.9F, 0.8F, 0.2F, 0.4F, 0.6F};
  const std::vector<std::int32_t> labels{0, 1, 0};
  const auto train = [&](std::vector<float>& weight) {
    Network net(Model::layers({2, 8, 2}), {.lr = 0.1, .momentum = 0.9, .threads = 2});
    for (int i = 0; i < 50; ++i) net.train_step(items, labels);
    weight = net.parameter("0.weight");
  };
  std::vector<float> alone;
  train(alone);
  std::vector<float> first;
  std::vector<float> second;
  std::thread a([&] { train(first); });
  std::thread b([&] { train(second); });
  a.join();
  b.join();
  EXPECT_EQ(first, alone);
  EXPECT_EQ(second, alone);
}

TEST(Api, FrozenParametersStay) {
  Network net(Model::layers({2, 4, 2}), {.lr = 0.1, .freeze = {"0"}});
  const std::vector<float> frozen = net.parameter("0.weight");
  const std::vector<float> free = net.parameter("2.weight");
  net.train_step(std::vector<float>{1, 2}, std::vector<std::int32_t>{1});
  EXPECT_EQ(net.parameter("0.weight"), frozen);
  EXPECT_NE(net.parameter("2.weight"), free);
}

TEST(Api, PredictWorksOnAnyNumberOfItems) {
  Network net(Model::layers({2, 3}));
  std::vector<float> items;
  for (int i = 0; i < 600; ++i) items.push_back(static_cast<float>(i) / 100);
  const std::vector<float> all = net.predict(items);
  ASSERT_EQ(all.size(), 900U);
  const std::vector<float> one = net.predict(std::span(items).subspan(2 * 299, 2));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(one[i], all[299 * 3 + i], 1e-5);
}

TEST(Api, DropoutActsInTrainingAlone) {
  Network net(Model::custom("drop", {64}, 64, [](Builder& b, Tensor x) {
    return b.dropout(x, 0.5) * b.parameter("s", {1}, {Init::Kind::constant, 1});
  }));
  const std::vector<float> items(64, 1.0F);
  EXPECT_EQ(net.predict(items), items);
}

TEST(Api, MistakesAreErrorsThatSayWhatIsWrong) {
  const auto message = [](const auto& action) -> std::string {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  Network net(Model::layers({2, 3}));
  const std::vector<float> three(3);
  EXPECT_TRUE(has(message([&] { net.train_step(three, std::vector<std::int32_t>{0}); }), "expected 2"));
  EXPECT_TRUE(
      has(message([&] { net.train_step(std::span(three).first(2), std::vector<std::int32_t>{7}); }), "label 7"));
  EXPECT_TRUE(has(message([&] { static_cast<void>(net.predict(three)); }), "do not divide 3"));
  EXPECT_TRUE(has(message([&] { static_cast<void>(net.parameter("9.weight")); }), "9.weight"));
  EXPECT_TRUE(has(message([&] { net.set_parameter("0.bias", std::vector<float>(2)); }), "3 values, not 2"));
  EXPECT_TRUE(has(message([&] { Network(Model::layers({2, 3}), {.momentum = 1.5}); }), "momentum"));
  EXPECT_TRUE(has(message([&] { Network(Model::layers({2, 3}), {.nesterov = true}); }), "nesterov"));
  EXPECT_TRUE(has(message([&] { Network(Model::layers({2, 3}), {.device = "toaster"}); }), "cpu"));
  EXPECT_TRUE(has(message([&] { compute({1, 2}, 3, [](Builder&, Tensor x) { return x; }); }), "[1,3]"));
  EXPECT_TRUE(has(message([&] { compute({1, 2}, 2, [](Builder&, Tensor) { return Tensor(); }); }), "no op made"));
  EXPECT_TRUE(has(message([&] {
                    compute({1, 2}, 2, [](Builder& b, Tensor x) { return b.linear(b.linear(x, "a", 2), "a", 2); });
                  }),
                  "a.weight"));
  EXPECT_TRUE(has(message([] { static_cast<void>(Data::open("no/such/place")); }), "no/such/place"));
}

TEST(Api, BenchFillsARow) {
  const BenchRow row = bench(Model::layers({8, 4}), {.batch = 2, .threads = 1, .steps = 4});
  EXPECT_EQ(row.params, 36);
  EXPECT_EQ(row.steps, 4);
  EXPECT_EQ(row.device, "cpu");
  EXPECT_GT(row.gflops, 0);
  EXPECT_LE(row.step_ms_min, row.step_ms_median);
  EXPECT_GT(row.peak_bytes, 36 * 8);  // weights and momentum at least
  EXPECT_GT(peak_rss(), 1'000'000);
}

}  // namespace
}  // namespace stoker
