// Winograd's rounding must not show in training: the same net, trained with it and without, has the same losses.
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "devices.h"
#include "nn/model.h"
#include "passes/pass.h"
#include "run/session.h"

namespace stoker {
namespace {

// Two 3x3 convolutions of 32 channels, wide enough for Winograd in all three directions.
nn::Model wide_net() {
  nn::Model model;
  model.name = "wide";
  model.item = {12, 12, 3};
  model.outputs = 4;
  model.forward = [](nn::Net& net, Value x) {
    GraphBuilder& b = net.builder();
    const nn::ConvOptions conv{.kernel = 3, .pad = 1, .bias = false};
    x = ops::relu(b, net.batch_norm(net.conv2d(x, "conv1", 32, conv), "bn1"));
    x = ops::relu(b, net.batch_norm(net.conv2d(x, "conv2", 32, conv), "bn2"));
    x = ops::relu(b, net.batch_norm(net.conv2d(x, "conv3", 32, conv), "bn3"));
    return net.linear(ops::global_avg_pool(b, x), "fc", 4);
  };
  return model;
}

std::vector<double> train(const std::string& device, const std::vector<std::string>& passes_off) {
  constexpr std::int64_t kBatch = 16;
  SessionOptions options;
  options.optimizer.momentum = 0.9;
  options.schedule.rate = 0.05;
  options.device = device;
  options.threads = 2;
  options.passes_off = passes_off;
  Session session(wide_net(), options);
  std::vector<double> losses;
  for (std::uint64_t step = 0; step < 30; ++step) {
    Random random(1, step % 6);  // six batches, over and over: there is something to learn
    std::vector<std::int32_t> labels;
    std::vector<float> items;
    for (std::int64_t i = 0; i < kBatch; ++i) {
      labels.push_back(static_cast<std::int32_t>(random.below(4)));
      for (int k = 0; k < 12 * 12 * 3; ++k) items.push_back(random.normal() + 0.2F * static_cast<float>(labels.back()));
    }
    losses.push_back(session.train({kBatch, items, std::as_bytes(std::span(labels))}).loss);
  }
  return losses;
}

class Winograd : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Devices, Winograd, ::testing::ValuesIn(testing::device_ids()),
                         [](const auto& test) { return testing::as_test_name(test.param); });

TEST_P(Winograd, does_not_show_in_the_losses_of_training) {
  const std::vector<double> plain = train(GetParam(), {kWinograd});
  const std::vector<double> fast = train(GetParam(), {});
  EXPECT_NE(plain, fast) << "both ran the same kernels: the test tests nothing";
  EXPECT_LT(plain.back(), 0.5 * plain.front()) << "nothing was learnt";
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_NEAR(plain[i], fast[i], 2e-3 * std::max(plain[i], 0.1)) << "step " << i;
  }
}

}  // namespace
}  // namespace stoker
