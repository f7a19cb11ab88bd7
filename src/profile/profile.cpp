#include "profile/profile.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"

namespace stoker {
namespace {

constexpr double kNanosecond = 1e-9;

double seconds_of(const Interval& interval) { return static_cast<double>(interval.end - interval.begin) * kNanosecond; }

// A launch that works for several steps is shared out by a guess at their times. Only the proportion matters.
double weight(const RecordedStep& step) { return step.flops / 10e9 + step.bytes / 4e9 + 1e-6; }

// The time of each op and each kernel of one executable.
class Attribution {
 public:
  explicit Attribution(const RecordedExecutable& executable)
      : executable_(executable), ops_(executable.steps.size()), runs_(executable.launches.size(), 0) {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      ops_[i].name = executable.steps[i].name;
      ops_[i].phase = executable.steps[i].phase;
    }
  }

  void add(const Interval& interval) {
    const auto number = static_cast<std::size_t>(interval.launch);
    const RecordedLaunch& launch = executable_.launches[number];
    const double seconds = seconds_of(interval);
    double weights = 0;
    for (const int step : launch.steps) weights += weight(executable_.steps[static_cast<std::size_t>(step)]);
    for (const int step : launch.steps) {
      const auto at = static_cast<std::size_t>(step);
      const double part = weight(executable_.steps[at]) / weights;
      ops_[at].seconds += seconds * part;
      ops_[at].launches += part;
    }
    ++runs_[number];
    WorkProfile& kernel = kernels_[{launch.kernel, phase_of(launch)}];
    kernel.calls += 1;
    kernel.launches += 1;
    kernel.seconds += seconds;
    kernel.flops += launch.flops;
    kernel.bytes += launch.bytes;
  }

  // Appends what was run, for one step of `steps`.
  void finish(int steps, std::vector<WorkProfile>& ops, std::vector<WorkProfile>& kernels) {
    count_calls();
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      WorkProfile& op = ops_[i];
      if (op.calls == 0) continue;
      op.flops = executable_.steps[i].flops * op.calls;
      op.bytes = executable_.steps[i].bytes * op.calls;
      ops.push_back(scaled(op, steps));
    }
    for (auto& [key, kernel] : kernels_) {
      std::tie(kernel.name, kernel.phase) = key;
      kernels.push_back(scaled(kernel, steps));
    }
  }

 private:
  [[nodiscard]] std::string phase_of(const RecordedLaunch& launch) const {
    const std::string& first = executable_.steps[static_cast<std::size_t>(launch.steps.front())].phase;
    const bool same = std::ranges::all_of(
        launch.steps, [&](int step) { return executable_.steps[static_cast<std::size_t>(step)].phase == first; });
    return same ? first : "several";
  }

  // An op was called as often as each of its launches.
  void count_calls() {
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      for (const int step : executable_.launches[i].steps) {
        WorkProfile& op = ops_[static_cast<std::size_t>(step)];
        op.calls = std::max(op.calls, static_cast<double>(runs_[i]));
      }
    }
  }

  static WorkProfile scaled(WorkProfile work, int steps) {
    for (double* number : {&work.calls, &work.launches, &work.seconds, &work.flops, &work.bytes}) *number /= steps;
    return work;
  }

  const RecordedExecutable& executable_;
  std::vector<WorkProfile> ops_;
  std::vector<std::int64_t> runs_;  // of each launch
  std::map<std::pair<std::string, std::string>, WorkProfile> kernels_;
};

void add_work(Profile& profile, const Recorder& recorder) {
  std::vector<Attribution> executables(recorder.executables().begin(), recorder.executables().end());
  for (const Interval& interval : recorder.intervals()) {
    if (interval.track == Track::device && interval.executable >= 0)
      executables[static_cast<std::size_t>(interval.executable)].add(interval);
  }
  for (Attribution& executable : executables) executable.finish(profile.steps, profile.ops, profile.kernels);
  double sum = 0;
  for (const WorkProfile& op : profile.ops) sum += op.seconds;
  if (sum > 0) {
    for (WorkProfile& op : profile.ops) op.share = op.seconds / sum;
    for (WorkProfile& kernel : profile.kernels) kernel.share = kernel.seconds / sum;
  }
  std::ranges::stable_sort(profile.kernels, std::ranges::greater{}, &WorkProfile::seconds);
}

void add_copies(Profile& profile, const Recorder& recorder) {
  std::map<int, CopyProfile> copies;
  for (const Interval& interval : recorder.intervals()) {
    if (interval.track != Track::device || interval.activity != Activity::copy) continue;
    CopyProfile& copy = copies[interval.what];
    copy.name = recorder.names()[static_cast<std::size_t>(interval.what)];
    copy.calls += 1;
    copy.bytes += static_cast<double>(interval.bytes);
    copy.seconds += seconds_of(interval);
  }
  for (auto& [what, copy] : copies) {
    for (double* number : {&copy.calls, &copy.bytes, &copy.seconds}) *number /= profile.steps;
    profile.copies.push_back(std::move(copy));
  }
}

// Off again whatever happens.
class Recording {
 public:
  explicit Recording(Recorder& recorder) : recorder_(recorder) { recorder_.start(); }
  ~Recording() { recorder_.stop(); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  Recorder& recorder_;
};

}  // namespace

Profile profile_steps(Recorder& recorder, const ProfiledSteps& steps) {
  require(steps.steps > 0 && steps.step, Code::bad_argument, "a profile needs a step, and at least one of them");
  recorder.gather();
  recorder.clear();
  Profile profile;
  const Counters before = steps.counters ? steps.counters() : Counters{};
  {
    const Recording recording(recorder);
    profile.begin = Recorder::now();
    bool goes_on = true;
    while (profile.steps < steps.steps && goes_on) {
      steps.step();
      ++profile.steps;
      goes_on = !steps.progress || steps.progress(profile.steps);
    }
    if (steps.finish) steps.finish();
    profile.end = Recorder::now();
  }
  if (steps.counters) profile.counters = steps.counters() - before;
  recorder.gather();
  profile.untimed = recorder.untimed();
  profile.breakdown = per_step(break_down(recorder.intervals(), profile.begin, profile.end), profile.steps);
  add_work(profile, recorder);
  add_copies(profile, recorder);
  return profile;
}

Profile profile_steps(Recorder& recorder, const std::function<void()>& step, int steps) {
  return profile_steps(recorder,
                       ProfiledSteps{.steps = steps, .step = step, .finish = {}, .counters = {}, .progress = {}});
}

}  // namespace stoker
