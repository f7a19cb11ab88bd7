// A trace against the rules of Chrome's trace event format (the document of that name), as far as they can be checked
// without a viewer: every event is complete, times are microseconds of the profile, slices nest.
#include "profile/trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "devices.h"
#include "nn/zoo.h"
#include "run/random_batch.h"
#include "run/session.h"

namespace stoker {
namespace {

using Json = nlohmann::json;

struct Slice {
  std::int64_t begin = 0;  // nanoseconds
  std::int64_t end = 0;
};

// Viewers reckon in whole nanoseconds; a time that is not one of them is cut, and slices that met overlap.
std::int64_t nanoseconds(const Json& microseconds) {
  const double exact = microseconds.get<double>() * 1e3;
  EXPECT_NEAR(exact, std::round(exact), 1e-3) << microseconds << " is no whole number of nanoseconds";
  const std::string text = microseconds.dump();
  const std::size_t point = text.find('.');
  EXPECT_TRUE(point == std::string::npos || text.size() - point <= 4) << text << " has digits that mean nothing";
  return std::llround(exact);
}

// What all events have, and those of each kind. Slices are added to their threads'.
class TraceReader {
 public:
  explicit TraceReader(const Json& trace) {
    EXPECT_TRUE(trace.at("displayTimeUnit") == "ms" || trace.at("displayTimeUnit") == "ns");
    for (const Json& event : trace.at("traceEvents")) {
      EXPECT_TRUE(event.at("pid").is_number_integer() && event.at("tid").is_number_integer()) << event;
      EXPECT_FALSE(event.at("name").get<std::string>().empty()) << event;
      const std::string kind = event.at("ph");
      if (kind == "M") read_name(event);
      if (kind == "X") read_slice(event);
      if (kind == "C") read_count(event);
      EXPECT_TRUE(kind == "M" || kind == "X" || kind == "C") << "an event of kind " << kind;
    }
    for (const auto& [thread, list] : slices) EXPECT_TRUE(threads.contains(thread)) << thread << " has no name";
  }

  std::string process;
  std::map<int, std::string> threads;
  std::set<int> sorted;  // threads that have a place
  std::map<int, std::vector<Slice>> slices;
  std::vector<std::pair<std::int64_t, int>> counts;
  int kernels = 0;

 private:
  void read_name(const Json& event) {
    const std::string what = event.at("name");
    if (what == "process_name") process = event.at("args").at("name");
    if (what == "thread_name") threads[event.at("tid")] = event.at("args").at("name");
    if (what == "thread_sort_index") {
      EXPECT_TRUE(event.at("args").at("sort_index").is_number_integer());
      sorted.insert(event.at("tid").get<int>());
    }
  }
  void read_slice(const Json& event) {
    const std::int64_t begin = nanoseconds(event.at("ts"));
    const std::int64_t duration = nanoseconds(event.at("dur"));
    EXPECT_GE(begin, 0) << event;
    EXPECT_GE(duration, 0) << event;
    EXPECT_TRUE(event.at("cat").is_string()) << event;
    slices[event.at("tid")].push_back({begin, begin + duration});
    if (threads.at(event.at("tid")) != "device" || event.at("cat") != "compute") return;
    ++kernels;
    EXPECT_FALSE(event.at("args").at("ops").get<std::string>().empty());
  }
  void read_count(const Json& event) {
    ASSERT_EQ(event.at("args").size(), 1U) << "one curve";
    counts.emplace_back(nanoseconds(event.at("ts")), event.at("args").at("commands").get<int>());
  }
};

// Slices of one thread are one inside the other, or apart; in the order in which they stand, by their beginnings.
void expect_nested(const std::vector<Slice>& slices, const std::string& thread) {
  std::vector<std::int64_t> ends;
  std::int64_t last = 0;
  for (const Slice& slice : slices) {
    EXPECT_GE(slice.begin, last) << thread << " is not sorted";
    last = slice.begin;
    while (!ends.empty() && ends.back() <= slice.begin) ends.pop_back();
    if (!ends.empty()) EXPECT_LE(slice.end, ends.back()) << thread << " at " << slice.begin << " ns";
    ends.push_back(slice.end);
  }
}

void expect_counts(const std::vector<std::pair<std::int64_t, int>>& counts) {
  std::int64_t last = 0;
  for (const auto& [moment, count] : counts) {
    EXPECT_GE(moment, last);
    EXPECT_GE(count, 0) << "at " << moment << " ns";
    last = moment;
  }
  if (!counts.empty()) EXPECT_EQ(counts.back().second, 0) << "something never ended";
}

class Traces : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Devices, Traces, ::testing::ValuesIn(testing::device_ids()),
                         [](const auto& test) { return testing::as_test_name(test.param); });

TEST_P(Traces, KeepTheRulesOfTheFormat) {
  Recorder recorder;
  Session session(nn::find_model("lenet5"), {.optimizer = {.momentum = 0.9},
                                             .schedule = {.rate = 1e-3},
                                             .device = GetParam(),
                                             .self_test = false,
                                             .recorder = &recorder});
  const RandomBatch batch(session.model(), session.options().target, 4);
  for (int i = 0; i < 3; ++i) static_cast<void>(session.train(batch.view()));
  const Profile profile = profile_steps(recorder, {.steps = 3,
                                                   .step =
                                                       [&] {
                                                         session.submit(batch.view());
                                                         while (session.collect(false)) {
                                                         }
                                                       },
                                                   .finish = [&] { session.settle(); },
                                                   .counters = {},
                                                   .progress = {}});
  const TraceReader trace(Json::parse(to_trace(recorder, profile, "a \"title\"")));
  EXPECT_EQ(trace.process, "a \"title\"");
  EXPECT_EQ(trace.threads.size(), 3U);
  EXPECT_EQ(trace.sorted.size(), 3U);
  double launches = 0;
  for (const WorkProfile& kernel : profile.kernels) launches += kernel.calls;
  EXPECT_EQ(trace.kernels, static_cast<int>(std::lround(launches * profile.steps)));
  std::set<std::string> filled;
  for (const auto& [thread, slices] : trace.slices) {
    filled.insert(trace.threads.at(thread));
    expect_nested(slices, trace.threads.at(thread));
    for (const Slice& slice : slices) EXPECT_LT(slice.begin, profile.end - profile.begin) << "these are microseconds";
  }
  EXPECT_TRUE(filled.contains("host"));
  EXPECT_EQ(filled.contains("queue"), GetParam() != "cpu") << "the CPU has no queue";
  EXPECT_EQ(trace.counts.empty(), GetParam() == "cpu");
  expect_counts(trace.counts);
}

// What began before the profile did is shown from its beginning on; what ended before is not.
TEST(Trace, BeginsWithTheProfile) {
  Recorder recorder;
  const int name = recorder.name("something");
  const auto add = [&](Track track, std::int64_t begin, std::int64_t end) {
    recorder.add(Interval{.track = track, .what = name, .begin = begin, .end = end});
  };
  add(Track::host, 100, 900);
  add(Track::host, 900, 1200);
  add(Track::queue, 700, 1100);
  add(Track::device, 1100, 1700);
  add(Track::queue, 800, 1700);
  add(Track::device, 1700, 1709);
  const TraceReader trace(Json::parse(to_trace(recorder, {.begin = 1000, .end = 2000}, "title")));
  ASSERT_EQ(trace.slices.at(1).size(), 1U);
  EXPECT_EQ(trace.slices.at(1)[0].begin, 0);
  EXPECT_EQ(trace.slices.at(1)[0].end, 200);
  expect_nested(trace.slices.at(2), "queue");
  expect_nested(trace.slices.at(3), "device");
  expect_counts(trace.counts);
}

}  // namespace
}  // namespace stoker
