// Profile: what some steps did and how long it took, made from what a Recorder was told. It knows nothing of models:
// a step is whatever the caller does (the study profiles other kinds of steps as well).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/recorder.h"
#include "profile/breakdown.h"

namespace stoker {

// An op (a step of a plan), or a kernel with all its launches of one phase.
struct WorkProfile {
  std::string name;
  std::string phase;    // forward, backward, update; "several" for a kernel that works for more than one of them
  double calls = 0;     // a step
  double seconds = 0;   // on the device, a step
  double flops = 0;     // a step
  double bytes = 0;     // a step, what must be moved at least
  double share = 0;     // of the time on the device
  double launches = 0;  // of kernels, a step; one that works for several ops is shared out among them

  [[nodiscard]] double flops_per_second() const { return seconds > 0 ? flops / seconds : 0; }
  [[nodiscard]] double bytes_per_second() const { return seconds > 0 ? bytes / seconds : 0; }
  [[nodiscard]] double intensity() const { return bytes > 0 ? flops / bytes : 0; }  // flops a byte
};

// Of one kind of transfer.
struct CopyProfile {
  std::string name;
  double calls = 0;    // a step
  double bytes = 0;    // a step
  double seconds = 0;  // of the transfer itself, a step
};

struct Profile {
  int steps = 0;
  Breakdown breakdown;               // of one step, the mean
  std::vector<WorkProfile> ops;      // in the order of the plan
  std::vector<WorkProfile> kernels;  // the longest first
  std::vector<CopyProfile> copies;
  Counters counters;       // of all steps
  std::int64_t begin = 0;  // the wall time that was looked at, for the trace
  std::int64_t end = 0;
  std::int64_t untimed = 0;  // commands for which the driver gave no times

  [[nodiscard]] double per_step(std::int64_t count) const { return static_cast<double>(count) / steps; }
};

// What is profiled.
struct ProfiledSteps {
  int steps = 10;
  std::function<void()> step;
  std::function<void()> finish;        // waits for what was submitted; inside the wall time. May be empty.
  std::function<Counters()> counters;  // may be empty
  // After each step; false: stop here. Its time is in the rest: keep it short. May be empty.
  std::function<bool(int done)> progress;
};

// Runs the steps with the recorder on and evaluates what it was told. The recorder keeps the intervals, for a trace.
// Whatever must be warm is so already: nothing is run before.
[[nodiscard]] Profile profile_steps(Recorder& recorder, const ProfiledSteps& steps);
[[nodiscard]] Profile profile_steps(Recorder& recorder, const std::function<void()>& step, int steps);

}  // namespace stoker
