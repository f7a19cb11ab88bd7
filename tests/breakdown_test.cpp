// A step's time by class on timelines made by hand, and how device times come onto the host's clock.
#include "profile/breakdown.h"

#include <gtest/gtest.h>

#include <numeric>

#include "backends/opencl/timeline.h"

namespace stoker {
namespace {

using opencl::Command;
using opencl::record_commands;

Interval on(Track track, Activity activity, std::int64_t begin, std::int64_t end, std::int64_t bytes = 0) {
  return {.activity = activity, .track = track, .begin = begin, .end = end, .bytes = bytes};
}
Interval host(Activity activity, std::int64_t begin, std::int64_t end) { return on(Track::host, activity, begin, end); }
Interval device(Activity activity, std::int64_t begin, std::int64_t end) {
  return on(Track::device, activity, begin, end);
}

// Nanoseconds of a class.
double of(const Breakdown& breakdown, Activity activity) { return breakdown.of(activity) * 1e9; }

double sum(const Breakdown& b) { return std::accumulate(b.classes.begin(), b.classes.end(), b.rest); }

//           0    100   200   300   400   500   600   700   800   900  1000
// host      |--launch--|--host--------|-- wait ----------------|.....|host
// device         |-- kernel --|  |-copy-|  |- kernel -|
TEST(Breakdown, GivesEachInstantToTheFirstClassThatFits) {
  const std::vector<Interval> intervals{
      host(Activity::launch, 0, 200),     host(Activity::host, 200, 450),           host(Activity::wait, 450, 800),
      host(Activity::host, 900, 1000),    device(Activity::kernel, 100, 300),       device(Activity::copy, 350, 500),
      device(Activity::kernel, 550, 700), on(Track::queue, Activity::wait, 0, 1000)};  // a command that waits in the
                                                                                       // queue is nothing that happens
  const Breakdown b = break_down(intervals, 0, 1000);
  EXPECT_NEAR(of(b, Activity::kernel), 200 + 150, 1e-3);
  EXPECT_NEAR(of(b, Activity::copy), 150, 1e-3);
  EXPECT_NEAR(of(b, Activity::wait), 50 + 100, 1e-3) << "500..550 and 700..800";
  EXPECT_NEAR(of(b, Activity::launch), 100, 1e-3) << "0..100";
  EXPECT_NEAR(of(b, Activity::host), 50 + 100, 1e-3) << "300..350 and 900..1000";
  EXPECT_NEAR(b.rest * 1e9, 100, 1e-3) << "800..900";
  EXPECT_NEAR(sum(b), b.wall, 1e-15);
  EXPECT_NEAR(b.device_busy * 1e9, 500, 1e-3);
  EXPECT_NEAR(b.host_busy * 1e9, 450 + 100, 1e-3) << "waiting is no work";
  EXPECT_NEAR(b.both_busy * 1e9, 200 + 100, 1e-3) << "100..300 and 350..450";
}

TEST(Breakdown, CutsWhatSticksOutAndCountsOverlapsOnce) {
  const std::vector<Interval> intervals{device(Activity::kernel, -500, 100), device(Activity::kernel, 50, 150),
                                        device(Activity::kernel, 60, 80), device(Activity::copy, 900, 2000),
                                        host(Activity::host, 5000, 6000)};
  const Breakdown b = break_down(intervals, 0, 1000);
  EXPECT_NEAR(of(b, Activity::kernel), 150, 1e-3);
  EXPECT_NEAR(of(b, Activity::copy), 100, 1e-3);
  EXPECT_NEAR(b.rest * 1e9, 750, 1e-3);
  EXPECT_NEAR(sum(b), b.wall, 1e-15);
}

TEST(Breakdown, WithoutAQueueHostAndDeviceAreOneThread) {
  const std::vector<Interval> intervals{host(Activity::host, 0, 1000), device(Activity::kernel, 200, 900)};
  const Breakdown b = break_down(intervals, 0, 1000);
  EXPECT_NEAR(of(b, Activity::kernel), 700, 1e-3);
  EXPECT_NEAR(of(b, Activity::host), 300, 1e-3);
  EXPECT_EQ(b.both_busy, 0);
  EXPECT_NEAR(b.host_busy * 1e9, 300, 1e-3);
}

TEST(Breakdown, OfNothingIsAllRest) {
  const Breakdown b = break_down({}, 100, 300);
  EXPECT_NEAR(b.rest * 1e9, 200, 1e-3);
  EXPECT_EQ(b.rest, b.wall);
  EXPECT_EQ(break_down({}, 100, 100).wall, 0);
}

TEST(Breakdown, OfOneStepIsTheMean) {
  const std::vector<Interval> intervals{device(Activity::kernel, 0, 800), host(Activity::host, 0, 1000)};
  const Breakdown b = per_step(break_down(intervals, 0, 1000), 4);
  EXPECT_NEAR(b.wall * 1e9, 250, 1e-3);
  EXPECT_NEAR(of(b, Activity::kernel), 200, 1e-3);
  EXPECT_NEAR(sum(b), b.wall, 1e-15);
}

// --- Clocks.

constexpr std::uint64_t kDevice = 5'000'000;  // the device's clock is so far ahead

// A kernel as the device's clock has it; `at`: its queued, submitted, start and end on the host's.
Command command(std::int64_t called, std::int64_t returned, std::array<std::uint64_t, 4> at,
                Activity activity = Activity::kernel, bool blocking = false) {
  Command command{.activity = activity, .bytes = activity == Activity::copy ? 64 : 0, .blocking = blocking};
  command.called = called;
  command.returned = returned;
  for (std::size_t i = 0; i < at.size(); ++i) command.times[i] = at[i] + kDevice;
  return command;
}

std::vector<Interval> recorded(const std::vector<Command>& commands, Track track, std::int64_t gathered = 1'000'000) {
  Recorder recorder;
  record_commands(recorder, commands, gathered);
  std::vector<Interval> list;
  for (const Interval& interval : recorder.intervals())
    if (interval.track == track) list.push_back(interval);
  return list;
}

TEST(DeviceClock, IsFoundFromWhenCommandsWereQueued) {
  // QUEUED is stamped somewhere inside the call; each call narrows down where the clocks stand.
  const auto device =
      recorded({command(1000, 1400, {1390, 1400, 1500, 2500}), command(2000, 2400, {2010, 2100, 2500, 3500}),
                command(3000, 3020, {3010, 3020, 3500, 3600})},
               Track::device);
  ASSERT_EQ(device.size(), 3U);
  EXPECT_NEAR(static_cast<double>(device[0].begin), 1500, 10);
  EXPECT_NEAR(static_cast<double>(device[1].begin), 2500, 10);
  EXPECT_NEAR(static_cast<double>(device[2].end), 3600, 10);
  EXPECT_EQ(device[0].end - device[0].begin, 1000);
}

TEST(DeviceClock, MayDrift) {
  std::vector<Command> commands;
  for (int i = 0; i < 100; ++i) {
    const std::int64_t at = 100'000 * i;
    commands.push_back(command(at, at + 40, {}));
    const std::uint64_t drifted = kDevice + static_cast<std::uint64_t>(at + 20 + at / 1000);  // 0.1 %
    commands.back().times = {drifted, drifted, drifted + 50, drifted + 1050};
  }
  const auto device = recorded(commands, Track::device, 20'000'000);
  ASSERT_EQ(device.size(), 100U);
  for (int i = 0; i < 100; ++i) {
    const double start = 100'000.0 * i + 70;
    EXPECT_NEAR(static_cast<double>(device[static_cast<std::size_t>(i)].begin), start, 120) << i;
  }
}

TEST(DeviceClock, ABlockingCopyBehindAKernelIsAWaitUntilItStarts) {
  const std::vector<Command> commands{command(1000, 1020, {1010, 1020, 1050, 9000}),
                                      command(1100, 9500, {1110, 1120, 9010, 9300}, Activity::copy, true)};
  Recorder recorder;
  record_commands(recorder, commands, 10'000);
  const Breakdown b = break_down(recorder.intervals(), 1000, 9500);
  EXPECT_NEAR(of(b, Activity::kernel), 9000 - 1050, 1e-3);
  EXPECT_NEAR(of(b, Activity::copy), 290, 1e-3);
  EXPECT_NEAR(of(b, Activity::wait), 9500 - 9300 + 10, 11) << "after the kernel, before and after the copy";
  EXPECT_NEAR(b.blocking_copies * 1e9, 9500 - 1100, 1e-3) << "what a stopwatch around the call sees";
  const auto host_side = recorded(commands, Track::host);
  ASSERT_EQ(host_side.size(), 3U) << "launch; wait with the copy inside";
  EXPECT_EQ(host_side[0].activity, Activity::launch);
  EXPECT_EQ(host_side[1].activity, Activity::wait);
  EXPECT_EQ(host_side[2].activity, Activity::copy);
  EXPECT_GE(host_side[2].begin, host_side[1].begin);
  EXPECT_LE(host_side[2].end, host_side[1].end);
}

TEST(DeviceClock, TimesThatCannotBeAreNotBelieved) {
  const Command good = command(1000, 1020, {1010, 1020, 1050, 2000});
  Command zeros = command(3000, 3020, {});
  zeros.times = {};
  Command backwards = command(4000, 4020, {4010, 4020, 6000, 5000});
  // A copy that took longer than the call that waited for it.
  const Command impossible = command(10'000, 11'000, {10'010, 10'020, 10'050, 900'000}, Activity::copy, true);
  Recorder recorder;
  record_commands(recorder, std::vector<Command>{good, zeros, backwards, impossible}, 1'000'000);
  EXPECT_EQ(recorder.untimed(), 3);
  const Breakdown b = break_down(recorder.intervals(), 1000, 11'000);
  EXPECT_NEAR(of(b, Activity::kernel), 950, 1e-3);
  EXPECT_EQ(of(b, Activity::copy), 0) << "never booked as a copy";
  EXPECT_NEAR(of(b, Activity::wait), 1000, 1e-3);
}

TEST(DeviceClock, IsFoundWithoutQueueTimes) {
  Command first = command(1000, 1020, {0, 0, 1100, 2000});
  Command second = command(1500, 1520, {0, 0, 2000, 2600});
  first.times[0] = first.times[1] = second.times[0] = second.times[1] = 0;
  Command read = command(1600, 3000, {0, 0, 2600, 2900}, Activity::copy, true);
  read.times[0] = read.times[1] = 0;
  const auto device = recorded({first, second, read}, Track::device);
  ASSERT_EQ(device.size(), 3U);
  EXPECT_NEAR(static_cast<double>(device[0].begin), 1100, 100)
      << "not before the call, nor done after the read returned";
  EXPECT_EQ(device[1].begin, device[0].end);
}

}  // namespace
}  // namespace stoker
