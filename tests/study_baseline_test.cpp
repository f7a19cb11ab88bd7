// The baseline of the study: it trains as the resident step does, and moves what it says it moves.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/error.h"
#include "devices.h"
#include "run/random_batch.h"
#include "study/baseline.h"

namespace stoker {
namespace {

constexpr std::int64_t kBatch = 32;
constexpr int kSteps = 5;

SessionOptions options_for(const std::string& device) {
  SessionOptions options;
  options.optimizer = {.kind = nn::Optimizer::Kind::sgd, .momentum = 0.9};
  options.schedule.rate = 0.01;
  options.device = device;
  options.self_test = false;
  return options;
}

std::vector<double> resident_losses(const nn::Model& model, const SessionOptions& options, const BatchView& batch) {
  Session session(model, options);
  std::vector<double> losses;
  for (int i = 0; i < kSteps; ++i) losses.push_back(session.train(batch).loss);
  return losses;
}

class Baseline : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Devices, Baseline, ::testing::ValuesIn(testing::device_ids()),
                         [](const auto& test) { return testing::as_test_name(test.param); });

void expect_losses(const nn::Model& model, const SessionOptions& options, const BaselineSwitches& switches,
                   const std::vector<double>& expected, const BatchView& batch) {
  BaselineSession baseline(model, options, switches, kBatch);
  for (int i = 0; i < kSteps; ++i) {
    EXPECT_NEAR(baseline.train(batch).loss, expected[static_cast<std::size_t>(i)], 1e-5)
        << model.name << ", step " << i + 1;
  }
}

TEST_P(Baseline, LosesNothingOnTheWay) {
  for (const char* name : {"mlp:20-16-10", "lenet5"}) {
    const nn::Model model = nn::find_model(name);
    SessionOptions options = options_for(GetParam());
    const RandomBatch batch(model, options.target, kBatch);
    const std::vector<double> expected = resident_losses(model, options, batch.view());
    ASSERT_LT(expected.back(), expected.front()) << "nothing was learnt: equal losses would say little";
    expect_losses(model, options, {}, expected, batch.view());
    expect_losses(model, options, {.one_by_one = false}, expected, batch.view());
    expect_losses(model, options, {.new_buffers = false}, expected, batch.view());
    expect_losses(model, options, {.one_by_one = false, .convert = false}, expected, batch.view());
    options.kernels = KernelChoice::mnn;
    expect_losses(model, options, {}, expected, batch.view());
  }
}

TEST_P(Baseline, StopsAtALossThatIsNotFinite) {
  const nn::Model model = nn::find_model("mlp:20-16-10");
  const SessionOptions options = options_for(GetParam());
  const RandomBatch good(model, options.target, kBatch);
  std::vector<float> items(good.view().items.begin(), good.view().items.end());
  items[3] = std::numeric_limits<float>::infinity();
  BaselineSession baseline(model, options, {}, kBatch);
  EXPECT_THROW(baseline.train({kBatch, items, good.view().targets}), Error);
}

// Two layers: four parameters of 16 x 20 + 16 + 10 x 16 + 10 = 506 floats.
class BaselineCounts : public ::testing::TestWithParam<std::string> {
 protected:
  static Counters count(const BaselineSwitches& switches, std::int64_t& launches) {
    const nn::Model model = nn::find_model("mlp:20-16-10");
    const SessionOptions options = options_for(GetParam());
    const RandomBatch batch(model, options.target, kBatch);
    BaselineSession baseline(model, options, switches, kBatch);
    baseline.train(batch.view());
    const Counters before = baseline.counters();
    baseline.train(batch.view());
    launches = baseline.launches();
    return baseline.counters() - before;
  }

  // Behind blocking reads the results are there at once or almost: waiting for them is one more call, or none.
  static std::int64_t waits_for_results(const Counters& step, std::int64_t others) {
    return step.blocking_calls == others + 1 ? 1 : 0;
  }

  static constexpr std::int64_t kInput = kBatch * (20 + 1) * 4;  // items and labels
  static constexpr std::int64_t kTensors = 506 * 4;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BaselineCounts);
INSTANTIATE_TEST_SUITE_P(Devices, BaselineCounts, ::testing::ValuesIn(testing::opencl_ids()),
                         [](const auto& test) { return testing::as_test_name(test.param); });

TEST_P(BaselineCounts, AreThoseOfAHandCount) {
  std::int64_t launches = 0;
  const Counters step = count({}, launches);
  EXPECT_EQ(step.written, kInput + kTensors);
  EXPECT_EQ(step.write_calls, 2 + 4);  // batch; parameters
  EXPECT_EQ(step.read_calls, 4 + 1);   // gradients; the results
  EXPECT_EQ(step.copied, 2 * kTensors);
  EXPECT_EQ(step.blocking_calls - waits_for_results(step, 2 + 4 + 4), 2 + 4 + 4);
  EXPECT_EQ(step.objects_created, 4 + 4);
  EXPECT_EQ(step.launches, launches);
  EXPECT_EQ(step.mapped_in + step.mapped_out, 0);
}

TEST_P(BaselineCounts, SwitchesTakeAwayWhatTheyName) {
  std::int64_t with_conversions = 0;
  const Counters in_place = count({.new_buffers = false}, with_conversions);
  EXPECT_EQ(in_place.objects_created, 0);
  EXPECT_EQ(in_place.copied, 0);
  EXPECT_EQ(in_place.blocking_calls - waits_for_results(in_place, 2 + 4 + 4), 2 + 4 + 4);

  std::int64_t without = 0;
  static_cast<void>(count({.convert = false}, without));
  EXPECT_EQ(with_conversions - without, 2 * 4);  // a kernel a tensor, each way

  const Counters together = count({.one_by_one = false}, without);
  EXPECT_EQ(together.read_calls, 1 + 1);
  EXPECT_EQ(together.write_calls, 2 + 1);
  // Batch and gradients: the parameters go up without waiting.
  EXPECT_EQ(together.blocking_calls - waits_for_results(together, 2 + 1), 2 + 1);
  EXPECT_EQ(together.objects_created, 0);
}

}  // namespace
}  // namespace stoker
