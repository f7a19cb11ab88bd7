// How memory-bound work is cut into tasks: by its size alone, so that results do not depend on the threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/round.h"

namespace stoker::cpu {

// Units [i * size, min((i + 1) * size, total)) are task i.
struct Cut {
  std::int64_t total = 0;
  std::int64_t size = 1;
  std::int64_t tasks = 0;

  [[nodiscard]] std::int64_t begin(std::int64_t task) const { return task * size; }
  [[nodiscard]] std::int64_t count(std::int64_t task) const { return std::min(size, total - task * size); }
};

// Waking the workers costs some microseconds: less work than this stays with the caller.
inline constexpr double kForkNanoseconds = 20e3;
inline constexpr double kTaskNanoseconds = 10e3;
inline constexpr std::int64_t kMostTasks = 32;

// Cuts `total` units of about `nanoseconds` each; a task gets a multiple of `grain` units.
[[nodiscard]] inline Cut cut_work(std::int64_t total, double nanoseconds, std::int64_t grain = 1) {
  const double all = static_cast<double>(total) * nanoseconds;
  std::int64_t tasks = 1;
  if (all > kForkNanoseconds)
    tasks = std::clamp(static_cast<std::int64_t>(all / kTaskNanoseconds), std::int64_t{1}, kMostTasks);
  const std::int64_t size = std::max<std::int64_t>(1, round_up(ceil_div(total, tasks), grain));
  return {.total = total, .size = size, .tasks = ceil_div(total, size)};
}

}  // namespace stoker::cpu
