// Profiles of real steps on every device: the classes sum to the wall time, nearly all of it is measured, counts are
// those of a hand count, and the memory and the roofline say what the plan says.
#include "profile/profile.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "backends/opencl/devices.h"
#include "backends/opencl/timeline.h"
#include "devices.h"
#include "profile/memory_profile.h"
#include "profile/model_profile.h"
#include "profile/roofline.h"
#include "run/random_batch.h"
#include "run/session.h"
#include "test_models.h"

namespace stoker {
namespace {

using testing::device_ids;
using testing::opencl_ids;

// A session and the recorder that it tells.
struct Profiled {
  Profiled(nn::Model model, const std::string& device, std::int64_t count)
      : session(std::move(model), {.optimizer = {.momentum = 0.9},
                                   .schedule = {.rate = 1e-3},
                                   .device = device,
                                   .self_test = false,
                                   .recorder = &recorder}),
        batch(session.model(), session.options().target, count) {
    for (int i = 0; i < 3; ++i) static_cast<void>(session.train(batch.view()));
  }
  [[nodiscard]] Profile profile(int steps) {
    return profile_steps(recorder, {.steps = steps,
                                    .step =
                                        [&] {
                                          session.submit(batch.view());
                                          while (session.collect(false)) {
                                          }
                                        },
                                    .finish = [&] { session.settle(); },
                                    .counters = [&] { return session.counters(); },
                                    .progress = {}});
  }

  Recorder recorder;
  Session session;
  RandomBatch batch;
};

class Profiles : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Devices, Profiles, ::testing::ValuesIn(device_ids()),
                         [](const auto& test) { return testing::as_test_name(test.param); });

TEST_P(Profiles, ClassesSumToTheWallTimeAndTheRestIsSmall) {
  Profiled run(nn::find_model("lenet5"), GetParam(), 32);
  const Profile profile = run.profile(6);
  const Breakdown& b = profile.breakdown;
  EXPECT_EQ(profile.untimed, 0);
  EXPECT_NEAR(std::accumulate(b.classes.begin(), b.classes.end(), b.rest), b.wall, 1e-9 * b.wall + 1e-12);
  EXPECT_GT(b.of(Activity::kernel), 0);
  EXPECT_LE(b.device_busy, b.wall);
  EXPECT_LE(b.both_busy, std::min(b.device_busy, b.host_busy) + 1e-12);
  // What may be left over by design: a step's beginning and end, outside of Session's calls. If the system takes the
  // thread away there, that is no fault of the profile's, so the best of some profiles counts.
  double rest = b.rest / b.wall;
  for (int i = 0; i < 5 && rest > 0.02; ++i) {
    const Breakdown again = run.profile(6).breakdown;
    rest = std::min(rest, again.rest / again.wall);
  }
  EXPECT_LE(rest, 0.02);
}

TEST_P(Profiles, OpsHaveThePlansFlopsAndBytes) {
  Profiled run(nn::find_model("lenet5"), GetParam(), 4);
  const Profile profile = run.profile(3);
  const Plan& plan = run.session.train_plan(4);
  double flops = 0;
  double bytes = 0;
  for (const WorkProfile& op : profile.ops) {
    flops += op.flops;
    bytes += op.bytes;
    EXPECT_EQ(op.calls, 1) << op.name << ": once a step";
  }
  double plan_bytes = 0;
  for (const Step& step : plan.steps) plan_bytes += step.cost.bytes;
  EXPECT_EQ(profile.ops.size(), plan.steps.size());
  EXPECT_NEAR(flops, run.session.flops_per_step(4), 1e-9 * flops);
  EXPECT_NEAR(bytes, plan_bytes, 1e-9 * bytes);
}

TEST_P(Profiles, OpsAndKernelsShareOutTheSameTime) {
  Profiled run(test::residual_net(), GetParam(), 4);
  const Profile profile = run.profile(3);
  const auto sum = [](const std::vector<WorkProfile>& list, double WorkProfile::*what) {
    return std::accumulate(list.begin(), list.end(), 0.0, [=](double s, const WorkProfile& w) { return s + w.*what; });
  };
  const double seconds = sum(profile.ops, &WorkProfile::seconds);
  EXPECT_NEAR(sum(profile.kernels, &WorkProfile::seconds), seconds, 1e-9 * seconds);
  EXPECT_NEAR(sum(profile.ops, &WorkProfile::share), 1, 1e-9);
  EXPECT_NEAR(sum(profile.kernels, &WorkProfile::share), 1, 1e-9);
  EXPECT_NEAR(sum(profile.ops, &WorkProfile::launches), sum(profile.kernels, &WorkProfile::launches), 1e-9);
}

TEST_P(Profiles, NothingIsRecordedWhileTheRecorderIsOff) {
  Profiled run(test::small_conv_net(), GetParam(), 4);
  run.recorder.gather();
  EXPECT_TRUE(run.recorder.intervals().empty());
  static_cast<void>(run.session.train(run.batch.view()));
  run.recorder.gather();
  EXPECT_TRUE(run.recorder.intervals().empty());
}

TEST_P(Profiles, TrainingUnderARecorderGivesTheSameBits) {
  const auto losses = [&](Recorder* recorder) {
    Session session(test::residual_net(), {.optimizer = {.momentum = 0.9},
                                           .schedule = {.rate = 1e-2},
                                           .device = GetParam(),
                                           .self_test = false,
                                           .recorder = recorder});
    const RandomBatch batch(session.model(), session.options().target, 8);
    std::vector<double> list;
    for (int i = 0; i < 5; ++i) list.push_back(session.train(batch.view()).loss);
    return list;
  };
  Recorder recorder;
  recorder.start();
  EXPECT_EQ(losses(&recorder), losses(nullptr));
  EXPECT_FALSE(recorder.intervals().empty());
}

TEST_P(Profiles, MemoryOverTimeHasThePlansPeak) {
  const std::unique_ptr<Backend> backend = make_backend(GetParam(), {.self_test = false});
  Session session(nn::find_model("lenet5"), {.device = GetParam(), .self_test = false});
  const Plan& plan = session.train_plan(16);
  const MemoryProfile memory = profile_memory(plan);
  ASSERT_EQ(memory.moments.size(), plan.steps.size());
  std::int64_t extent = 0;
  std::int64_t alive = 0;
  for (const MemoryProfile::Moment& moment : memory.moments) {
    EXPECT_LE(moment.alive, moment.extent);
    extent = std::max(extent, moment.extent);
    alive = std::max(alive, moment.alive);
  }
  const std::int64_t alignment = backend->target().alignment();
  EXPECT_EQ((extent + alignment - 1) / alignment * alignment, plan.arena_bytes);
  EXPECT_EQ(memory.arena_bytes, plan.arena_bytes);
  std::int64_t held = 0;
  for (const MemoryProfile::Holder& holder : memory.holders) {
    held += holder.bytes;
    EXPECT_LE(holder.first, memory.peak_step) << holder.name;
    EXPECT_GE(holder.last, memory.peak_step) << holder.name;
  }
  EXPECT_EQ(held, alive);
}

TEST(ProfileOfAModel, IsKeptWhereItIsStopped) {
  bool stopped = false;
  ProfileOptions options;
  options.device = "cpu";
  options.threads = 1;
  options.batch = 2;
  options.steps = 100;
  options.on_step = [&](int done, int) { return !(stopped = done == 2); };
  options.interrupt = [&] {
    if (stopped) throw Error(Code::cancelled, "stopped");
  };
  Recorder recorder;
  const ModelProfile profile = profile_model(nn::find_model("mlp"), options, recorder);
  EXPECT_EQ(profile.profile.steps, 2);
  EXPECT_FALSE(profile.ceilings.has_value()) << "measuring them takes seconds";
}

// --- OpenCL alone.

#define REQUIRE_OPENCL() \
  if (opencl_ids().empty()) GTEST_SKIP() << "there is no OpenCL device"

TEST(OpenClProfile, CountersAreThoseOfAHandCount) {
  REQUIRE_OPENCL();
  constexpr int kSteps = 4;
  constexpr std::int64_t kBatch = 8;
  for (const std::string& device : opencl_ids()) {
    SCOPED_TRACE(device);
    Profiled run(test::small_conv_net(), device, kBatch);
    const Profile profile = run.profile(kSteps);
    const std::int64_t item = std::int64_t{9} * 7 * 2 * 4 + 4;  // pixels, and the label
    EXPECT_EQ(profile.counters.mapped_in, kSteps * kBatch * item);
    EXPECT_EQ(profile.counters.read, kSteps * 3 * 4) << "loss, correct, bad";
    EXPECT_EQ(profile.counters.written + profile.counters.mapped_out + profile.counters.copied, 0);
    EXPECT_EQ(profile.counters.objects_created, 0);
    const auto launches = static_cast<std::int64_t>(run.recorder.executables().back().launches.size());
    EXPECT_EQ(profile.counters.launches, kSteps * launches);
    std::map<std::string, CopyProfile> copies;
    for (const CopyProfile& copy : profile.copies) copies[copy.name] = copy;
    EXPECT_EQ(copies["clEnqueueMapBuffer"].calls, 2) << "items and targets";
    EXPECT_EQ(copies["clEnqueueMapBuffer"].bytes, kBatch * item);
    EXPECT_EQ(copies["clEnqueueReadBuffer"].bytes, 3 * 4);
  }
}

// A queue with profiling, a kernel that takes long, and a buffer to read.
class SlowKernel {
 public:
  SlowKernel(const opencl::OpenedDevice& device, std::shared_ptr<const opencl::Library> library, Recorder& recorder)
      : api_(std::move(library)),
        context_(api_.create_context(device.id)),
        queue_(api_.create_queue(context_.get(), device.id, true)),
        program_(api_.build_from_source(context_.get(), device.id, kSource, "-cl-std=CL1.2")),
        kernel_(api_.create_kernel(program_.get(), "slow")),
        buffer_(api_.create_buffer(context_.get(), CL_MEM_READ_WRITE, kBytes)) {
    api_.fill_zero(queue_.get(), buffer_.get(), kBytes);
    const cl_mem buffer = buffer_.get();
    api_.set_arg(kernel_.get(), 0, sizeof(cl_mem), &buffer);
    launch(1);  // some devices compile a kernel when it first runs
    api_.finish(queue_.get());
    api_.record_to(recorder);
  }
  void launch(cl_int rounds) {
    api_.set_arg(kernel_.get(), 1, sizeof(rounds), &rounds);
    api_.enqueue_kernel(queue_.get(), kernel_.get(), {1, 1, 1}, {1, 1, 1});
    api_.flush(queue_.get());
  }
  void read() {
    std::vector<std::byte> bytes(kBytes);
    api_.read(queue_.get(), buffer_.get(), 0, bytes, true);
  }

 private:
  static constexpr std::int64_t kBytes = 4096;
  // Each round needs the one before it.
  static constexpr const char* kSource =
      "kernel void slow(global uint* x, int rounds) {\n"
      "  uint v = x[0];\n"
      "  for (int i = 0; i < rounds; ++i) v = (v ^ (v >> 7)) * 1664525u + 1013904223u;\n"
      "  x[0] = v;\n}\n";

  opencl::Api api_;
  opencl::Handle<cl_context> context_;
  opencl::Handle<cl_command_queue> queue_;
  opencl::Handle<cl_program> program_;
  opencl::Handle<cl_kernel> kernel_;
  opencl::Handle<cl_mem> buffer_;
};

TEST(OpenClProfile, WaitingForASlowKernelIsNotBookedAsACopy) {
  REQUIRE_OPENCL();
  const opencl::LoadReport& loaded = opencl::load_library();
  for (const opencl::OpenedDevice& device : opencl::find_devices(*loaded.library).devices) {
    SCOPED_TRACE(device.info.name);
    Recorder recorder;
    SlowKernel slow(device, loaded.library, recorder);
    const Profile profile = profile_steps(
        recorder,
        [&] {
          slow.launch(50'000'000);
          slow.read();
        },
        1);
    ASSERT_EQ(profile.untimed, 0);
    std::map<std::pair<Track, Activity>, Interval> found;
    for (const Interval& interval : recorder.intervals()) {
      if (interval.track == Track::host && interval.activity == Activity::wait && interval.bytes == 0) continue;
      found[{interval.track, interval.activity}] = interval;
    }
    const Interval kernel = found.at({Track::device, Activity::kernel});
    const Interval copy = found.at({Track::device, Activity::copy});
    const Interval call = found.at({Track::host, Activity::wait});
    EXPECT_GE(copy.begin, kernel.end) << "the copy begins when the kernel is done";
    EXPECT_LT(call.begin, kernel.end) << "the host was waiting by then";
    EXPECT_GE(copy.begin, call.begin);
    EXPECT_LE(copy.end, call.end);
    const Breakdown& b = profile.breakdown;
    EXPECT_NEAR(b.of(Activity::copy) * 1e9, static_cast<double>(copy.end - copy.begin), 1);
    EXPECT_NEAR(b.blocking_copies * 1e9, static_cast<double>(call.end - call.begin), 1);
    EXPECT_GE(b.blocking_copies - b.of(Activity::copy), static_cast<double>(kernel.end - call.begin) * 1e-9 - 1e-9)
        << "a stopwatch around the call would have taken the kernel for a copy";
    EXPECT_GE(b.of(Activity::kernel) * 1e9, static_cast<double>(kernel.end - kernel.begin) - 1);
  }
}

// --- Roofline.

constexpr Ceilings kCeilings{.flops = 100e9, .bandwidth = 10e9, .launch_seconds = 10e-6};

WorkProfile work(double seconds, double flops, double bytes) {
  return {
      .name = "op", .phase = "forward", .calls = 1, .seconds = seconds, .flops = flops, .bytes = bytes, .launches = 1};
}

TEST(Roofline, SaysWhichCeilingHoldsAnOpAndHowFarBelowItIs) {
  const RooflinePoint compute = under_roofline(work(4e-3, 200e6, 1e6), kCeilings);
  EXPECT_EQ(compute.held_by, Ceiling::compute);
  EXPECT_NEAR(compute.share(), 0.5, 1e-12);
  EXPECT_NE(compute.words.find("50 % of 100.0 GFLOP/s"), std::string::npos) << compute.words;

  const RooflinePoint memory = under_roofline(work(4e-3, 1e6, 10e6), kCeilings);
  EXPECT_EQ(memory.held_by, Ceiling::memory);
  EXPECT_NEAR(memory.share(), 0.25, 1e-12);
  EXPECT_NE(memory.words.find("25 % of 10.0 GB/s"), std::string::npos) << memory.words;

  const RooflinePoint cached = under_roofline(work(0.5e-3, 1e6, 10e6), kCeilings);
  EXPECT_NE(cached.words.find("caches: 2.0 times"), std::string::npos) << cached.words;

  const RooflinePoint tiny = under_roofline(work(20e-6, 100, 100), kCeilings);
  EXPECT_EQ(tiny.held_by, Ceiling::launch);
  EXPECT_NE(tiny.words.find("10.0 us of its 20.0 us"), std::string::npos) << tiny.words;

  const RooflinePoint bad = under_roofline(work(1, 200e6, 1e6), kCeilings);
  EXPECT_NE(bad.words.find("the kernel itself"), std::string::npos) << bad.words;
}

TEST(Roofline, BendsWhereTheCeilingsMeet) {
  EXPECT_EQ(attainable(kCeilings, 1), 10e9);
  EXPECT_EQ(attainable(kCeilings, 10), 100e9);
  EXPECT_EQ(attainable(kCeilings, 1000), 100e9);
}

TEST(Roofline, NamesTheOpWithMostToGain) {
  WorkProfile slow = work(9e-3, 200e6, 1e6);
  slow.name = "conv2d slow";
  const std::vector<std::string> words = roofline_words({work(4e-3, 200e6, 1e6), slow, work(2e-6, 1, 1)}, kCeilings);
  ASSERT_EQ(words.size(), 2U) << "compute, and what to do; the tiny one is not worth a line";
  EXPECT_NE(words.back().find("conv2d slow"), std::string::npos);
  EXPECT_NE(words.back().find("7.000 ms are above"), std::string::npos) << words.back();
  EXPECT_TRUE(roofline_words({}, kCeilings).empty());
}

}  // namespace
}  // namespace stoker
