// Recorder: what happened in a step and when, as the backend tells it while profiling. Without one (a null pointer,
// which is what training has) nothing is measured and nothing is kept. One thread uses it: the one that trains.
#pragma once

#include <chrono>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

// In the order in which an instant is given to one of them: a kernel that runs counts before a copy under way.
enum class Activity : std::uint8_t { kernel, copy, wait, launch, host };
inline constexpr int kActivities = 5;

enum class Track : std::uint8_t {
  host,    // what the thread that trains is doing; intervals nest
  queue,   // a command from its submission to its start
  device,  // a command from its start to its end
};

struct Interval {
  Activity activity = Activity::host;
  Track track = Track::host;
  int what = 0;            // in Recorder::names
  int executable = -1;     // of a kernel: in Recorder::executables
  int launch = -1;         // of a kernel: which of the executable's launches
  std::int64_t begin = 0;  // nanoseconds of the steady clock, device intervals too
  std::int64_t end = 0;
  std::int64_t bytes = 0;  // moved
};

// A step of a plan, as tables name it.
struct RecordedStep {
  std::string name;  // "conv2d conv1"
  std::string phase;
  double flops = 0;
  double bytes = 0;
};

// A kernel launch: whose work it does, and what that costs.
struct RecordedLaunch {
  std::string kernel;
  std::vector<int> steps;  // in RecordedExecutable::steps, ascending
  double flops = 0;
  double bytes = 0;
};

struct RecordedExecutable {
  std::vector<RecordedStep> steps;
  std::vector<RecordedLaunch> launches;
};

class Recorder {
 public:
  // Whoever learns of some intervals only later: a device's commands, when they are done.
  class Source {
   public:
    virtual ~Source() = default;
    // Adds what it has kept back, waiting for it if need be.
    virtual void gather() = 0;
  };

  [[nodiscard]] static std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  // While it is on, everybody tells what they do.
  void start() { on_ = true; }
  void stop() { on_ = false; }
  [[nodiscard]] bool is_on() const { return on_; }

  void attach(Source& source) { sources_.push_back(&source); }
  void detach(Source& source) { std::erase(sources_, &source); }
  // After it, intervals() is complete.
  void gather() {
    for (Source* source : sources_) source->gather();
  }

  // The number of a name; names are given before recording starts.
  [[nodiscard]] int name(std::string_view text) {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == text) return static_cast<int>(i);
    }
    names_.emplace_back(text);
    return static_cast<int>(names_.size()) - 1;
  }
  // The number of an executable.
  [[nodiscard]] int add(RecordedExecutable executable) {
    executables_.push_back(std::move(executable));
    return static_cast<int>(executables_.size()) - 1;
  }
  // What there is no memory for is dropped.
  void add(const Interval& interval) noexcept {
    try {
      intervals_.push_back(interval);
    } catch (const std::bad_alloc&) {
      ++untimed_;
    }
  }
  // Of a command for which the driver gave no times, or none that can be.
  void add_untimed() { ++untimed_; }
  void clear() {
    intervals_.clear();
    untimed_ = 0;
  }

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] const std::vector<RecordedExecutable>& executables() const { return executables_; }
  // In no order.
  [[nodiscard]] const std::vector<Interval>& intervals() const { return intervals_; }
  [[nodiscard]] std::int64_t untimed() const { return untimed_; }

 private:
  bool on_ = false;
  std::vector<Source*> sources_;
  std::vector<std::string> names_;
  std::vector<RecordedExecutable> executables_;
  std::vector<Interval> intervals_;
  std::int64_t untimed_ = 0;
};

// Tells a recorder, if there is one and it is on, of the time from here to stop(). What ends by an exception is not
// told.
class Stopwatch {
 public:
  explicit Stopwatch(Recorder* recorder)
      : recorder_(recorder != nullptr && recorder->is_on() ? recorder : nullptr),
        begin_(recorder_ != nullptr ? Recorder::now() : 0) {}
  [[nodiscard]] bool is_on() const { return recorder_ != nullptr; }
  [[nodiscard]] std::int64_t begin() const { return begin_; }
  void stop(Activity activity, int what) const {
    if (recorder_ == nullptr) return;
    recorder_->add(Interval{.activity = activity, .what = what, .begin = begin_, .end = Recorder::now()});
  }

 private:
  Recorder* recorder_;
  std::int64_t begin_;
};

}  // namespace stoker
