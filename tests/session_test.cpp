// Sessions: steps that are submitted ahead, their results in order, and what a step that is not finite does to them.
#include "run/session.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "devices.h"
#include "nn/zoo.h"

namespace stoker {
namespace {

constexpr std::int64_t kItems = 8;

nn::Model model() {
  return {.name = "small", .item = {2}, .outputs = 3, .default_batch = kItems, .forward = [](nn::Net& net, Value x) {
            x = net.batch_norm(net.linear(x, "fc1", 16), "bn");
            return net.linear(net.dropout(x, 0.2), "fc2", 3);
          }};
}

// Batch number `seed`; one with a NaN in it if `bad`.
struct Items {
  std::vector<float> points;
  std::vector<std::int32_t> labels;

  explicit Items(std::uint64_t seed, bool bad = false) {
    Random random(seed);
    for (std::int64_t i = 0; i < kItems; ++i) {
      labels.push_back(static_cast<std::int32_t>(random.below(3)));
      points.push_back(random.uniform());
      points.push_back(random.uniform() + static_cast<float>(labels.back()));
    }
    if (bad) points[3] = std::numeric_limits<float>::quiet_NaN();
  }
  [[nodiscard]] BatchView view() const { return {kItems, points, std::as_bytes(std::span(labels))}; }
};

// Every state, the transient one included: it must be as it was as well.
std::vector<std::vector<std::byte>> all_states(const Session& session) {
  std::vector<std::vector<std::byte>> list;
  for (const StateVar& state : session.states()) {
    list.emplace_back(static_cast<std::size_t>(state.spec.bytes()));
    session.read_state(state.name, list.back());
  }
  return list;
}

class SessionOn : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static Session make(int accumulate = 1) {
    return {model(),
            {.optimizer = {.kind = nn::parse_optimizer("adam")},
             .schedule = {.rate = 0.01},
             .accumulate = accumulate,
             .device = GetParam()}};
  }
};

TEST_P(SessionOn, SubmittedStepsGiveTheSameBitsAsStepsOneByOne) {
  for (const int accumulate : {1, 3}) {
    Session one_by_one = make(accumulate);
    Session ahead = make(accumulate);
    std::vector<StepResult> expected;
    std::vector<StepResult> results;
    for (std::uint64_t i = 0; i < 10; ++i) {
      expected.push_back(one_by_one.train(Items(i).view(), i == 9));
      ahead.submit(Items(i).view(), i == 9);
      while (const auto result = ahead.collect(false)) results.push_back(*result);
    }
    while (const auto result = ahead.collect(true)) results.push_back(*result);
    ASSERT_EQ(results.size(), expected.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].loss, expected[i].loss) << i;
      EXPECT_EQ(results[i].correct, expected[i].correct) << i;
      EXPECT_EQ(results[i].step, expected[i].step) << i;
    }
    EXPECT_EQ(ahead.steps_done(), accumulate == 1 ? 10 : 4);
    EXPECT_TRUE(all_states(ahead) == all_states(one_by_one)) << "accumulate " << accumulate;
  }
}

TEST_P(SessionOn, ManyStepsMayBeSubmittedBeforeTheFirstIsCollected) {
  Session session = make();
  const int count = 2 * Executable::kUncollected + 5;
  for (int i = 0; i < count; ++i) session.submit(Items(static_cast<std::uint64_t>(i)).view());
  for (int i = 0; i < count; ++i) {
    const auto result = session.collect(true);
    ASSERT_TRUE(result) << i;
    EXPECT_EQ(result->step, i + 1);
  }
  EXPECT_FALSE(session.collect(true));
}

// `before` good batches, a bad one, `after` good ones, all submitted at once; then the session is as after the good
// ones before, and training goes on.
void expect_as_before_the_bad_step(Session session, Session reference, std::uint64_t before, std::uint64_t after) {
  for (std::uint64_t i = 0; i < before; ++i) static_cast<void>(reference.train(Items(i).view()));
  for (std::uint64_t i = 0; i < before; ++i) session.submit(Items(i).view());
  session.submit(Items(100, true).view());
  for (std::uint64_t i = 0; i < after; ++i) session.submit(Items(200 + i).view());
  for (std::uint64_t i = 0; i < before; ++i) EXPECT_TRUE(session.collect(true)) << i;
  try {
    static_cast<void>(session.collect(true));
    FAIL() << "a NaN went by";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_finite);
  }
  EXPECT_FALSE(session.collect(true)) << "steps after the bad one were taken";
  EXPECT_EQ(session.steps_done(), reference.steps_done());
  EXPECT_TRUE(all_states(session) == all_states(reference));
  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(session.train(Items(300 + i).view()).loss, reference.train(Items(300 + i).view()).loss);
  }
  EXPECT_TRUE(all_states(session) == all_states(reference));
}

TEST_P(SessionOn, AStepThatIsNotFiniteStopsThoseSubmittedAfterIt) {
  for (const std::uint64_t before : {0, 1, 3}) {
    for (const std::uint64_t after : {0, 1, 5}) expect_as_before_the_bad_step(make(), make(), before, after);
  }
}

TEST_P(SessionOn, ABadBatchOfAnAccumulatedStepLeavesTheGradientsAddedUpSoFar) {
  // Each number of batches before makes the bad one another part of its step of three.
  for (const std::uint64_t before : {3, 4, 5}) expect_as_before_the_bad_step(make(3), make(3), before, 4);
}

TEST_P(SessionOn, KnowsOfABadStepAsSoonAsItsStateIsRead) {
  Session session = make();
  static_cast<void>(session.train(Items(1).view()));
  const auto before = all_states(session);
  session.submit(Items(2, true).view());
  session.submit(Items(3).view());
  EXPECT_EQ(session.steps_done(), 1);
  EXPECT_TRUE(all_states(session) == before);
  EXPECT_THROW(static_cast<void>(session.train(Items(4).view())), Error) << "the error was lost";
  EXPECT_EQ(session.train(Items(4).view()).step, 2);
}

TEST_P(SessionOn, EvaluatesAheadToo) {
  Session session = make();
  const double expected = session.evaluate(Items(1).view()).loss;
  for (int i = 0; i < 5; ++i) session.submit_evaluation(Items(1).view());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(session.collect(true)->loss, expected);
}

INSTANTIATE_TEST_SUITE_P(Devices, SessionOn, ::testing::ValuesIn(testing::device_ids()),
                         [](const auto& test) { return testing::as_test_name(test.param); });

}  // namespace
}  // namespace stoker
