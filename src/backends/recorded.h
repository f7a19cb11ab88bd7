// How a plan's steps are named to a Recorder.
#pragma once

#include <vector>

#include "base/recorder.h"
#include "plan/plan.h"

namespace stoker {

[[nodiscard]] std::vector<RecordedStep> recorded_steps(const Plan& plan);

}  // namespace stoker
