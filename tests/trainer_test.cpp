// Training loops: every sample counts, resuming gives the same bits, stopping, and losses that are not finite.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "command.h"
#include "devices.h"
#include "stoker/stoker.hpp"

namespace stoker {
namespace {

using testing::read_text;
using testing::TempFolder;

// Two blobs in the plane a class.
struct Blobs {
  std::vector<float> points;
  std::vector<std::int32_t> labels;

  explicit Blobs(int count) {
    std::mt19937 random(7);
    std::normal_distribution<float> noise(0, 0.3F);
    for (int i = 0; i < count; ++i) {
      const int label = i % 3;
      points.push_back(static_cast<float>(label) - 1 + noise(random));
      points.push_back(static_cast<float>(label * label) / 2 + noise(random));
      labels.push_back(label);
    }
  }
  [[nodiscard]] Data data() const { return Data::arrays(points, labels, {2}); }
};

// Dropout and batch norm have state of their own: it must be in checkpoints too.
Model stateful_model() {
  return Model::custom("stateful", {2}, 3, [](Builder& net, Tensor x) {
    x = relu(net.batch_norm(net.linear(x, "fc1", 16), "bn"));
    return net.linear(net.dropout(x, 0.2), "fc2", 3);
  });
}

TEST(Trainer, TrainsTheLastSmallerBatchToo) {
  const Blobs blobs(11);
  Network net(Model::layers({2, 4, 3}));
  std::vector<std::int64_t> batches;
  const FitReport report = net.fit(blobs.data(), {.epochs = 2, .batch = 4, .on_step = [&](const Progress& progress) {
                                                    batches.push_back(progress.batch);
                                                    EXPECT_EQ(progress.batches, 3);
                                                    return true;
                                                  }});
  EXPECT_EQ(batches, (std::vector<std::int64_t>{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(report.steps, 6);
  EXPECT_EQ(report.epochs.size(), 2U);
  EXPECT_FALSE(report.cancelled);
}

TEST(Trainer, EvaluatesEverySample) {
  const Blobs blobs(11);
  Network net(Model::layers({2, 4, 3}));
  const EvalReport by_fours = net.evaluate(blobs.data(), 4);
  const StepReport at_once = net.evaluate(blobs.points, blobs.labels);
  EXPECT_EQ(by_fours.items, 11);
  EXPECT_NEAR(by_fours.loss, at_once.loss, 1e-6);
  EXPECT_NEAR(by_fours.accuracy * 11, static_cast<double>(at_once.correct), 1e-9);
}

TEST(Trainer, TestsOnTheTestPartAfterEachEpoch) {
  const Blobs blobs(90);
  const Blobs other(31);
  Network net(Model::layers({2, 16, 3}), {.optimizer = "adam", .lr = 0.02});
  const FitReport report = net.fit(blobs.data().with_test(other.data()), {.epochs = 15, .batch = 16});
  ASSERT_EQ(report.epochs.size(), 15U);
  EXPECT_EQ(report.epochs.back().test_items, 31);
  EXPECT_LT(report.epochs.back().test_loss, report.epochs.front().test_loss);
  EXPECT_GT(report.epochs.back().test_accuracy, 0.8);
}

struct Where {
  std::string optimizer;
  std::string device;
};

std::vector<Where> everywhere() {
  std::vector<Where> list;
  for (const char* optimizer : {"sgd", "adam", "adamw", "rmsprop"}) list.push_back({optimizer, "cpu"});
  for (const std::string& device : testing::opencl_ids()) {
    for (const char* optimizer : {"sgd", "adam"}) list.push_back({optimizer, device});
  }
  return list;
}

class Resume : public ::testing::TestWithParam<Where> {};

TrainOptions options_for(const Where& where) {
  const std::string& optimizer = where.optimizer;
  return {.optimizer = optimizer,
          .lr = 0.01,
          .momentum = optimizer == "sgd" || optimizer == "rmsprop" ? 0.9 : 0.0,
          .weight_decay = 1e-3,
          .schedule = "cosine",
          .warmup_steps = 2,
          .total_steps = 24,
          .clip = 1,
          .seed = 9,
          .device = where.device,
          .self_test = false};
}

TEST_P(Resume, GivesTheSameBitsAsNeverHavingStopped) {
  const Blobs blobs(45);
  const TempFolder folder;
  const auto straight_file = folder / "straight.safetensors";
  const auto file = folder / "stopped.safetensors";
  Network straight(stateful_model(), options_for(GetParam()));
  static_cast<void>(straight.fit(blobs.data(), {.epochs = 4, .batch = 8, .save = straight_file}));
  const std::string expected = read_text(straight_file);

  for (const std::int64_t stop_at : {1, 5, 6, 13, 23}) {
    {
      Network first(stateful_model(), options_for(GetParam()));
      // A device that works ahead hears of a step before the next one only where there is something to save.
      FitOptions fit{.epochs = 4, .batch = 8, .save = file, .save_every = GetParam().device == "cpu" ? 0 : 1};
      fit.on_step = [&](const Progress& progress) { return progress.step < stop_at; };
      const FitReport report = first.fit(blobs.data(), fit);
      EXPECT_TRUE(report.cancelled);
      EXPECT_EQ(report.steps, stop_at);
    }
    Network second(stateful_model(), options_for(GetParam()));
    const CheckpointInfo info = second.resume(file);
    EXPECT_EQ(info.step, stop_at);
    EXPECT_EQ(info.epoch * 6 + info.batch, stop_at);
    const FitReport report = second.fit(blobs.data(), {.epochs = 4, .batch = 8, .save = file});
    EXPECT_EQ(report.steps, 24);
    EXPECT_TRUE(read_text(file) == expected) << "stopped at step " << stop_at;
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Resume, ::testing::ValuesIn(everywhere()), [](const auto& test) {
  return testing::as_test_name(test.param.optimizer + "_" + test.param.device);
});

class TrainerOn : public ::testing::TestWithParam<std::string> {};

TEST_P(TrainerOn, ReportsEveryBatchInOrderHoweverFarTheDeviceWorksAhead) {
  const Blobs blobs(11);
  Network net(stateful_model(), {.device = GetParam(), .self_test = false});
  std::vector<std::int64_t> steps;
  std::vector<std::int64_t> batches;
  std::size_t at_epochs_end = 0;
  FitOptions options{.epochs = 3, .batch = 4};
  options.on_step = [&](const Progress& progress) {
    steps.push_back(progress.step);
    batches.push_back(progress.batch);
    return true;
  };
  options.on_epoch = [&](const EpochReport&) { at_epochs_end = steps.size(); };
  const FitReport report = net.fit(blobs.data(), options);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(batches, (std::vector<std::int64_t>{1, 2, 3, 1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(at_epochs_end, 9U) << "an epoch's report came before its last batch's";
  EXPECT_EQ(report.steps, 9);
}

TEST(Trainer, FinishesAnAccumulatedStepBeforeItStops) {
  const Blobs blobs(40);
  Network net(Model::layers({2, 4, 3}), {.accumulate = 3});
  int batches = 0;
  const FitReport report =
      net.fit(blobs.data(), {.epochs = 1, .batch = 4, .on_step = [&](const Progress&) { return ++batches != 1; }});
  EXPECT_TRUE(report.cancelled);
  EXPECT_EQ(batches, 3);
  EXPECT_EQ(report.steps, 1);
}

TEST(Trainer, AccumulatesToTheSameResultAsTheLargeBatch) {
  const Blobs blobs(24);
  const TrainOptions large{.lr = 0.1, .momentum = 0.9};
  TrainOptions small = large;
  small.accumulate = 3;
  Network once(Model::layers({2, 8, 3}), large);
  Network parts(Model::layers({2, 8, 3}), small);
  const std::span<const float> points(blobs.points);
  const std::span<const std::int32_t> labels(blobs.labels);
  for (int step = 0; step < 4; ++step) {
    once.train_step(points, labels);
    // Parts of different sizes: each counts by its samples.
    parts.train_step(points.subspan(0, 20), labels.subspan(0, 10));
    parts.train_step(points.subspan(20, 22), labels.subspan(10, 11));
    parts.train_step(points.subspan(42, 6), labels.subspan(21, 3));
  }
  for (const ParameterInfo& info : once.parameters()) {
    const std::vector<float> a = once.parameter(info.name);
    const std::vector<float> b = parts.parameter(info.name);
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << info.name;
  }
}

TEST(Trainer, CanBeCancelledFromAnotherThread) {
  const Blobs blobs(300);
  Network net(Model::layers({2, 16, 3}));
  FitOptions options{.epochs = 1'000'000, .batch = 4};
  std::atomic<bool> started = false;
  options.on_step = [&](const Progress&) {
    started = true;
    return true;
  };
  std::thread other([&] {
    while (!started) std::this_thread::yield();
    options.cancel.cancel();
  });
  const FitReport report = net.fit(blobs.data(), options);
  other.join();
  EXPECT_TRUE(report.cancelled);
  EXPECT_GT(report.steps, 0);
}

TEST_P(TrainerOn, ALossThatIsNotFiniteChangesNothing) {
  const TempFolder folder;
  const auto file = folder / "good.safetensors";
  Blobs blobs(40);
  for (float& value : std::span(blobs.points).subspan(2 * 30)) value = std::numeric_limits<float>::quiet_NaN();
  const Blobs clean(8);
  Network net(stateful_model(), {.optimizer = "adam", .lr = 0.01, .device = GetParam(), .self_test = false});
  static_cast<void>(net.fit(clean.data(), {.epochs = 1, .batch = 8, .save = file}));
  const std::string good = read_text(file);
  const auto snapshot = [&](const char* name) {
    net.save(folder / name);
    return read_text(folder / name);
  };
  const std::string before = snapshot("before");
  const std::span<const float> points(blobs.points);
  const std::span<const std::int32_t> labels(blobs.labels);
  try {
    net.train_step(points.subspan(2 * 26, 2 * 8), labels.subspan(26, 8));
    FAIL() << "a NaN went by";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_finite);
  }
  EXPECT_TRUE(snapshot("after") == before) << "a step that was not finite changed the state";
  try {
    static_cast<void>(net.fit(blobs.data(), {.epochs = 2, .batch = 40, .save = file}));
    FAIL() << "a NaN went by";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_finite);
    EXPECT_NE(std::string(error.what()).find("epoch 1"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(read_text(file) == good) << "the last good checkpoint is gone";
}

INSTANTIATE_TEST_SUITE_P(Devices, TrainerOn, ::testing::ValuesIn(testing::device_ids()),
                         [](const auto& test) { return testing::as_test_name(test.param); });

TEST(Trainer, RefusesDataThatDoesNotFitTheModel) {
  const Blobs blobs(12);
  Network wide(Model::layers({3, 4, 3}));
  EXPECT_THROW(static_cast<void>(wide.fit(blobs.data())), Error);
  Network few(Model::layers({2, 4, 2}));
  EXPECT_THROW(static_cast<void>(few.fit(blobs.data())), Error);
  Network net(Model::layers({2, 4, 3}));
  EXPECT_THROW(static_cast<void>(net.fit(blobs.data(), {.epochs = 0})), Error);
  EXPECT_THROW(static_cast<void>(net.fit(blobs.data(), {.batch = -1})), Error);
  EXPECT_THROW(static_cast<void>(Data::arrays({}, {}, {2})), Error);
}

}  // namespace
}  // namespace stoker
