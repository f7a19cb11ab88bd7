// How long steps take, completion to completion, and what they move: for bench and the study.
#pragma once

#include <functional>
#include <vector>

#include "base/counters.h"
#include "run/session.h"

namespace stoker {

struct StepTimes {
  int steps = 0;
  std::vector<double> milliseconds;  // a step, sorted
  Counters counted;                  // in all of them

  [[nodiscard]] double median() const { return milliseconds[milliseconds.size() / 2]; }
};

struct StepTiming {
  int steps = 0;  // 0: as many as `seconds` take, at least a few
  double seconds = 2.0;
};

// Of training steps that are submitted ahead, as a training does.
[[nodiscard]] StepTimes time_steps(Session& session, const BatchView& batch, const StepTiming& timing);
// Of a step that waits for itself.
[[nodiscard]] StepTimes time_steps(const std::function<void()>& step, const StepTiming& timing);

}  // namespace stoker
