// The study's report: tables and plots from the results, the figures of 2022 beside them, each with its label.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "study/study.h"

namespace stoker {
namespace {

constexpr const char* kAbstract = "abstract";
constexpr const char* kSecondary = "secondary, unverified";

std::string number(double value, const char* format = "%.3g") {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string sizes(const MatmulRow& row) { return str(row.m, " x ", row.n, " x ", row.k); }

std::string net(const std::string& model, std::int64_t batch) { return str(model, ", batch ", batch); }

Table figures_of_2022() {
  return {.title = "What the study of 2022 says",
          .columns = {{"figure"}, {"value"}, {"label"}},
          .rows = {{"matrix product on the GPU, tuned, GFLOP/s", "40 to 70", kAbstract},
                   {"matrix product on the CPU, GFLOP/s", "15 to 30", kAbstract},
                   {"GPU kernels against the CPU's, after tuning", "2x", kAbstract},
                   {"data movement in a training step", "91 %", kAbstract},
                   {"its reason", "\"low bandwidth\"", kAbstract},
                   {"phones", "OnePlus Nord (SD765G), 6 (SD845), 8 Pro (SD865)", kSecondary},
                   {"nets, batch 32", "16-16, 16-16-16-16, 256-256, 784-256-128-16", kSecondary},
                   {"product by phone before and after tuning, GFLOP/s", "5, 10, 15 -> 25, 40, 70", kSecondary}}};
}

Section computation(const StudyResults& r) {
  Section section{.id = "computation", .title = "1. Computation", .blocks = {}, .badge = {}};
  section.blocks.emplace_back(
      "Matrix products x W^T as a fully connected layer has them. **MNN's shape**: a work-item makes 1 x 4 results, in "
      "a fixed work-group, through images where the device has them. **Tuned**: the kernels that train. GFLOP/s, "
      "higher "
      "is better; small products measure what a launch costs.");
  Table table{.title = "Matrix products",
              .columns = {{"M x N x K"},
                          {"of"},
                          {"CPU", "GFLOP/s", 1, true},
                          {"MNN's shape", "GFLOP/s", 1, true},
                          {"tuned", "GFLOP/s", 1, true},
                          {"tuned / MNN's shape", "x", 2},
                          {"tuned / CPU", "x", 2}},
              .rows = {}};
  Chart chart{
      .kind = Chart::Kind::lines,
      .title = "Square products",
      .x = {.title = "size", .logarithmic = true, .unit = {}},
      .y = {.title = "speed", .logarithmic = true, .unit = "GFLOP/s"},
      .categories = {},
      .series = {{.name = "CPU", .points = {}}, {.name = "MNN's shape", .points = {}}, {.name = "tuned", .points = {}}},
      .note = "The bands of 2022 (phones): tuned GPU 40 to 70, CPU 15 to 30 (abstract).",
      .badge = {}};
  for (const MatmulRow& row : r.matmuls) {
    table.rows.push_back({sizes(row), row.layer ? "the study's nets" : "a square", row.cpu, row.mnn, row.tuned,
                          row.tuned / row.mnn, row.tuned / row.cpu});
    if (row.layer) continue;
    const auto size = static_cast<double>(row.m);
    chart.series[0].points.push_back({size, row.cpu, sizes(row)});
    chart.series[1].points.push_back({size, row.mnn, sizes(row)});
    chart.series[2].points.push_back({size, row.tuned, sizes(row)});
  }
  const auto band = [&](const char* name, double value) {
    Series series{.name = name, .points = {}, .line = true, .dashed = true};
    for (const Point& point : chart.series[0].points) series.points.push_back({point.x, value, name});
    chart.series.push_back(std::move(series));
  };
  band("2022, tuned GPU, low (abstract)", 40);
  band("2022, tuned GPU, high (abstract)", 70);
  band("2022, CPU, low (abstract)", 15);
  band("2022, CPU, high (abstract)", 30);
  section.blocks.emplace_back(std::move(chart));
  section.blocks.emplace_back(std::move(table));
  return section;
}

Table ceilings(const StudyResults& r) {
  const auto row = [](const char* what, double device, double cpu) {
    return std::vector<Cell>{what, device > 0 ? device : kNotMeasured, cpu > 0 ? cpu : kNotMeasured};
  };
  const Ceilings& d = r.device_ceilings;
  const Ceilings& c = r.cpu_ceilings;
  return {.title = "Ceilings, measured",
          .columns = {{"what"}, {r.device.id, {}, -1}, {"cpu", {}, -1}},
          .rows = {row("multiply-adds, GFLOP/s", d.flops / 1e9, c.flops / 1e9),
                   row("memory, GB/s", d.bandwidth / 1e9, c.bandwidth / 1e9),
                   row("host to device, GB/s", d.to_device / 1e9, 0), row("device to host, GB/s", d.to_host / 1e9, 0),
                   row("map and unmap, us", d.map_seconds * 1e6, 0), row("a launch, us", d.launch_seconds * 1e6, 0),
                   row("waiting for a small kernel, us", d.sync_seconds * 1e6, 0),
                   row("a small blocking read, us", d.read_seconds * 1e6, 0),
                   row("a small blocking write, us", d.write_seconds * 1e6, 0)},
          .note = "`stoker devices --measure` measures them again."};
}

Table shares(const StudyResults& r) {
  Table table{.title = "Movement in a step of the baseline",
              .columns = {{"net"},
                          {"step", "ms", -1},
                          {"copies with the wait before them", "%", 1, true},
                          {"transfers alone", "%", 1, true},
                          {"kernels", "%", 1, true},
                          {"waiting", "%", 1},
                          {"launching", "%", 1},
                          {"host", "%", 1},
                          {"rest", "%", 1},
                          {"parameters", "MB", -1},
                          {"loss, largest difference to resident", {}, -1}},
              .rows = {},
              .note =
                  "The study of 2022: 91 % (abstract), probably measured as in the first of the two shares. A "
                  "column of the classes gives each instant once: a kernel that runs counts before a copy, a copy "
                  "before a wait."};
  for (const MovementRow& row : r.movements) {
    const auto share = [&](Activity activity) { return row.breakdown.of(activity) / row.breakdown.wall * 100; };
    table.rows.push_back({net(row.model, row.batch), row.breakdown.wall * 1e3, row.share_with_waits() * 100,
                          row.share_of_transfers() * 100, share(Activity::kernel), share(Activity::wait),
                          share(Activity::launch), share(Activity::host), row.breakdown.rest / row.breakdown.wall * 100,
                          static_cast<double>(row.parameter_bytes) / 1e6, row.loss_gap});
  }
  return table;
}

Chart share_chart(const StudyResults& r) {
  Chart chart{.kind = Chart::Kind::stacked_bars,
              .title = "Where a step of the baseline goes",
              .x = {},
              .y = {.title = "share of the step", .logarithmic = false, .unit = "%"},
              .categories = {},
              .series = {},
              .note = {},
              .badge = {}};
  for (const MovementRow& row : r.movements) chart.categories.push_back(row.model);
  for (int i = 0; i < kActivities; ++i) {
    Series series{.name = std::string(to_string(static_cast<Activity>(i))), .points = {}};
    for (const MovementRow& row : r.movements)
      series.points.push_back({0, row.breakdown.classes[static_cast<std::size_t>(i)] / row.breakdown.wall * 100, {}});
    chart.series.push_back(std::move(series));
  }
  return chart;
}

Table movement_counts(const StudyResults& r) {
  Table table{.title = "What a step of the baseline does",
              .columns = {{"net"},
                          {"kernels", {}, 0},
                          {"reads", {}, 0},
                          {"writes", {}, 0},
                          {"blocking calls", {}, 0},
                          {"new buffers", {}, 0},
                          {"over the bus", "kB", 1}},
              .rows = {},
              .note = "The last row was counted in MNN itself, training LeNet-5 at batch 64 with its OpenCL backend."};
  for (const MovementRow& row : r.movements) {
    table.rows.push_back({net(row.model, row.batch), row.counts.launches, row.counts.reads, row.counts.writes,
                          row.counts.blocking, row.counts.objects, row.counts.host_bytes / 1e3});
  }
  table.rows.push_back({"MNN, LeNet-5, batch 64", 153.0, 17.0, 64.0, 74.0, 65.0, kNotMeasured});
  return table;
}

Section memory(const StudyResults& r) {
  Section section{.id = "memory", .title = "2. Memory", .blocks = {}, .badge = {}};
  section.blocks.emplace_back(
      "The **baseline** is our reconstruction of MNN 1.1's step: gradients are read back one by one with blocking "
      "calls, "
      "the optimizer runs on the host, the parameters are uploaded again, each tensor changes its layout on the way "
      "and "
      "crosses through a buffer made for this step. It runs on the same tuned, unfused kernels as the resident step "
      "without fusion, so that the difference is the movement alone; its losses agree.\n\n"
      "Not reproduced of MNN: the optimizer is one graph on the host's CPU, not many tiny ones; constants and scalars "
      "are not uploaded each step (MNN's writes are more than its parameters); tensors between kernels are buffers, "
      "not "
      "images, and are not made anew; a device-side copy takes each tensor between its own place and the new buffer.");
  section.blocks.emplace_back(share_chart(r));
  section.blocks.emplace_back(shares(r));
  section.blocks.emplace_back(movement_counts(r));
  section.blocks.emplace_back(ceilings(r));
  return section;
}

Table training_table(const StudyResults& r) {
  Table table{.title = "Forward, backward and step",
              .columns = {{"net"},
                          {"parameters", {}, 0},
                          {"a step", "Mflop", -1},
                          {"what"},
                          {"CPU", "ms", -1},
                          {"baseline", "ms", -1},
                          {"resident", "ms", -1},
                          {"baseline / CPU", "x", 2},
                          {"resident / CPU", "x", 2}},
              .rows = {},
              .note =
                  "The backward pass, the study's metric, is measured without the update: forward and backward "
                  "together less forward, each waited for; the baseline's ends with the gradients on the host. The "
                  "step is the whole, as training runs it (resident: two under way), so that it can be shorter than "
                  "the sum."};
  for (const TrainingRow& row : r.trainings) {
    const auto add = [&](const char* what, double PartTimes::*part) {
      table.rows.push_back({net(row.model, row.batch), static_cast<double>(row.parameters), row.flops / 1e6, what,
                            row.cpu.*part, row.baseline.*part, row.resident.*part, row.baseline.*part / row.cpu.*part,
                            row.resident.*part / row.cpu.*part});
    };
    add("forward", &PartTimes::forward);
    add("backward", &PartTimes::backward);
    add("step", &PartTimes::step);
  }
  return table;
}

Chart ratio_chart(const StudyResults& r) {
  Chart chart{.kind = Chart::Kind::lines,
              .title = "The device's time over the CPU's, against the net's size",
              .x = {.title = "work a step", .logarithmic = true, .unit = "Mflop"},
              .y = {.title = "device / CPU", .logarithmic = true, .unit = "x"},
              .categories = {},
              .series = {},
              .note =
                  "Below 1 the device is faster. The study's plot shows the backward pass; it found the GPU at least "
                  "5 times slower, less so for larger nets (secondary, unverified).",
              .badge = {}};
  std::vector<TrainingRow> rows = r.trainings;
  std::ranges::sort(rows, {}, &TrainingRow::flops);
  const auto add = [&](const char* name, PartTimes TrainingRow::*way, double PartTimes::*part) {
    Series series{.name = name, .points = {}};
    for (const TrainingRow& row : rows)
      series.points.push_back({row.flops / 1e6, (row.*way).*part / row.cpu.*part, net(row.model, row.batch)});
    chart.series.push_back(std::move(series));
  };
  add("baseline, backward", &TrainingRow::baseline, &PartTimes::backward);
  add("baseline, step", &TrainingRow::baseline, &PartTimes::step);
  add("resident, backward", &TrainingRow::resident, &PartTimes::backward);
  add("resident, step", &TrainingRow::resident, &PartTimes::step);
  Series even{.name = "as fast as the CPU", .points = {}, .line = true, .dashed = true};
  for (const TrainingRow& row : rows) even.points.push_back({row.flops / 1e6, 1, "as fast as the CPU"});
  chart.series.push_back(std::move(even));
  return chart;
}

Table batch_table(const StudyResults& r) {
  Table table{
      .title = "The batch",
      .columns = {{"net"}, {"batch", {}, 0}, {"CPU", "ms", -1}, {"resident", "ms", -1}, {"resident / CPU", "x", 2}},
      .rows = {}};
  for (const BatchRow& row : r.batches)
    table.rows.push_back({row.model, static_cast<double>(row.batch), row.cpu, row.resident, row.resident / row.cpu});
  return table;
}

Section training(const StudyResults& r) {
  Section section{.id = "training", .title = "3. Training", .blocks = {}, .badge = {}};
  if (!r.trainings.empty()) {
    section.blocks.emplace_back(ratio_chart(r));
    section.blocks.emplace_back(training_table(r));
  }
  if (!r.batches.empty()) section.blocks.emplace_back(batch_table(r));
  return section;
}

Section cure_section(const StudyResults& r) {
  Section section{.id = "cures", .title = "4. Each cure by itself", .blocks = {}, .badge = {}};
  section.blocks.emplace_back("One change at a time, from MNN's way to ours: the step after each of them.");
  std::vector<std::string> models;
  for (const CureRow& row : r.cures)
    if (std::ranges::find(models, row.model) == models.end()) models.push_back(row.model);
  for (const std::string& model : models) {
    Chart chart{.kind = Chart::Kind::waterfall,
                .title = "Step time of " + model,
                .x = {},
                .y = {.title = "a step", .logarithmic = false, .unit = "ms"},
                .categories = {},
                .series = {{.name = "step", .points = {}}},
                .note = {},
                .badge = {}};
    Table table{.title = "Changes, " + model,
                .columns = {{"after"},
                            {"step", "ms", -1, true},
                            {"saved", "ms", -1},
                            {"launches", {}, 0},
                            {"blocking calls", {}, 1},
                            {"reads", {}, 1},
                            {"writes", {}, 1},
                            {"new buffers", {}, 0},
                            {"over the bus", "kB", 1},
                            {"change"}},
                .rows = {}};
    double before = kNotMeasured;
    for (const CureRow& row : r.cures) {
      if (row.model != model) continue;
      chart.categories.push_back(row.name);
      chart.series[0].points.push_back({0, row.milliseconds, row.change});
      table.rows.push_back({row.name, row.milliseconds, before - row.milliseconds, row.counts.launches,
                            row.counts.blocking, row.counts.reads, row.counts.writes, row.counts.objects,
                            row.counts.host_bytes / 1e3, row.change});
      before = row.milliseconds;
    }
    section.blocks.emplace_back(std::move(chart));
    section.blocks.emplace_back(std::move(table));
  }
  return section;
}

Section verdict_section(const StudyResults& r) {
  Section section{.id = "verdict", .title = "5. Verdict", .blocks = {}, .badge = {}};
  for (std::string& text : verdict(r)) section.blocks.emplace_back(std::move(text));
  section.blocks.emplace_back(figures_of_2022());
  if (!r.skipped.empty()) {
    Table table{.title = "Not measured", .columns = {{"what"}, {"why"}}, .rows = {}};
    for (const Skipped& skipped : r.skipped) table.rows.push_back({skipped.what, skipped.why});
    section.blocks.emplace_back(std::move(table));
  }
  return section;
}

void add_highlights(Report& report, const StudyResults& r) {
  for (const MovementRow& row : r.movements) {
    if (row.model != kMnistNet) continue;
    report.highlights.push_back({"Copies and the wait before them", number(row.share_with_waits() * 100) + " %",
                                 "of the baseline's step, " + row.model + "; the study: 91 % (abstract)"});
    report.highlights.push_back({"Transfers alone", number(row.share_of_transfers() * 100) + " %", "of the same step"});
  }
  if (!r.cures.empty() && r.cures.back().model == r.cures.front().model)
    report.highlights.push_back({"From MNN's way to ours",
                                 number(r.cures.front().milliseconds / r.cures.back().milliseconds) + "x",
                                 "step time of " + r.cures.front().model});
}

}  // namespace

Report to_report(const StudyResults& r) {
  Report report{.title = "Where a training step's time goes",
                .subtitle = str(r.device.name, " (", r.device.id, ", ", r.device.details, ") beside ", r.cpu.details),
                .warnings = {},
                .sections = {},
                .highlights = {}};
  if (r.device.is_cpu)
    report.warnings.emplace_back(
        "**This OpenCL device is a CPU.** The figures judge overheads and the quality of kernels; they are no verdict "
        "on "
        "GPUs, and nothing here was measured on a phone.");
  if (r.interrupted)
    report.warnings.emplace_back("**The study was stopped before its end.** What was measured until then is below.");
  if (r.quick) report.warnings.emplace_back("A quick study: fewer nets, and a fraction of a second for each figure.");
  if (!r.matmuls.empty()) report.sections.push_back(computation(r));
  if (!r.movements.empty()) report.sections.push_back(memory(r));
  if (!r.trainings.empty() || !r.batches.empty()) report.sections.push_back(training(r));
  if (!r.cures.empty()) report.sections.push_back(cure_section(r));
  report.sections.push_back(verdict_section(r));
  add_highlights(report, r);
  return report;
}

}  // namespace stoker
