// What `auto` chooses, what it says, and what it remembers.
#include "run/choose_device.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/opencl/devices.h"
#include "backends/opencl/program.h"
#include "base/version.h"
#include "devices.h"
#include "temp_folder.h"

namespace stoker {
namespace {

using testing::TempFolder;

class ChooseDevice : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("STOKER_CACHE_DIR", folder_.path().c_str(), 1); }

  // A step of 53 MFLOP: just large enough to be measured.
  [[nodiscard]] static DeviceChoice choose(double seconds) {
    return choose_device(nn::find_model("lenet5"), {}, 4, seconds);
  }
  static bool says(const DeviceChoice& choice, const std::string& part) {
    return choice.line.find(part) != std::string::npos;
  }

  TempFolder folder_;
};

#define REQUIRE_OPENCL() \
  if (testing::opencl_ids().empty()) GTEST_SKIP() << "there is no OpenCL device"

TEST_F(ChooseDevice, LeavesSmallNetsToTheCpu) {
  const DeviceChoice choice = choose_device(nn::find_model("mlp"), {}, 32, 3);
  EXPECT_EQ(choice.device, "cpu");
  EXPECT_EQ(choice.line.find('\n'), std::string::npos);
  EXPECT_EQ(says(choice, "too small"), !testing::opencl_ids().empty()) << choice.line;
}

TEST_F(ChooseDevice, MeasuresNothingWithoutTime) {
  REQUIRE_OPENCL();
  const DeviceChoice choice = choose(0);
  EXPECT_EQ(choice.device, "cpu");
  EXPECT_TRUE(says(choice, "nothing was measured")) << choice.line;
}

TEST_F(ChooseDevice, DoesNotTakeADeviceThatIsNotReadyInTime) {
  REQUIRE_OPENCL();
  const DeviceChoice choice = choose(1e-3);
  EXPECT_EQ(choice.device, "cpu");
  EXPECT_TRUE(says(choice, "not ready in time")) << choice.line;
  EXPECT_EQ(choice.line.find('\n'), std::string::npos) << choice.line;
  // It is tried again, but not for ever.
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(says(choose(1e-3), "remembered")) << i;
  EXPECT_TRUE(says(choose(1e-3), "remembered"));
}

TEST_F(ChooseDevice, RemembersWhatItMeasured) {
  REQUIRE_OPENCL();
  const DeviceChoice measured = choose(600);
  EXPECT_FALSE(says(measured, "remembered")) << measured.line;
  for (const std::string& id : testing::device_ids()) EXPECT_TRUE(says(measured, id)) << measured.line;
  const DeviceChoice again = choose(600);
  EXPECT_EQ(again.device, measured.device);
  EXPECT_TRUE(says(again, "remembered")) << again.line;
  EXPECT_EQ(choose(0).device, measured.device);
  // Another batch is another question.
  EXPECT_TRUE(says(choose_device(nn::find_model("lenet5"), {}, 5, 0), "nothing was measured"));
}

TEST_F(ChooseDevice, MeasuresAnewWithAnotherVersionDriverOrKernels) {
  opencl::Device gpu;
  gpu.driver = "v331.0";
  gpu.global_bytes = std::int64_t{1} << 30U;
  const auto key = [&] {
    const std::vector<DeviceInfo> devices = {{"cpu", "CPU", "AVX2"}, opencl::describe(gpu)};
    return choice_key(nn::find_model("lenet5"), 64, 2, devices);
  };
  const std::string before = key();
  EXPECT_NE(before.find(std::string("stoker ") + version()), std::string::npos);
  EXPECT_NE(before.find(opencl::embedded_digest()), std::string::npos);
  gpu.global_bytes *= 2;  // PoCL's changes with what other programs use
  EXPECT_EQ(key(), before);
  gpu.driver = "v332.0";
  EXPECT_NE(key(), before);
}

TEST_F(ChooseDevice, WorksWithoutACacheFolder) {
  ::setenv("STOKER_CACHE_DIR", "/proc/no/such/folder", 1);
  EXPECT_EQ(choose(1e-3).device, "cpu");
}

}  // namespace
}  // namespace stoker
