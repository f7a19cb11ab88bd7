// Each OpenCL entry point is made to fail, at each of its calls, in a short training: the result is a clear Error or
// the training goes on, nothing is leaked, and the checkpoint from before is intact.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <set>

#include "backends/opencl/devices.h"
#include "command.h"
#include "fault_library.h"
#include "formats/safetensors.h"
#include "stoker/stoker.hpp"
#include "stub_driver.h"

namespace stoker {
namespace {

using testing::Fault;
using testing::FaultLibrary;
using testing::faults;
using testing::make_stub_library;
using testing::read_text;
using testing::stub_report;
using testing::StubConfig;
using testing::StubDevice;
using testing::TempFolder;

Model tiny_model() {
  return Model::custom("tiny", {4}, 3,
                       [](Builder& net, Tensor x) { return net.linear(relu(net.linear(x, "fc1", 4)), "fc2", 3); });
}

// Resumes from the checkpoint, trains, looks at the result and saves over the checkpoint.
void train_on_opencl(const std::filesystem::path& checkpoint) {
  Network net(tiny_model(), {.optimizer = "adam", .device = "opencl", .self_test = false});
  net.resume(checkpoint);
  const std::vector<float> items = {1, 2, 3, 4, 4, 3, 2, 1};
  for (int step = 0; step < 3; ++step) net.train_step(items, std::vector<std::int32_t>{0, 2});
  static_cast<void>(net.predict(items));
  net.save(checkpoint);
  faults().at_work = false;
}

std::optional<Error> error_of(const std::filesystem::path& checkpoint) {
  try {
    train_on_opencl(checkpoint);
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

// What may fail once without an end to the training: what is tried again, done otherwise, or done without. What is
// given back after the last result may fail in any case.
bool may_be_survived(const std::string& function) {
  static const std::set<std::string> kSurvived = {
      "clBuildProgram",                            // tried again
      "clCreateProgramWithSource",                 // so is this
      "clCreateProgramWithBinary",                 // built from source
      "clGetProgramInfo",                          // not cached
      "clGetProgramBuildInfo",                     // an error's words alone
      "clGetDeviceInfo",                           // some queries are optional
      "clGetExtensionFunctionAddressForPlatform",  // as are extensions
      "clGetKernelWorkGroupInfo",                  // the device's limit is taken
      "clCreateCommandBufferKHR",                  // launches are not recorded
      "clCreateImage",                             // buffers are read without views
      "clCommandNDRangeKernelKHR",
      "clFinalizeCommandBufferKHR",
      "clNewRecordingQCOM",
      "clEndRecordingQCOM",
  };
  return function.starts_with("clRelease") || kSurvived.contains(function);
}

// The errors that a driver may well give there: one that passes, one that stays.
std::array<cl_int, 2> likely_errors(const std::string& function) {
  if (function == "clBuildProgram") return {CL_BUILD_PROGRAM_FAILURE, CL_OUT_OF_HOST_MEMORY};
  if (function == "clEnqueueMapBuffer") return {CL_MAP_FAILURE, CL_OUT_OF_RESOURCES};
  if (function.starts_with("clCreate")) return {CL_OUT_OF_HOST_MEMORY, CL_MEM_OBJECT_ALLOCATION_FAILURE};
  return {CL_OUT_OF_RESOURCES, CL_DEVICE_NOT_AVAILABLE};
}

class OpenClFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* old = std::getenv("STOKER_CACHE_DIR")) old_cache_ = old;
    ::setenv("STOKER_CACHE_DIR", (folder_ / "cache").c_str(), 1);
    Network net(tiny_model(), {.optimizer = "adam", .device = "cpu"});
    net.train_step(std::vector<float>{1, 2, 3, 4}, std::vector<std::int32_t>{1});
    net.save(checkpoint_);
    before_ = read_text(checkpoint_);
  }
  void TearDown() override {
    faults() = {};
    opencl::set_library_for_tests(nullptr);
    ::setenv("STOKER_CACHE_DIR", old_cache_.c_str(), 1);
  }

  // Trains with a fault; checks the outcome.
  void expect_clear_end(const Fault& fault) {
    SCOPED_TRACE(fault.function + ", call " + std::to_string(fault.call) + ", error " + std::to_string(fault.error) +
                 (fault.for_good ? ", and all later ones" : ""));
    faults() = {.fault = fault};
    const std::optional<Error> error = error_of(checkpoint_);
    if (error.has_value()) {
      EXPECT_NE(std::string(error->what()).find("CL"), std::string::npos) << error->what();
      EXPECT_TRUE(error->code() == Code::device || error->code() == Code::no_memory) << error->what();
    } else {
      const bool survived = may_be_survived(fault.function) || survived_too_.contains(fault.function);
      EXPECT_TRUE(!faults().fired_at_work || survived) << "the failure was overlooked";
    }
    expect_intact_checkpoint(error.has_value());
  }

  // Unchanged if the training failed (a failing save leaves the old file), and readable in any case.
  void expect_intact_checkpoint(bool failed) {
    const std::string now = read_text(checkpoint_);
    if (failed) EXPECT_TRUE(now == before_) << "the checkpoint was changed";
    EXPECT_NO_THROW(static_cast<void>(SafetensorsFile::open(checkpoint_).read_f32("fc1.weight")));
    std::ofstream(checkpoint_, std::ios::binary) << before_;
  }

  // How often each entry point is called in a training without faults.
  std::map<std::string, long> count_calls() {
    faults() = {};
    train_on_opencl(checkpoint_);
    std::ofstream(checkpoint_, std::ios::binary) << before_;
    return faults().calls;
  }

  void fail_each_call_on_stub(const StubConfig& config) {
    const auto renew = [&] {
      std::filesystem::remove_all(folder_ / "cache");
      opencl::set_library_for_tests(std::make_shared<FaultLibrary>(make_stub_library(config)));
    };
    renew();
    const std::map<std::string, long> calls = count_calls();
    EXPECT_EQ(stub_report().misuse, std::vector<std::string>{});
    EXPECT_GT(calls.size(), 20U);
    for (const auto& [function, count] : calls) {
      const std::array<cl_int, 2> errors = likely_errors(function);
      for (long call = 0; call < count; ++call)
        for (const bool for_good : {false, true}) {
          renew();
          expect_clear_end({.function = function, .call = call, .error = errors[for_good], .for_good = for_good});
          EXPECT_TRUE(stub_report().live.empty()) << function << ": " << stub_report().live.begin()->first;
          EXPECT_EQ(stub_report().misuse, std::vector<std::string>{});
          if (HasFailure()) return;
        }
    }
  }

  TempFolder folder_;
  std::filesystem::path checkpoint_ = folder_ / "tiny.safetensors";
  std::string before_;
  std::string old_cache_;
  std::set<std::string> survived_too_;  // entry points that may fail here, and not elsewhere
};

TEST_F(OpenClFaults, EachCallFailsInTurnWithLaunches) { fail_each_call_on_stub({}); }

TEST_F(OpenClFaults, EachCallFailsInTurnWithCommandBuffers) {
  fail_each_call_on_stub(
      {.devices = {{.extensions = "cl_khr_command_buffer", .command_buffer_version = CL_MAKE_VERSION(1, 0, 0)}}});
}

TEST_F(OpenClFaults, EachCallFailsInTurnWithRecordableQueues) {
  survived_too_ = {"clCreateCommandQueue", "clEnqueueNDRangeKernel"};  // the recordable one, and what is recorded
  fail_each_call_on_stub({.devices = {{.extensions = "cl_qcom_recordable_queues"}}});
}

// The device is lost in the middle: calls go well, and what they began fails.
TEST_F(OpenClFaults, ADeviceThatIsLostIsAnErrorWhereverItHappens) {
  long ends = 0;
  for (long lost = 0; lost < 200 && ends == 0; lost += lost < 20 ? 1 : 7) {
    SCOPED_TRACE("lost after " + std::to_string(lost) + " commands");
    opencl::set_library_for_tests(std::make_shared<FaultLibrary>(make_stub_library({.commands_until_lost = lost})));
    faults() = {};
    const std::optional<Error> error = error_of(checkpoint_);
    if (error.has_value()) {
      EXPECT_TRUE(error->code() == Code::device) << error->what();
    } else {
      ++ends;  // all commands went well
    }
    expect_intact_checkpoint(error.has_value());
    EXPECT_TRUE(stub_report().live.empty());
    if (HasFailure()) return;
  }
  EXPECT_EQ(ends, 1) << "no training came to its end";
}

// On a driver that really computes, in threads of its own: fewer calls, the same demands.
TEST_F(OpenClFaults, EntryPointsFailOnTheFirstRealDevice) {
  const opencl::LoadReport& loaded = opencl::load_library();
  if (loaded.library == nullptr || opencl::find_devices(*loaded.library).devices.empty())
    GTEST_SKIP() << "there is no OpenCL device";
  opencl::set_library_for_tests(std::make_shared<FaultLibrary>(loaded.library));
  static_cast<void>(count_calls());  // fills the cache
  const std::map<std::string, long> calls = count_calls();
  // A program of the cache is built anew; of a platform that fails, another's device takes the place.
  survived_too_ = {"clCreateKernel", "clGetDeviceIDs", "clGetPlatformInfo"};
  for (const auto& [function, count] : calls)
    for (const long call : std::set<long>{0, count / 2, count - 1}) {
      expect_clear_end({.function = function, .call = call, .error = likely_errors(function)[0]});
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace stoker
