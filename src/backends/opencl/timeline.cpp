#include "backends/opencl/timeline.h"

#include <algorithm>
#include <limits>

namespace stoker::opencl {
namespace {

// What may be added to the device's clock to get the host's: nothing happens before it was asked for, nor ends after
// somebody knew that it had.
struct Bounds {
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] bool is_empty() const { return low > high; }
  [[nodiscard]] std::int64_t middle() const { return low + (high - low) / 2; }
  void narrow(const Bounds& other) {
    low = std::max(low, other.low);
    high = std::min(high, other.high);
  }
};

struct Times {
  std::int64_t queued = 0;  // 0: not known
  std::int64_t start = 0;
  std::int64_t end = 0;
};

// Drivers are seen to give zeros, or an end before the start; then start is 0. A queue time that cannot be is dropped
// alone: it serves the clocks only.
Times checked(const DeviceTimes& raw) {
  const auto in_range = [](std::uint64_t time) {
    return time > 0 && time < static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  };
  if (!in_range(raw[2]) || !in_range(raw[3]) || raw[3] < raw[2]) return {};
  const bool has_queued = in_range(raw[0]) && raw[0] <= raw[2];
  return {.queued = has_queued ? static_cast<std::int64_t>(raw[0]) : 0,
          .start = static_cast<std::int64_t>(raw[2]),
          .end = static_cast<std::int64_t>(raw[3])};
}

// Empty: the times cannot be.
Bounds bounds_of(const Command& command, const Times& times, std::int64_t gathered) {
  constexpr Bounds kNone{.low = 1, .high = 0};
  constexpr std::int64_t kSlack = 20'000;  // clocks tick in steps of up to some microseconds
  if (times.start == 0) return kNone;
  Bounds bounds{.low = command.called - times.start,
                .high = (command.blocking ? command.returned : gathered) - times.end};
  if (times.queued > 0) bounds.narrow({.low = command.called - times.queued, .high = command.returned - times.queued});
  if (!bounds.is_empty()) return bounds;
  if (bounds.low - bounds.high > kSlack) return kNone;
  return {.low = bounds.middle(), .high = bounds.middle()};
}

// Follows the offset from command to command. Where one number suits all of them it is that one; else the clocks drift,
// and it moves only as far as each command demands.
class Clock {
 public:
  explicit Clock(std::span<const Bounds> all) {
    for (const Bounds& bounds : all) {
      if (bounds.is_empty()) continue;
      if (!any_) offset_ = bounds.middle();
      any_ = true;
      common_.narrow(bounds);
    }
    if (any_ && !common_.is_empty()) offset_ = common_.middle();
  }
  [[nodiscard]] std::int64_t offset(const Bounds& bounds) {
    offset_ = std::clamp(offset_, bounds.low, bounds.high);
    return offset_;
  }

 private:
  bool any_ = false;
  Bounds common_;
  std::int64_t offset_ = 0;
};

void record_call(Recorder& recorder, const Command& command) {
  recorder.add(Interval{.activity = command.blocking ? Activity::wait : Activity::launch,
                        .what = command.what,
                        .begin = command.called,
                        .end = command.returned,
                        .bytes = command.blocking ? command.bytes : 0});
}

void record_device(Recorder& recorder, const Command& command, const Times& times, std::int64_t offset) {
  Interval interval{.activity = command.activity,
                    .track = Track::device,
                    .what = command.what,
                    .executable = command.number.executable,
                    .launch = command.number.launch,
                    .begin = times.start + offset,
                    .end = times.end + offset,
                    .bytes = command.bytes};
  recorder.add(interval);
  if (command.blocking && command.activity == Activity::copy) {
    Interval moving = interval;
    moving.track = Track::host;
    moving.begin = std::clamp(moving.begin, command.called, command.returned);
    moving.end = std::clamp(moving.end, command.called, command.returned);
    recorder.add(moving);
  }
  interval.track = Track::queue;
  interval.activity = Activity::wait;
  interval.end = interval.begin;
  interval.begin = std::min(interval.end, times.queued > 0 ? times.queued + offset : command.called);
  recorder.add(interval);
}

}  // namespace

void record_commands(Recorder& recorder, std::span<const Command> commands, std::int64_t gathered) {
  std::vector<Times> times;
  std::vector<Bounds> bounds;
  for (const Command& command : commands) {
    times.push_back(checked(command.times));
    bounds.push_back(bounds_of(command, times.back(), gathered));
  }
  Clock clock(bounds);
  for (std::size_t i = 0; i < commands.size(); ++i) {
    record_call(recorder, commands[i]);
    if (bounds[i].is_empty()) {
      recorder.add_untimed();
    } else {
      record_device(recorder, commands[i], times[i], clock.offset(bounds[i]));
    }
  }
}

void Timeline::gather() {
  for (std::size_t i = 0; i < events_.size(); ++i) commands_[i].times = api_.times_of(events_[i].get());
  record_commands(recorder_, commands_, Recorder::now());
  events_.clear();
  commands_.clear();
}

}  // namespace stoker::opencl
