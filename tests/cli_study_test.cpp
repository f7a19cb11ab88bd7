// stoker study as a user calls it: an interrupt leaves a whole report of what was done.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "command.h"
#include "devices.h"

namespace stoker::testing {
namespace {

class CliStudy : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_command()) GTEST_SKIP() << "STOKER_COMMAND is not set";
    if (opencl_ids().empty()) GTEST_SKIP() << "there is no OpenCL device";
  }

  TempFolder folder_;
};

TEST_F(CliStudy, AnInterruptLeavesAReportOfWhatWasDone) {
  const Child child({"study", "--quick", "--phones", "--no-self-test", "--out", "out"}, folder_.path());
  // The third line of progress: two measurements are done.
  while (read_text(folder_ / "stderr.txt").find("[3/") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  child.send(SIGINT);
  const Finished finished = child.wait();
  EXPECT_EQ(finished.status, 130) << finished.err;
  EXPECT_NE(finished.out.find("stopped before its end"), std::string::npos) << finished.out;
  EXPECT_NE(read_text(folder_ / "out/report.html").find("</html>"), std::string::npos);
  const nlohmann::json results = nlohmann::json::parse(read_text(folder_ / "out/results.json"));
  EXPECT_EQ(results.at("sections").at(0).at("id"), "computation");
  const std::string csv = read_text(folder_ / "out/computation-1.csv");
  EXPECT_TRUE(csv.starts_with("M x N x K,")) << csv;
  EXPECT_NE(csv.find("32 x 16 x 16"), std::string::npos) << csv;
  EXPECT_NE(finished.out.find("rediction"), std::string::npos) << "the phones' predictions are missing";
}

TEST_F(CliStudy, BadArgumentsGetOneLine) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"study", "--device", "cpu"},
                                                    {"study", "--device", "opencl:99"},
                                                    {"study", "--out", "/proc/nothing/here"},
                                                    {"simulate", "lenet5", "--phone", "sd1"},
                                                    {"simulate", "lenet6", "--phone", "sd865"}}) {
    const Finished finished = run(arguments, folder_.path());
    EXPECT_EQ(finished.status, 1) << finished.out;
    EXPECT_TRUE(finished.err.starts_with("stoker: error: ")) << finished.err;
    EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished.err;
  }
  EXPECT_NE(run({"simulate", "lenet5", "--phone", "sd1"}, folder_.path()).err.find("sd865"), std::string::npos);
  EXPECT_NE(run({"simulate", "lenet6", "--phone", "sd865"}, folder_.path()).err.find("lenet5"), std::string::npos);
}

TEST_F(CliStudy, LeavesNoFolderBehindWhereNothingWasMeasured) {
  EXPECT_EQ(run({"study", "--device", "opencl:99", "--out", "out"}, folder_.path()).status, 1);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
  std::filesystem::create_directory(folder_ / "mine");
  EXPECT_EQ(run({"study", "--device", "opencl:99", "--out", "mine"}, folder_.path()).status, 1);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "mine"));
}

TEST_F(CliStudy, SimulateRefusesWhatItWouldNotLookAt) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"simulate", "--mode", "baseline"},
                                                    {"simulate", "--batch", "7", "--phone", "sd865"},
                                                    {"simulate", "lenet5", "--validate"},
                                                    {"simulate", "--phone", "sd865", "--validate"}}) {
    const Finished finished = run(arguments, folder_.path());
    EXPECT_EQ(finished.status, 2) << arguments[1] << finished.out;
    EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished.err;
  }
}

// A neighbour's figure is not the chip's own, and the CPU is as fast as itself.
TEST_F(CliStudy, SimulateSaysWhereTheCpusFigureIsFrom) {
  const std::string out = run({"simulate", "mlp", "--phone", "sd865"}, folder_.path()).out;
  EXPECT_NE(out.find("CPU at 158 GFLOPS (from sd765g)"), std::string::npos) << out;
  const std::size_t row = out.find("CPU at the study's 15-30 GFLOPS");
  ASSERT_NE(row, std::string::npos) << out;
  std::string line = out.substr(row, out.find('\n', row) - row);
  line.erase(line.find_last_not_of(' ') + 1);
  EXPECT_TRUE(line.ends_with(" 1")) << line;
}

}  // namespace
}  // namespace stoker::testing
