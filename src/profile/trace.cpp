#include "profile/trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kProcess = 1;

const char* track_name(Track track) {
  switch (track) {
    case Track::host: return "host";
    case Track::queue: return "queue";
    case Track::device: return "device";
  }
  return "";
}

int thread_of(Track track) { return static_cast<int>(track) + 1; }

class TraceWriter {
 public:
  TraceWriter(const Recorder& recorder, const Profile& profile) : recorder_(recorder), profile_(profile) {}

  Json run(const std::string& title) {
    name("process_name", 0, title);
    for (const Track track : {Track::host, Track::queue, Track::device}) {
      name("thread_name", thread_of(track), track_name(track));
      events_.push_back({{"ph", "M"},
                         {"pid", kProcess},
                         {"tid", thread_of(track)},
                         {"name", "thread_sort_index"},
                         {"args", {{"sort_index", thread_of(track)}}}});
    }
    for (const Interval& interval : on_track(Track::host)) slice(interval, std::max(interval.begin, profile_.begin));
    one_after_the_other(Track::queue);
    one_after_the_other(Track::device);
    count_commands();
    return {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events_)}};
  }

 private:
  void name(const char* what, int thread, const std::string& text) {
    events_.push_back({{"ph", "M"}, {"pid", kProcess}, {"tid", thread}, {"name", what}, {"args", {{"name", text}}}});
  }

  // Divided, not multiplied by 1e-3: then a nanosecond is printed as three digits, and slices that meet do so.
  [[nodiscard]] static double microseconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e3; }
  // What began before the profile is seen from its beginning on.
  [[nodiscard]] double moment(std::int64_t time) const {
    return microseconds(std::max<std::int64_t>(0, time - profile_.begin));
  }

  // By beginning, what encloses others before them.
  [[nodiscard]] std::vector<Interval> on_track(Track track) const {
    std::vector<Interval> list;
    for (const Interval& interval : recorder_.intervals()) {
      if (interval.track == track && interval.end > profile_.begin && interval.begin < profile_.end)
        list.push_back(interval);
    }
    std::ranges::sort(list, [](const Interval& a, const Interval& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    return list;
  }

  // A command in a queue or on a device begins here where the one before it has gone on.
  void one_after_the_other(Track track) {
    std::vector<Interval> list = on_track(track);
    std::ranges::stable_sort(list, {}, &Interval::end);
    std::int64_t free_from = profile_.begin;
    for (const Interval& interval : list) {
      const std::int64_t begin = std::max(interval.begin, free_from);
      if (begin <= interval.end) slice(interval, begin);
      free_from = std::max(free_from, interval.end);
    }
  }

  void slice(const Interval& interval, std::int64_t begin) {
    Json event{
        {"ph", "X"},
        {"pid", kProcess},
        {"tid", thread_of(interval.track)},
        {"ts", moment(begin)},
        {"dur", microseconds(interval.end - begin)},
        {"name", recorder_.names()[static_cast<std::size_t>(interval.what)]},
        {"cat", interval.track == Track::queue ? std::string("queue") : std::string(to_string(interval.activity))}};
    Json args = Json::object();
    if (interval.bytes > 0) args["bytes"] = interval.bytes;
    if (interval.track == Track::queue) args["since submission, us"] = microseconds(interval.end - interval.begin);
    if (interval.executable >= 0) describe_launch(interval, event, args);
    if (!args.empty()) event["args"] = std::move(args);
    events_.push_back(std::move(event));
  }

  void describe_launch(const Interval& interval, Json& event, Json& args) const {
    const RecordedExecutable& executable = recorder_.executables()[static_cast<std::size_t>(interval.executable)];
    const RecordedLaunch& launch = executable.launches[static_cast<std::size_t>(interval.launch)];
    event["name"] = launch.kernel;
    std::string ops;
    for (const int step : launch.steps) {
      const RecordedStep& op = executable.steps[static_cast<std::size_t>(step)];
      ops += (ops.empty() ? "" : ", ") + op.name + " (" + op.phase + ")";
    }
    args["ops"] = ops;
    args["launch"] = interval.launch;
    args["MFLOP"] = launch.flops * 1e-6;
    args["kB"] = launch.bytes * 1e-3;
  }

  // From the submission of a command to its end.
  void count_commands() {
    std::vector<std::pair<std::int64_t, int>> changes;
    for (const Interval& interval : on_track(Track::queue)) changes.emplace_back(interval.begin, 1);
    if (changes.empty()) return;
    for (const Interval& interval : on_track(Track::device)) changes.emplace_back(interval.end, -1);
    std::ranges::sort(changes);
    int count = 0;
    for (const auto& [time, change] : changes) {
      count += change;
      events_.push_back({{"ph", "C"},
                         {"pid", kProcess},
                         {"tid", thread_of(Track::queue)},
                         {"ts", moment(time)},
                         {"name", "commands under way"},
                         {"args", {{"commands", count}}}});
    }
  }

  const Recorder& recorder_;
  const Profile& profile_;
  Json events_ = Json::array();
};

}  // namespace

std::string to_trace(const Recorder& recorder, const Profile& profile, const std::string& title) {
  return TraceWriter(recorder, profile).run(title).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace stoker
