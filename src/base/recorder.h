// Recorder: what happened in a step and when, as the backend tells it while profiling. Without one (a null pointer,
// which is what training has) nothing is measured and nothing is kept.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stoker {

// In the order in which an instant is given to one of them: a kernel that runs counts before a copy under way.
enum class Activity : std::uint8_t { kernel, copy, wait, launch, host };

enum class Track : std::uint8_t {
  host,    // what the thread that trains is doing
  queue,   // a command from its submission to its start
  device,  // a command from its start to its end
};

struct Interval {
  Activity activity = Activity::host;
  Track track = Track::host;
  int what = 0;            // in Recorder::names
  int launch = -1;         // device: which of the executable's launches; CPU: which step of the plan
  std::int64_t begin = 0;  // nanoseconds of the steady clock, device intervals too
  std::int64_t end = 0;
  std::int64_t bytes = 0;  // moved
};

class Recorder {
 public:
  [[nodiscard]] static std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  void start() { on_ = true; }
  void stop() { on_ = false; }
  [[nodiscard]] bool is_on() const { return on_; }

  // The number of a name; names are given before recording starts.
  int name(std::string text) {
    names_.push_back(std::move(text));
    return static_cast<int>(names_.size()) - 1;
  }
  void add(const Interval& interval) {
    if (on_) intervals_.push_back(interval);
  }
  void clear() { intervals_.clear(); }

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  bool on_ = false;
  std::vector<std::string> names_;
  std::vector<Interval> intervals_;
};

}  // namespace stoker
