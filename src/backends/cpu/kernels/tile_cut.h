// How memory-bound work is cut into tasks: by its size alone, so that results do not depend on the threads.
#pragma once

#include <algorithm>
#include <cstdint>

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
  std::int64_t size = (total + tasks - 1) / tasks;
  size = std::max<std::int64_t>(1, (size + grain - 1) / grain * grain);
  return {.total = total, .size = size, .tasks = (total + size - 1) / size};
}

[[nodiscard]] inline std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace stoker::cpu
