// Breakdown: where the wall time of some steps went. Each instant has one class: a kernel runs, else a copy is under
// way, else the host waits, else it launches, else it does other work; what nobody has told of is the rest.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/recorder.h"

namespace stoker {

// What the class is called in tables.
[[nodiscard]] std::string_view to_string(Activity activity);

// Seconds. The classes and the rest sum to the wall time.
struct Breakdown {
  double wall = 0;
  std::array<double, kActivities> classes{};  // by Activity
  double rest = 0;
  // Beside the classes, not summed with them: how much goes on at once.
  double device_busy = 0;  // a kernel or a copy runs on the device
  double host_busy = 0;    // the host does something but wait
  double both_busy = 0;
  // Blocking copies as a stopwatch around the call sees them: the wait for earlier kernels, and the copy.
  double blocking_copies = 0;

  [[nodiscard]] double of(Activity activity) const { return classes[static_cast<std::size_t>(activity)]; }
};

// Of the time from `begin` to `end` (nanoseconds of the steady clock); what sticks out is cut off.
[[nodiscard]] Breakdown break_down(std::span<const Interval> intervals, std::int64_t begin, std::int64_t end);

// The same for one step of `steps`.
[[nodiscard]] Breakdown per_step(Breakdown total, int steps);

}  // namespace stoker
