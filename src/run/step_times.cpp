#include "run/step_times.h"

#include <algorithm>
#include <chrono>

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFewestSteps = 5;
constexpr int kMostSteps = 1000;
constexpr int kWarmupSteps = 2;
constexpr int kAheadSteps = 3;  // more than are in flight at once

// From the moments at which steps were done. A device may do all that is under way in one go (Intel's runtime for CPUs
// works while somebody waits), so a step's time is the mean of as many neighbours as can be under way.
std::vector<double> between(const std::vector<Clock::time_point>& moments, std::size_t under_way) {
  const std::size_t window = std::min(under_way, moments.size() - 1);
  std::vector<double> times;
  for (std::size_t i = window; i < moments.size(); ++i) {
    const std::chrono::duration<double, std::milli> together = moments[i] - moments[i - window];
    times.push_back(together.count() / static_cast<double>(window));
  }
  std::ranges::sort(times);
  return times;
}

// Calls `step` until it has been called often enough, and gives the moments before the first and after each.
std::vector<Clock::time_point> repeat(const std::function<void()>& step, const StepTiming& timing) {
  std::vector<Clock::time_point> moments{Clock::now()};
  const auto done = [&] {
    const int count = static_cast<int>(moments.size()) - 1;
    if (timing.steps > 0) return count >= timing.steps;
    const std::chrono::duration<double> elapsed = moments.back() - moments.front();
    return count >= kMostSteps || (count >= kFewestSteps && elapsed.count() > timing.seconds);
  };
  while (!done()) {
    step();
    moments.push_back(Clock::now());
  }
  return moments;
}

}  // namespace

// Steps are submitted ahead. A step is submitted when there is room, that is, when one before it is done: from there to
// the next such moment is a step's time, completion to completion.
StepTimes time_steps(Session& session, const BatchView& batch, const StepTiming& timing) {
  for (int i = 0; i < kWarmupSteps; ++i) session.train(batch);
  for (int i = 0; i < kAheadSteps; ++i) session.submit(batch);
  const Counters before = session.counters();
  const std::vector<Clock::time_point> moments = repeat(
      [&] {
        session.submit(batch);
        while (session.collect(false)) {
        }
      },
      timing);
  StepTimes times{.steps = static_cast<int>(moments.size()) - 1,
                  .milliseconds = between(moments, static_cast<std::size_t>(session.batch_slots())),
                  .counted = session.counters() - before};
  session.settle();
  return times;
}

StepTimes time_steps(const std::function<void()>& step, const StepTiming& timing) {
  for (int i = 0; i < kWarmupSteps; ++i) step();
  const std::vector<Clock::time_point> moments = repeat(step, timing);
  return {.steps = static_cast<int>(moments.size()) - 1, .milliseconds = between(moments, 1)};
}

}  // namespace stoker
