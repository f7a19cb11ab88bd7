// Recorded launches: the sequence of calls on a stub driver, and the same bits as launch by launch on real devices.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "backends/opencl/devices.h"
#include "backends/opencl/replay.h"
#include "devices.h"
#include "fault_library.h"
#include "stub_driver.h"

namespace stoker::opencl {
namespace {

using stoker::testing::FaultLibrary;
using stoker::testing::faults;
using stoker::testing::make_stub_library;
using stoker::testing::stub_report;
using stoker::testing::StubConfig;
using stoker::testing::StubDevice;

constexpr const char* kSource =
    "kernel void a(global float* x, int at) { x[at] = x[at] * 0.75f + (float)at; }\n"
    "kernel void b(global float* x, int at) { x[at] += 0.3f * x[at - 1]; }\n";

// Eight launches that each need the one before: x[i] from x[i - 1].
struct Launches {
  Launches(const std::shared_ptr<const Library>& library, OpenedDevice opened)
      : api(library),
        device(std::move(opened)),
        context(api.create_context(device.id)),
        queue(api.create_queue(context.get(), device.id, false)),
        buffer(api.create_buffer(context.get(), CL_MEM_READ_WRITE, 64)),
        program(api.build_from_source(context.get(), device.id, kSource, "-cl-std=CL1.2")) {
    for (cl_int i = 1; i <= 4; ++i)
      for (const char* name : {"a", "b"}) {
        Handle<cl_kernel>& kernel = kernels.emplace_back(api.create_kernel(program.get(), name));
        cl_mem memory = buffer.get();
        api.set_arg(kernel.get(), 0, sizeof(memory), static_cast<const void*>(&memory));
        api.set_arg(kernel.get(), 1, sizeof(i), &i);
        launches.push_back({.kernel = kernel.get(), .seconds = 0.1});
      }
  }
  [[nodiscard]] std::unique_ptr<Recording> recorded(bool replay = true) {
    return record(api, context.get(), device.id, queue.get(), device.info, launches, replay);
  }
  // After `steps` steps from zeros.
  [[nodiscard]] std::vector<float> result(bool replay, int steps) {
    const auto recording = recorded(replay);
    api.fill_zero(queue.get(), buffer.get(), 64);
    for (int i = 0; i < steps; ++i) recording->enqueue();
    std::vector<float> host(16);
    api.read(queue.get(), buffer.get(), 0, std::as_writable_bytes(std::span(host)), true);
    return host;
  }

  Api api;
  OpenedDevice device;
  Handle<cl_context> context;
  Handle<cl_command_queue> queue;
  Handle<cl_mem> buffer;
  Handle<cl_program> program;
  std::vector<Handle<cl_kernel>> kernels;
  std::vector<PreparedLaunch> launches;
};

StubDevice khr_device() {
  return {.extensions = "cl_khr_command_buffer", .command_buffer_version = CL_MAKE_VERSION(0, 9, 0)};
}
StubDevice qcom_device() { return {.extensions = "cl_qcom_recordable_queues"}; }

Launches on_stub(StubConfig config) {
  const auto library = make_stub_library(std::move(config));
  return {library, find_devices(*library).devices.at(0)};
}

// The adreno quirk caps a submission at 0.25 s: launches of 0.1 s go by two.
const std::vector<std::string> kRecordOne = {"new recording", "record a", "record b", "end recording"};

TEST(OpenClReplay, SubmissionsAreCutByEstimatedTime) {
  const auto cut = [](std::vector<double> seconds, double most) {
    std::vector<PreparedLaunch> launches(seconds.size());
    for (std::size_t i = 0; i < seconds.size(); ++i) launches[i].seconds = seconds[i];
    return cut_submissions(launches, most);
  };
  using Counts = std::vector<std::size_t>;
  EXPECT_EQ(cut({}, 1.0), Counts{});
  EXPECT_EQ(cut({1, 1, 1}, 0.0), Counts{3});
  EXPECT_EQ(cut({1, 1, 1}, 2.0), (Counts{2, 1}));
  EXPECT_EQ(cut({9, 1, 1, 9, 1}, 2.0), (Counts{1, 2, 1, 1}));
}

TEST(OpenClReplay, RecordsOnceAndReplaysWithoutMakingObjects) {
  for (const StubDevice& device : {khr_device(), qcom_device()}) {
    {
      Launches cl = on_stub({.devices = {device}});
      const auto recording = cl.recorded();
      EXPECT_STRNE(recording->kind(), "launches");
      std::vector<std::string> expected;
      for (int i = 0; i < 4; ++i) expected.insert(expected.end(), kRecordOne.begin(), kRecordOne.end());
      EXPECT_EQ(stub_report().log, expected) << recording->kind();
      EXPECT_EQ(stub_report().launches, 0);

      const Counters before = cl.api.counters();
      recording->enqueue();
      cl.api.finish(cl.queue.get());
      recording->enqueue();
      const Counters cost = cl.api.counters() - before;
      EXPECT_EQ(stub_report().launches, 16);
      EXPECT_EQ(cost.launches, 16);
      EXPECT_EQ(cost.replays, 8);
      EXPECT_EQ(cost.objects_created, 0);
      EXPECT_EQ(cost.back_pressure, 0) << "nothing was pending";
      expected.insert(expected.end(), 8, "replay 2");
      EXPECT_EQ(stub_report().log, expected);
    }
    EXPECT_TRUE(stub_report().live.empty());
    EXPECT_EQ(stub_report().misuse, std::vector<std::string>{});
  }
}

TEST(OpenClReplay, ARecordingThatIsPendingIsWaitedForFirst) {
  for (const StubDevice& device : {khr_device(), qcom_device()}) {
    Launches cl = on_stub({.devices = {device}, .polls_until_done = 1000});
    const auto recording = cl.recorded();
    for (int i = 0; i < 3; ++i) recording->enqueue();
    EXPECT_EQ(stub_report().misuse, std::vector<std::string>{});
    EXPECT_GE(cl.api.counters().back_pressure, 2);
    EXPECT_EQ(cl.api.counters().blocking_calls, 0);
  }
}

TEST(OpenClReplay, ARecordableQueueMayNeedTheNewerCall) {
  Launches cl = on_stub({.devices = {qcom_device()}, .recordable_by_property = true});
  EXPECT_STREQ(cl.recorded()->kind(), "recordable queue");
}

TEST(OpenClReplay, ADriverThatRefusesToRecordGetsLaunches) {
  for (const char* function : {"clCreateCommandBufferKHR", "clCommandNDRangeKernelKHR", "clFinalizeCommandBufferKHR"}) {
    {
      const auto library = std::make_shared<FaultLibrary>(make_stub_library({.devices = {khr_device()}}));
      Launches cl(library, find_devices(*library).devices.at(0));
      faults() = {.fault = {.function = function, .error = CL_INVALID_OPERATION, .for_good = true}};
      EXPECT_STREQ(cl.recorded()->kind(), "launches") << function;
      faults() = {};
    }
    EXPECT_TRUE(stub_report().live.empty()) << function;
  }
}

TEST(OpenClReplay, QuirksAndTheCallerCanTurnItOff) {
  Launches cl = on_stub({.devices = {khr_device()}});
  EXPECT_STREQ(cl.recorded(false)->kind(), "launches");
  cl.device.info.quirks.no_command_buffers = true;
  EXPECT_STREQ(cl.recorded()->kind(), "launches");
}

TEST(OpenClReplay, LaunchesAreFlushedAsTheDeviceLikesIt) {
  Launches cl = on_stub({});
  cl.device.info.quirks.launches_a_flush = 3;
  cl.device.info.quirks.submission_seconds = 0.55;  // five launches, then three
  const auto recording = cl.recorded();
  const Counters before = cl.api.counters();
  recording->enqueue();
  EXPECT_EQ((cl.api.counters() - before).flushes, 3);  // after launches 3, 5 and 8
  EXPECT_EQ((cl.api.counters() - before).launches, 8);
}

class OpenClReplayOn : public ::testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OpenClReplayOn);
INSTANTIATE_TEST_SUITE_P(Devices, OpenClReplayOn, ::testing::ValuesIn(stoker::testing::opencl_ids()),
                         [](const auto& test) { return stoker::testing::as_test_name(test.param); });

TEST_P(OpenClReplayOn, GivesTheSameBitsAsLaunches) {
  Launches cl(load_library().library, open_device(load_library(), GetParam()));
  cl.device.info.quirks = {};  // whether it is worth while is another question
  if (std::string(cl.recorded()->kind()) == "launches") GTEST_SKIP() << cl.device.info.name << " records nothing";
  for (const double seconds : {0.0, 0.35}) {
    cl.device.info.quirks.submission_seconds = seconds;
    const std::vector<float> plain = cl.result(false, 5);
    const std::vector<float> replayed = cl.result(true, 5);
    EXPECT_NE(plain[4], 0.0F);
    for (std::size_t i = 0; i < plain.size(); ++i)
      EXPECT_EQ(std::bit_cast<std::uint32_t>(plain[i]), std::bit_cast<std::uint32_t>(replayed[i])) << i;
  }
}

}  // namespace
}  // namespace stoker::opencl
