// The commands about OpenCL devices as a user meets them: devices, check, tune.
#include <nlohmann/json.hpp>

#include "cli_fixture.h"
#include "devices.h"

namespace stoker::testing {
namespace {

class CliOpencl : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    if (!IsSkipped() && opencl_ids().empty()) GTEST_SKIP() << "there is no OpenCL device";
  }

  [[nodiscard]] std::size_t entries(const char* kind) const {
    std::size_t count = 0;
    const std::filesystem::path folder = folder_ / kind;
    if (!std::filesystem::exists(folder)) return 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) count += entry.is_regular_file() ? 1 : 0;
    return count;
  }

  WithVariable cache_{"STOKER_CACHE_DIR", folder_.path().string()};
};

TEST_F(CliOpencl, DevicesSaysHowStepsAreReplayedAndWhetherImagesAreRead) {
  const std::string out = call({"devices"}).out;
  for (const std::string& id : opencl_ids()) {
    const std::size_t row = out.find(id);
    ASSERT_NE(row, std::string::npos) << out;
    const std::string line = out.substr(row, out.find('\n', row) - row);
    EXPECT_NE(line.find("replay"), std::string::npos) << line;
    EXPECT_NE(line.find("images"), std::string::npos) << line;
  }
}

TEST_F(CliOpencl, CheckFindsEveryKernelRightAndIsRemembered) {
  const Finished check = call({"check", "--device", "opencl"});
  EXPECT_EQ(check.status, 0) << check.out << check.err;
  EXPECT_EQ(check.out.find("WRONG"), std::string::npos) << check.out;
  for (const char* kernel : {"gemm", "conv2d", "depthwise", "pooling", "pointwise", "reduction", "softmax", "gather"})
    EXPECT_NE(check.out.find(std::string("\n") + kernel + " "), std::string::npos) << kernel << " was left out";
  EXPECT_NE(check.out.find("cases are right, forward and backward\n"), std::string::npos) << check.out;
  EXPECT_EQ(entries("self-test"), 1U);
}

// The time is up after the first problem, so that one kernel is tuned.
TEST_F(CliOpencl, TuneSaysWhatItFoundAndStoresIt) {
  const std::vector<std::string> tune = {"tune", "--layers", "16,12,4", "--batch", "4", "--seconds", "0.001"};
  const Finished tuned = call(tune);
  ASSERT_EQ(tuned.status, 0) << tuned.err;
  EXPECT_EQ(tuned.out.rfind("kernels", 0), 0U) << tuned.out;
  EXPECT_NE(tuned.out.find("\ngemm "), std::string::npos) << tuned.out;
  EXPECT_NE(tuned.out.find("Stored for this device and driver"), std::string::npos) << tuned.out;
  EXPECT_EQ(tuned.err, "");
  EXPECT_EQ(entries("tuning"), 1U);

  // Where nothing can be stored, it says so.
  std::ofstream(folder_ / "occupied") << "a file where a folder should be";
  const WithVariable cache("STOKER_CACHE_DIR", (folder_ / "occupied").string());
  const Finished lost = call(tune);
  EXPECT_EQ(lost.status, 0) << lost.err;
  EXPECT_NE(lost.err.find("not stored"), std::string::npos) << lost.err;
  EXPECT_EQ(lost.out.find("Stored"), std::string::npos) << lost.out;
}

}  // namespace
}  // namespace stoker::testing
