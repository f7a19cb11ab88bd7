#include "profile/breakdown.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace stoker {
namespace {

constexpr double kNanosecond = 1e-9;

// How many intervals of each kind are open at a moment.
struct Open {
  std::array<int, kActivities> classes{};
  int device = 0;
  int host = 0;
  int host_waits = 0;

  void add(const Interval& interval, int change) {
    classes[static_cast<std::size_t>(interval.activity)] += change;
    (interval.track == Track::device ? device : host) += change;
    if (interval.track == Track::host && interval.activity == Activity::wait) host_waits += change;
  }
};

struct Edge {
  std::int64_t at;
  int change;  // 1: it begins, -1: it ends
  const Interval* interval;
};

// Nothing where nothing is left of it.
std::int64_t length(const Interval& interval, std::int64_t begin, std::int64_t end) {
  return std::max<std::int64_t>(0, std::min(interval.end, end) - std::max(interval.begin, begin));
}

// Beginnings and ends in the order of time. A queue is no place where anything happens.
std::vector<Edge> edges_of(std::span<const Interval> intervals, std::int64_t begin, std::int64_t end) {
  std::vector<Edge> edges;
  for (const Interval& interval : intervals) {
    if (interval.track == Track::queue || length(interval, begin, end) == 0) continue;
    edges.push_back({std::max(interval.begin, begin), 1, &interval});
    edges.push_back({std::min(interval.end, end), -1, &interval});
  }
  std::ranges::sort(edges, {}, &Edge::at);
  return edges;
}

// Adds a stretch of time in which nothing begins or ends.
void add_stretch(Breakdown& breakdown, const Open& open, double seconds, bool has_queue) {
  const auto first = std::ranges::find_if(open.classes, [](int count) { return count > 0; });
  if (first == open.classes.end()) {
    breakdown.rest += seconds;
  } else {
    breakdown.classes[static_cast<std::size_t>(first - open.classes.begin())] += seconds;
  }
  // A device without a queue is the host's own thread: it cannot do both.
  const bool device = open.device > 0;
  const bool host = open.host > 0 && open.host_waits == 0 && (has_queue || !device);
  if (device) breakdown.device_busy += seconds;
  if (host) breakdown.host_busy += seconds;
  if (device && host) breakdown.both_busy += seconds;
}

}  // namespace

std::string_view to_string(Activity activity) {
  switch (activity) {
    case Activity::kernel: return "compute";
    case Activity::copy: return "data movement";
    case Activity::wait: return "waiting for the queue";
    case Activity::launch: return "launch overhead";
    case Activity::host: return "host work";
  }
  return "";
}

Breakdown break_down(std::span<const Interval> intervals, std::int64_t begin, std::int64_t end) {
  require(begin <= end, Code::bad_argument, "a breakdown's time must not end before it begins");
  Breakdown breakdown{.wall = static_cast<double>(end - begin) * kNanosecond};
  bool has_queue = false;
  for (const Interval& interval : intervals) {
    const double seconds = static_cast<double>(length(interval, begin, end)) * kNanosecond;
    const bool is_call = interval.track == Track::host && interval.activity == Activity::wait && interval.bytes > 0;
    if (is_call) breakdown.blocking_copies += seconds;
    has_queue = has_queue || interval.track == Track::queue;
  }
  Open open;
  std::int64_t at = begin;
  const auto advance = [&](std::int64_t to) {
    if (to > at) add_stretch(breakdown, open, static_cast<double>(to - at) * kNanosecond, has_queue);
    at = to;
  };
  for (const Edge& edge : edges_of(intervals, begin, end)) {
    advance(edge.at);
    open.add(*edge.interval, edge.change);
  }
  advance(end);
  return breakdown;
}

Breakdown per_step(Breakdown total, int steps) {
  require(steps > 0, Code::bad_argument, "a breakdown needs at least one step");
  for (double* seconds :
       {&total.wall, &total.rest, &total.device_busy, &total.host_busy, &total.both_busy, &total.blocking_copies}) {
    *seconds /= steps;
  }
  for (double& seconds : total.classes) seconds /= steps;
  return total;
}

}  // namespace stoker
