// Predictions for phones: the table of chips, the counts of a step, and a model of time that behaves as time does.
#include "study/simulate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "backends/opencl/opencl_backend.h"
#include "base/error.h"
#include "devices.h"
#include "run/random_batch.h"
#include "study/baseline.h"

namespace stoker {
namespace {

std::vector<std::pair<const char*, Figure>> figures(const Chip& chip) {
  return {
      {"gpu_mhz", chip.gpu_mhz},      {"peak_gflops", chip.peak_gflops},   {"measured_gflops", chip.measured_gflops},
      {"dram_gbs", chip.dram_gbs},    {"measured_gbs", chip.measured_gbs}, {"write_gbs", chip.write_gbs},
      {"read_gbs", chip.read_gbs},    {"launch_us", chip.launch_us},       {"gemm_gflops", chip.gemm_gflops},
      {"cpu_gflops", chip.cpu_gflops}};
}

std::vector<std::pair<const char*, Filled>> filled(const ChipFigures& f) {
  return {{"peak", f.peak_gflops}, {"gemm", f.gemm_gflops}, {"gbs", f.gbs},        {"write", f.write_gbs},
          {"read", f.read_gbs},    {"launch", f.launch_us}, {"cpu", f.cpu_gflops}, {"alus", f.alus}};
}

TEST(PhoneTable, HasASourceAndARangeForEachFigure) {
  std::set<std::string> ids;
  for (const Chip& chip : all_chips()) {
    EXPECT_TRUE(ids.insert(chip.id).second) << chip.id << " is there twice";
    for (const auto& [name, figure] : figures(chip)) {
      if (!figure.is_known()) continue;
      EXPECT_GT(figure.low, 0) << chip.id << " " << name;
      EXPECT_LE(figure.low, figure.high) << chip.id << " " << name;
      ASSERT_STRNE(figure.source, "") << chip.id << " " << name;
      EXPECT_NE(std::string("MSDKP").find(figure.source[0]), std::string::npos) << chip.id << " " << figure.source;
    }
    EXPECT_TRUE(chip.peak_gflops.is_known()) << chip.id;
    EXPECT_TRUE(chip.dram_gbs.is_known() || chip.measured_gbs.is_known()) << chip.id;
  }
  for (const std::string_view id : study_phones()) EXPECT_EQ(find_chip(id).id, id);
}

TEST(PhoneTable, FillsWhatIsMissingWithARangeThatNamesItsChips) {
  for (const Chip& chip : all_chips()) {
    for (const auto& [name, figure] : filled(figures_of(chip))) {
      EXPECT_GT(figure.low, 0) << chip.id << " " << name;
      EXPECT_LE(figure.low, figure.high) << chip.id << " " << name;
      EXPECT_TRUE(std::isfinite(figure.high)) << chip.id << " " << name;
    }
  }
  // 2018 lies between the launches that were measured in 2016 and 2020.
  const Filled launch = figures_of(find_chip("sd845")).launch_us;
  EXPECT_EQ(launch.low, find_chip("sd765g").launch_us.low);
  EXPECT_EQ(launch.high, find_chip("sd820").launch_us.high);
  EXPECT_EQ(launch.source, "from sd820, sd765g");
  // Of the same year: no other is asked.
  EXPECT_EQ(figures_of(find_chip("sd865")).launch_us.source, "from sd765g");
}

TEST(PhoneTable, KnowsTheHotLoopsOfEachGpuThatItNames) {
  for (const Chip& chip : all_chips()) {
    if (std::string_view(chip.compiled_for).empty()) continue;
    for (const WorkKind kind : {WorkKind::matmul, WorkKind::conv, WorkKind::conv_input_grad, WorkKind::conv_weight_grad,
                                WorkKind::depthwise}) {
      int rows = 0;
      for (const HotLoop& row : hot_loops()) {
        if (std::string_view(row.gpu) != chip.compiled_for || row.kind != kind) continue;
        ++rows;
        EXPECT_GT(row.middle, 0);
        EXPECT_LE(row.middle, row.best);
        EXPECT_LT(row.best, 1);
      }
      EXPECT_EQ(rows, 1) << chip.id << " " << to_string(kind);
    }
  }
}

TEST(PhoneTable, AnswersAnUnknownPhoneWithThoseThereAre) {
  try {
    static_cast<void>(find_chip("nokia3310"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::bad_argument);
    for (const Chip& chip : all_chips()) EXPECT_NE(std::string(error.what()).find(chip.id), std::string::npos);
  }
}

TEST(Curve, MeetsItsPointsAndStaysBetweenThem) {
  const Curve curve{{{100, 10}, {10000, 1000}}};
  EXPECT_DOUBLE_EQ(curve.at(1), 10);
  EXPECT_DOUBLE_EQ(curve.at(100), 10);
  EXPECT_NEAR(curve.at(1000), 100, 1e-9);
  EXPECT_NEAR(curve.at(10000), 1000, 1e-9);
  EXPECT_DOUBLE_EQ(curve.at(1e9), 1000);
  EXPECT_DOUBLE_EQ(curve.seconds(0), 0);
}

// One change for the better.
struct Better {
  const char* name;
  void (*change)(Machine&);
};

void speed_up(Curve& curve) {
  for (auto& point : curve.points) point.second *= 2;
}

constexpr Better kBetter[] = {
    {"compute",
     [](Machine& m) {
       for (Curve& curve : m.compute) speed_up(curve);
     }},
    {"memory", [](Machine& m) { speed_up(m.memory); }},
    {"launch", [](Machine& m) { m.launch_seconds /= 2; }},
    {"read", [](Machine& m) { m.read_seconds /= 2; }},
    {"write", [](Machine& m) { m.write_seconds /= 2; }},
    {"map", [](Machine& m) { m.map_seconds /= 2; }},
    {"objects", [](Machine& m) { m.object_seconds /= 2; }},
    {"to_device", [](Machine& m) { m.to_device *= 2; }},
    {"to_host", [](Machine& m) { m.to_host *= 2; }},
    {"host memory", [](Machine& m) { m.host_memory *= 2; }},
    {"host ops", [](Machine& m) { m.host_op_seconds /= 2; }},
    {"items to fill", [](Machine& m) { m.items_to_fill /= 2; }},
    {"overlap", [](Machine& m) { m.overlaps = true; }},
};

TEST(Simulate, IsNeverSlowerOnABetterMachine) {
  Simulator simulator;
  for (const char* name : {"mlp:16-16", "mlp", "lenet5"}) {
    const PhoneStep step = simulator.step(nn::find_model(name), 32, find_chip("sd845"));
    const MachineRange machines = gpu_of(find_chip("sd845"));
    for (const Machine& machine : {machines.fast, machines.slow}) {
      for (const StepCounts* counts : {&step.resident_counts, &step.baseline_counts}) {
        const double before = predict(*counts, machine).total();
        for (const Better& better : kBetter) {
          Machine changed = machine;
          better.change(changed);
          EXPECT_LE(predict(*counts, changed).total(), before * (1 + 1e-12)) << name << ": " << better.name;
        }
      }
    }
    Machine slow = machines.slow;
    speed_up(slow.memory);
    EXPECT_LT(predict(step.baseline_counts, slow).total(), step.baseline.slow.total()) << "bandwidth must matter";
  }
}

TEST(Simulate, GivesRangesInOrderForEachPhone) {
  Simulator simulator;
  const nn::Model model = nn::find_model("mlp");
  for (const Chip& chip : all_chips()) {
    const PhoneStep step = simulator.step(model, 32, chip);
    for (const PredictionRange* range : {&step.resident, &step.baseline, &step.cpu_study, &step.cpu_spec}) {
      EXPECT_GT(seconds(*range).low, 0) << chip.id;
      EXPECT_LE(seconds(*range).low, seconds(*range).high) << chip.id;
      EXPECT_TRUE(std::isfinite(seconds(*range).high)) << chip.id;
      for (const Range& share : {movement_share(*range), share_with_wait(*range)}) {
        EXPECT_GE(share.low, 0) << chip.id;
        EXPECT_LE(share.low, share.high) << chip.id;
        EXPECT_LE(share.high, 1) << chip.id;
      }
    }
    EXPECT_LE(seconds(step.resident).low, seconds(step.baseline).low) << chip.id;
  }
}

TEST(StepCounts, OfTheBaselineCrossMoreThanTheResidentStep) {
  for (const opencl::Family family : {opencl::Family::adreno, opencl::Family::mali, opencl::Family::powervr}) {
    const opencl::DescribedDevice device(opencl::typical_gpu(family));
    for (const char* name : {"mlp:16-16", "mlp", "lenet5"}) {
      const nn::Model model = nn::find_model(name);
      const StepCounts resident = resident_counts(model, 32, device);
      const StepCounts baseline = baseline_counts(model, 32, device);
      EXPECT_EQ(resident.blocking_calls(), 0) << name;
      EXPECT_EQ(resident.objects, 0) << name;
      EXPECT_GT(baseline.blocking_calls(), 0) << name;
      EXPECT_GT(baseline.reads.bytes + baseline.writes.bytes, resident.maps.bytes) << name;
      EXPECT_GT(baseline.launches.size(), resident.launches.size()) << name;
    }
  }
}

// Two layers: four parameters of 16 x 20 + 16 + 10 x 16 + 10 = 506 floats, as in study_baseline_test.
TEST(StepCounts, OfTheBaselineAreThoseOfAHandCount) {
  const opencl::DescribedDevice device(opencl::typical_gpu(opencl::Family::adreno));
  const StepCounts counts = baseline_counts(nn::find_model("mlp:20-16-10"), 32, device);
  EXPECT_EQ(counts.writes.calls, 2 + 4);
  EXPECT_EQ(counts.reads.calls, 4 + 1);
  EXPECT_EQ(counts.writes.bytes, 32 * (20 + 1) * 4 + 506 * 4);
  EXPECT_EQ(counts.copies.bytes, 2 * 506 * 4);
  EXPECT_EQ(counts.objects, 4 + 4);
  EXPECT_EQ(std::ranges::count_if(counts.launches, &LaunchWork::converts), 4 + 4);
}

TEST(StepCounts, HaveTheFlopsOfThePlan) {
  const opencl::DescribedDevice device(opencl::typical_gpu(opencl::Family::adreno));
  // Forward and two gradients, less the first layer's gradient of its input: 2 * 32 * (3 * w1 + 3 * w2 - w1) flops.
  const double products = 2.0 * 32 * (2 * 256 * 128 + 3 * 128 * 16);
  for (const StepCounts& counts : {resident_counts(nn::find_model("mlp:256-128-16"), 32, device),
                                   baseline_counts(nn::find_model("mlp:256-128-16"), 32, device),
                                   cpu_counts(nn::find_model("mlp:256-128-16"), 32)}) {
    double matmuls = 0;
    for (const LaunchWork& work : counts.launches) matmuls += work.kind == WorkKind::matmul ? work.flops : 0;
    EXPECT_NEAR(matmuls, products, 0.1 * products);
    EXPECT_GE(counts.flops(), matmuls);
    EXPECT_GT(counts.bytes(), 0);
  }
}

// The counts of a described device against those of a real one that fits the description.
class OnADevice : public ::testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OnADevice);
INSTANTIATE_TEST_SUITE_P(Devices, OnADevice, ::testing::ValuesIn(testing::opencl_ids()),
                         [](const auto& test) { return testing::as_test_name(test.param); });

TEST_P(OnADevice, LaunchesAreThoseOfTheStepItself) {
  const auto backend = opencl::make_seeded_backend(GetParam(), {.self_test = false});
  const opencl::DescribedDevice device(backend->device());
  SessionOptions options;
  options.optimizer = {.kind = nn::Optimizer::Kind::sgd, .momentum = 0.9};
  options.device = GetParam();
  options.self_test = false;
  for (const char* name : {"mlp:20-16-10", "lenet5"}) {
    const nn::Model model = nn::find_model(name);
    const RandomBatch batch(model, options.target, 8);
    Session session(model, options);
    static_cast<void>(session.train(batch.view()));
    const Counters before = session.counters();
    static_cast<void>(session.train(batch.view()));
    EXPECT_EQ(static_cast<std::int64_t>(resident_counts(model, 8, device).launches.size()),
              (session.counters() - before).launches)
        << name;
    const BaselineSession baseline(model, options, {}, 8);
    EXPECT_EQ(static_cast<std::int64_t>(baseline_counts(model, 8, device).launches.size()), baseline.launches())
        << name;
  }
}

TEST(PhonesSection, SaysThatItPredicts) {
  const Section section = phones_section();
  EXPECT_NE(section.title.find("PREDICTION"), std::string::npos);
  const auto* first = std::get_if<std::string>(&section.blocks.front());
  ASSERT_NE(first, nullptr);
  EXPECT_NE(first->find("not measurements"), std::string::npos);
  std::string words;
  std::size_t rows = 0;
  for (const ReportBlock& block : section.blocks) {
    if (const auto* text = std::get_if<std::string>(&block)) words += *text;
    if (const auto* table = std::get_if<Table>(&block)) rows = table->rows.size();
    if (const auto* chart = std::get_if<Chart>(&block)) {
      EXPECT_NE(chart->title.find("Predicted"), std::string::npos);
      for (const Series& series : chart->series) EXPECT_TRUE(series.dashed);
    }
  }
  EXPECT_EQ(rows, study_nets().size() * study_phones().size());
  for (const char* label : {"91 % (abstract)", "secondary, unverified"})
    EXPECT_NE(words.find(label), std::string::npos);
}

}  // namespace
}  // namespace stoker
