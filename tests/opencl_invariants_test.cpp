// What a training step on an OpenCL device may cost besides computing: the batch comes in, the results go out, and
// nothing else is moved, created, built or waited for. And what it computes: the CPU's results, replayed or not.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <ostream>

#include "base/random.h"
#include "devices.h"
#include "run/random_batch.h"
#include "run/session.h"

namespace stoker {
namespace {

using testing::opencl_ids;

#define REQUIRE_OPENCL() \
  if (opencl_ids().empty()) GTEST_SKIP() << "there is no OpenCL device"

SessionOptions options_for(const std::string& optimizer, const std::string& device, bool replay = true) {
  return {.optimizer = {.kind = nn::parse_optimizer(optimizer), .momentum = optimizer == "sgd" ? 0.9 : 0.0},
          .schedule = {.rate = 1e-3},
          .device = device,
          .self_test = false,
          .replay = replay};
}

struct Case {
  const char* model;
  std::int64_t batch;
  const char* optimizer;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.model << ", batch " << c.batch << ", " << c.optimizer; }

std::string name_of(const ::testing::TestParamInfo<Case>& test) {
  return testing::as_test_name(std::string(test.param.model) + "_" + test.param.optimizer);
}

class Invariants : public ::testing::TestWithParam<Case> {};

TEST_P(Invariants, HoldAfterTheFirstStep) {
  REQUIRE_OPENCL();
  constexpr int kSteps = 18;
  constexpr std::int64_t kWords = 3;  // loss, correct, bad
  const auto& [name, count, optimizer] = GetParam();
  for (const std::string& device : opencl_ids()) {
    SCOPED_TRACE(device);
    Session session(nn::find_model(name), options_for(optimizer, device));
    const RandomBatch batch(session.model(), session.options().target, count);
    const auto bytes = static_cast<std::int64_t>(batch.view().items.size_bytes() + batch.view().targets.size());
    for (int i = 0; i < 2; ++i) static_cast<void>(session.train(batch.view()));  // each of the two batch buffers

    const Counters before = session.counters();
    int collected = 0;
    for (int i = 0; i < kSteps; ++i) {
      session.submit(batch.view());
      while (session.collect(false)) ++collected;
    }
    const Counters during = session.counters() - before;
    while (session.collect(true)) ++collected;
    const Counters all = session.counters() - before;

    EXPECT_EQ(collected, kSteps);
    EXPECT_EQ(during.blocking_calls, 0) << "between collections";
    EXPECT_EQ(all.mapped_in, bytes * kSteps) << "the batch, and nothing else, comes from the host";
    EXPECT_EQ(all.written, 0);
    EXPECT_EQ(all.read, kWords * 4 * kSteps) << "the results, and nothing else, go to the host";
    EXPECT_EQ(all.mapped_out, 0);
    EXPECT_EQ(all.objects_created, 0);
    EXPECT_EQ(all.programs_built, 0);
    EXPECT_EQ(all.programs_loaded, 0);
    EXPECT_GT(all.launches, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, Invariants,
                         ::testing::Values(Case{"mlp", 8, "sgd"}, Case{"mlp", 8, "adam"}, Case{"lenet5", 4, "sgd"},
                                           Case{"lenet5", 4, "adam"}, Case{"mobilenetv2-32", 2, "sgd"},
                                           Case{"mobilenetv2-32", 2, "adam"}, Case{"resnet18-32", 2, "sgd"},
                                           Case{"resnet18-32", 2, "adam"}),
                         name_of);

// A residual block with batch norm, stride and a projection: what ResNets are made of.
nn::Model residual_model() {
  return {.name = "residual",
          .summary = "",
          .item = {8, 8, 3},
          .outputs = 5,
          .default_batch = 8,
          .forward = [](nn::Net& net, Value x) {
            GraphBuilder& b = net.builder();
            x = ops::relu(b, net.batch_norm(net.conv2d(x, "conv1", 8, {.kernel = 3, .pad = 1, .bias = false}), "bn1"));
            Value y = net.conv2d(x, "conv2", 16, {.kernel = 3, .stride = 2, .pad = 1, .bias = false});
            y = net.batch_norm(y, "bn2");
            x = net.batch_norm(net.conv2d(x, "down", 16, {.kernel = 1, .stride = 2, .bias = false}), "bn3");
            x = ops::relu(b, ops::add(b, x, y));
            return net.linear(ops::global_avg_pool(b, x), "fc", 5);
          }};
}

// Different batches, so that each step has something to learn.
std::vector<double> losses(Session& session, std::int64_t count, int steps) {
  std::vector<double> list;
  Random random(5);
  const auto items = static_cast<std::size_t>(count * session.model().item.elements());
  for (int step = 0; step < steps; ++step) {
    std::vector<float> values(items);
    std::vector<std::int32_t> labels(static_cast<std::size_t>(count));
    for (std::int32_t& label : labels)
      label = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(session.model().outputs)));
    for (std::size_t i = 0; i < items; ++i)
      values[i] = random.uniform() + 0.1F * static_cast<float>(labels[i * labels.size() / items]);
    list.push_back(session.train({count, values, std::as_bytes(std::span(labels))}).loss);
  }
  return list;
}

std::map<std::string, std::vector<std::byte>> states_of(const Session& session) {
  std::map<std::string, std::vector<std::byte>> states;
  for (const StateVar& state : session.states()) {
    states[state.name].resize(static_cast<std::size_t>(state.spec.bytes()));
    session.read_state(state.name, states[state.name]);
  }
  return states;
}

// Losses agree to 2e-4 of themselves over 20 steps: rounding differs in the order of sums, and grows with the steps.
TEST(OpenCl, AgreesWithTheCpuOverTwentySteps) {
  REQUIRE_OPENCL();
  for (const nn::Model& model : {nn::find_model("mlp"), nn::find_model("lenet5"), residual_model()}) {
    Session cpu(model, options_for("sgd", "cpu"));
    const std::vector<double> expected = losses(cpu, 8, 20);
    for (const std::string& device : opencl_ids()) {
      SCOPED_TRACE(model.name + " on " + device);
      Session session(model, options_for("sgd", device));
      const std::vector<double> found = losses(session, 8, 20);
      for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 2e-4 * expected[i]) << i;
    }
  }
}

TEST(OpenCl, ReplayedAndPlainLaunchesGiveTheSameBits) {
  REQUIRE_OPENCL();
  for (const nn::Model& model : {nn::find_model("lenet5"), residual_model()}) {
    for (const std::string& device : opencl_ids()) {
      SCOPED_TRACE(model.name + " on " + device);
      Session replayed(model, options_for("adam", device, true));
      Session plain(model, options_for("adam", device, false));
      EXPECT_EQ(losses(replayed, 4, 6), losses(plain, 4, 6));
      EXPECT_TRUE(states_of(replayed) == states_of(plain));
    }
  }
}

TEST(OpenCl, TheSameSeedGivesTheSameBits) {
  REQUIRE_OPENCL();
  for (const std::string& device : opencl_ids()) {
    Session first(residual_model(), options_for("adam", device));
    Session second(residual_model(), options_for("adam", device));
    EXPECT_EQ(losses(first, 8, 6), losses(second, 8, 6)) << device;
    EXPECT_TRUE(states_of(first) == states_of(second)) << device;
  }
}

}  // namespace
}  // namespace stoker
