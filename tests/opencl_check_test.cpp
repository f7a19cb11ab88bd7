// The self-test and the tuner of the OpenCL backend: a wrong kernel goes into quarantine, cannot win, and what was
// found is remembered. That all is right on this device, cli_opencl_test asks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "backends/opencl/cache.h"
#include "backends/opencl/devices.h"
#include "backends/opencl/self_test.h"
#include "backends/opencl/tuner.h"
#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "passes/pass.h"
#include "stoker/stoker.hpp"
#include "temp_folder.h"

namespace stoker::opencl {
namespace {

// Bands of three rows begin at odd rows of dx, where stride 2 needs even ones: builds, runs, and is wrong.
const Params kWrong = {{"VEC", 4}, {"ROWS", 3}, {"GROUP", 1}};

class OpenclCheck : public ::testing::Test {
 protected:
  void SetUp() override {
    if (list_opencl_devices().empty()) GTEST_SKIP() << "no OpenCL device";
    ::setenv("STOKER_CACHE_DIR", folder_.path().c_str(), 1);
    backend_ = make_seeded_backend("opencl", {});
  }
  // Stride 2 with few channels, forward and backward.
  [[nodiscard]] Graph strided() const {
    GraphBuilder b;
    const Value dy = ops::input(b, "dy", {DType::f32, {2, 5, 5, 8}});
    const Value w = ops::input(b, "w", {DType::f32, {3, 3, 1, 8}});
    Attrs attrs{{"stride", Ints{2, 2}},
                {"pad", Ints{1, 1, 1, 1}},
                {"dilation", Ints{1, 1}},
                {"input_shape", Ints{2, 10, 9, 8}}};
    b.set_output("dx", ops::make(b, "depthwise_input_grad", {dy, w}, std::move(attrs)));
    return std::move(b).finish();
  }

  stoker::testing::TempFolder folder_;
  std::unique_ptr<ClBackend> backend_;
};

TEST_F(OpenclCheck, PutsAWrongKernelIntoQuarantineAndRemembersIt) {
  backend_->tuning().set("depthwise", "", kWrong);
  const SelfTest test = run_self_test(*backend_, {.family = "depthwise"});
  EXPECT_FALSE(std::ranges::all_of(test.results, &CheckResult::passed)) << "the wrong kernel was not noticed";
  EXPECT_EQ(test.quarantine, std::vector<std::string>{"depthwise"});
  EXPECT_TRUE(test.broken.empty());
  EXPECT_TRUE(backend_->tuning().is_plain("depthwise"));

  EXPECT_FALSE(load_self_test(backend_->device()).has_value());
  EXPECT_EQ(store_self_test(backend_->device(), test), "");
  std::vector<std::string> notes;
  BackendOptions options;
  options.note = [&](const std::string& line) { notes.push_back(line); };
  const std::unique_ptr<Backend> next = make_opencl_backend("opencl", options);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("depthwise"), std::string::npos) << notes[0];
  EXPECT_NE(next->numerics_key(), make_seeded_backend("opencl", {})->numerics_key());
}

TEST_F(OpenclCheck, RunsOnceByItselfAndNotIfItIsSwitchedOff) {
  BackendOptions options;
  options.self_test = false;
  static_cast<void>(make_opencl_backend("opencl", options));
  EXPECT_FALSE(load_self_test(backend_->device()).has_value());
  static_cast<void>(make_opencl_backend("opencl", {}));
  const std::optional<SelfTest> test = load_self_test(backend_->device());
  ASSERT_TRUE(test.has_value());
  EXPECT_TRUE(test->quarantine.empty());
  EXPECT_TRUE(test->broken.empty());
}

TEST_F(OpenclCheck, NeverLetsAWrongCandidateWin) {
  const Params right = {{"VEC", 4}, {"ROWS", 2}, {"GROUP", 1}};
  TuneOptions options;
  options.candidates = [&](const std::string&) { return std::vector<Params>{kWrong, right}; };
  const std::vector<TuneResult> results = tune(*backend_, strided(), options);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].kernel, "depthwise");
  EXPECT_EQ(results[0].tried, 2);
  EXPECT_EQ(results[0].wrong, 1);
  EXPECT_NE(results[0].after, kWrong);
  EXPECT_NE(backend_->tuning().params("depthwise", results[0].problem), kWrong);
}

TEST_F(OpenclCheck, KeepsTunedParametersByDeviceAndIgnoresADamagedFile) {
  const Params params = {{"VEC", 8}, {"ROWS", 1}, {"GROUP", 1}};
  backend_->tuning().set("depthwise", "a problem", params);
  EXPECT_EQ(store_tuning(backend_->device(), backend_->tuning()), "");
  Tuning loaded(backend_->device());
  load_tuning(backend_->device(), loaded);
  EXPECT_EQ(loaded.params("depthwise", "a problem"), params);
  EXPECT_NE(loaded.key(), Tuning(backend_->device()).key());

  std::ofstream(Cache("tuning").path_of(backend_->device().key())) << "{\"format\": 1, \"entries\": [";
  Tuning damaged(backend_->device());
  load_tuning(backend_->device(), damaged);
  EXPECT_TRUE(damaged.tuned().empty());
}

TEST_F(OpenclCheck, TunesAModelAndTrainingUsesTheResult) {
  stoker::TuneOptions options;
  options.batch = 4;
  options.seconds = 0.001;  // one problem
  const std::vector<TunedKernel> rows = tune_kernels(stoker::Model::named("lenet5"), options);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_GT(rows[0].tried + 1, rows[0].wrong + rows[0].failed);
}

TEST(DeviceCheckApi, RefusesADeviceThatIsNotOpencl) { EXPECT_THROW(static_cast<void>(check_device("cpu")), Error); }

}  // namespace
}  // namespace stoker::opencl
