// The study's words and report, from results made by hand, and a study that is stopped.
#include "study/study.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "devices.h"

namespace stoker {
namespace {

// A GPU whose synchronisation is slow and whose bandwidth is not.
StudyResults results_of_a_phone() {
  StudyResults r;
  r.device = {.id = "opencl:0", .name = "Some GPU", .details = "made up"};
  r.cpu = {.id = "cpu", .name = "CPU", .details = "made up", .is_cpu = true};
  r.device_ceilings = {.flops = 500e9, .bandwidth = 20e9, .to_device = 10e9, .to_host = 5e9};
  r.matmuls = {{.m = 64, .n = 64, .k = 64, .cpu = 20, .mnn = 5, .tuned = 40},
               {.m = 1024, .n = 1024, .k = 1024, .cpu = 25, .mnn = 10, .tuned = 70}};
  MovementRow movement{.model = kMnistNet, .batch = 32, .parameters = 6};
  movement.breakdown.wall = 10e-3;
  movement.breakdown.blocking_copies = 9.1e-3;
  movement.breakdown.classes[static_cast<std::size_t>(Activity::copy)] = 0.5e-3;
  movement.breakdown.classes[static_cast<std::size_t>(Activity::kernel)] = 1e-3;
  r.movements = {movement};
  r.trainings = {
      {.model = "small", .flops = 1e6, .bytes = 1e6, .cpu = {1, 1, 2}, .baseline = {5, 5, 20}, .resident = {1, 1, 4}},
      {.model = "large",
       .flops = 1e9,
       .bytes = 1e8,
       .cpu = {10, 10, 30},
       .baseline = {9, 9, 60},
       .resident = {3, 3, 10}}};
  r.batches = {{"small", 8, 1, 4}, {"small", 64, 5, 4}, {"small", 256, 20, 9}};
  const CallCounts many{.launches = 100, .reads = 7, .writes = 8, .blocking = 15, .objects = 12, .host_bytes = 2e6};
  const CallCounts few{.launches = 30, .reads = 0, .writes = 0, .blocking = 0, .objects = 0, .host_bytes = 1e5};
  r.cures = {{kMnistNet, 32, "as MNN", "as it was", 20, many},
             {kMnistNet, 32, "tuned kernels", "better kernels", 15, many},
             {kMnistNet, 32, "one transfer", "together", 5, many},
             {kMnistNet, 32, "resident", "state stays", 3, few}};
  return r;
}

std::string all_words(const StudyResults& results) {
  std::string text;
  for (const std::string& words : verdict(results)) text += words + "\n";
  return text;
}

TEST(Verdict, NamesWhatHoldsTheDevice) {
  const std::string words = all_words(results_of_a_phone());
  EXPECT_NE(words.find("Synchronisation weighs most"), std::string::npos) << words;
  EXPECT_NE(words.find("\"low bandwidth\" is contradicted"), std::string::npos) << words;
  EXPECT_NE(words.find("From large on (1000 Mflop"), std::string::npos) << words;
  EXPECT_NE(words.find("faster on opencl:0 from a batch of 64 on"), std::string::npos) << words;
  EXPECT_NE(words.find("10 ms, is saved by: one transfer"), std::string::npos) << words;
  EXPECT_NE(words.find("91 % of mlp:784-256-128-16's step"), std::string::npos) << words;
  EXPECT_NE(words.find("transfers themselves take 5 %"), std::string::npos) << words;
}

TEST(Verdict, BlamesBandwidthWhereTheBytesTakeTheTime) {
  StudyResults results = results_of_a_phone();
  results.device_ceilings.to_device = results.device_ceilings.to_host = 0.2e9;  // 1.9 MB take 9.5 ms
  results.cures[2].milliseconds = 14;
  const std::string words = all_words(results);
  EXPECT_NE(words.find("\"low bandwidth\" holds"), std::string::npos) << words;
}

TEST(Verdict, SaysNothingOfGpusOnACpu) {
  StudyResults results = results_of_a_phone();
  results.device.is_cpu = true;
  EXPECT_TRUE(verdict(results).front().starts_with("**No verdict on GPUs.**"));
  EXPECT_TRUE(to_report(results).warnings.front().starts_with("**This OpenCL device is a CPU.**"));
}

TEST(Verdict, AdmitsThatNothingWasMeasured) {
  EXPECT_EQ(verdict({}).size(), 1U);
  EXPECT_NE(all_words({}).find("Nothing was measured"), std::string::npos);
}

TEST(StudyReport, HasASectionForEachPartAndLabelsWhatIsNotOurs) {
  const Report report = to_report(results_of_a_phone());
  std::vector<std::string> ids;
  for (const Section& section : report.sections) ids.push_back(section.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"computation", "memory", "training", "cures", "verdict"}));
  const std::string json = to_json(report);
  EXPECT_NE(json.find("\"abstract\""), std::string::npos);
  EXPECT_NE(json.find("secondary, unverified"), std::string::npos);
}

TEST(StudyReport, IsWholeWithWhateverWasMeasured) {
  StudyResults results = results_of_a_phone();
  results.interrupted = true;
  results.trainings.clear();
  results.batches.clear();
  results.cures.clear();
  const Report report = to_report(results);
  EXPECT_EQ(report.sections.size(), 3U);
  EXPECT_TRUE(std::ranges::any_of(report.warnings,
                                  [](const std::string& w) { return w.find("stopped") != std::string::npos; }));
  EXPECT_NE(to_html(report).find("</html>"), std::string::npos);
}

TEST(Study, StopsBetweenMeasurementsWithWhatItHas) {
  const std::vector<std::string> devices = testing::opencl_ids();
  if (devices.empty()) GTEST_SKIP() << "there is no OpenCL device";
  int asked = 0;
  StudyOptions options{.device = devices.front(), .quick = true, .self_test = false};
  options.progress = [&](const std::string&, int done, int) { asked = done; };
  options.stop = [&] { return asked >= 2; };
  const StudyResults results = run_study(options);
  EXPECT_TRUE(results.interrupted);
  EXPECT_EQ(results.matmuls.size(), 1U);
  EXPECT_GT(results.matmuls[0].tuned, 0);
  EXPECT_TRUE(results.skipped.empty());
}

TEST(Study, NeedsAnOpenClDevice) {
  EXPECT_THROW(static_cast<void>(run_study({.device = "cpu"})), Error);
  EXPECT_THROW(static_cast<void>(run_study({.device = "opencl:99"})), Error);
}

}  // namespace
}  // namespace stoker
