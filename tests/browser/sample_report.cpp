// sample_report FILE.html: a report with every kind of block, for the browser's test and for looking at.
#include <cmath>
#include <fstream>
#include <limits>

#include "profile/report.h"

namespace stoker {
namespace {

const double kMissing = std::numeric_limits<double>::quiet_NaN();

std::vector<Point> heights(const std::vector<double>& values) {
  std::vector<Point> points;
  for (const double value : values) points.push_back({0, value, ""});
  return points;
}

Section computation() {
  Chart chart{.kind = Chart::Kind::lines,
              .title = "Matmul over size",
              .x = {"Rows and columns", true},
              .y = {"Speed", false, "GFLOP/s"},
              .note = "Dashed: the study's figure for its phones, not measured here."};
  const std::vector<double> sizes{64, 128, 256, 512, 1024, 2048};
  Series tuned{"tuned kernels", {}}, plain{"one work-item, 1x4 outputs", {}}, cpu{"CPU", {}};
  Series study{"the study's GPUs (abstract)", {}, true, true};
  for (const double n : sizes) {
    tuned.points.push_back({n, 60 * n / (n + 180), ""});
    plain.points.push_back({n, 9 * n / (n + 90), ""});
    cpu.points.push_back({n, 75 * n / (n + 60), n == 2048 ? "both cores" : ""});
    study.points.push_back({n, 40, ""});
  }
  chart.series = {cpu, tuned, plain, study};
  Table table{.title = "Matmul, GFLOP/s",
              .columns = {{"Size"}, {"CPU", "GFLOP/s", 1, true}, {"Device", "GFLOP/s", 1, true}, {"Bytes", "", 0}},
              .note = "Median of 9; `stoker study --quick`."};
  for (const double n : sizes)
    table.rows.push_back({std::to_string(static_cast<int>(n)), 75 * n / (n + 60), 60 * n / (n + 180), 12 * n * n});
  table.rows.push_back({"16x16 (fails)", kMissing, std::numeric_limits<double>::infinity(), 0.0});
  return {
      "computation", "Computation", {"How fast is one **matmul**, as the layers of the study need it?", chart, table}};
}

Section breakdown() {
  Chart chart{.kind = Chart::Kind::stacked_bars,
              .title = "Where a step's time goes",
              .y = {"Time", false, "ms"},
              .categories = {"mlp, baseline", "mlp, resident", "lenet5, baseline", "lenet5, resident"}};
  chart.series = {{"compute", heights({0.8, 0.8, 7.2, 7.0})},
                  {"data movement", heights({2.1, 0.1, 1.9, 0.2})},
                  {"waiting", heights({3.3, 0.0, 2.8, 0.1})},
                  {"launch overhead", heights({0.6, 0.2, 1.2, 0.4})},
                  {"host work", heights({1.0, 0.1, 0.7, 0.1})}};
  Chart shares{.kind = Chart::Kind::horizontal_bars,
               .title = "Share of data movement",
               .y = {"Share of the step", false, "%"},
               .categories = {"copies with the wait before them", "transfers alone", "the study"}};
  shares.series = {{"measured here", heights({55.1, 20.4, kMissing})},
                   {"the study (abstract)", heights({kMissing, kMissing, 91}), true, true}};
  return {"breakdown", "The step, divided", {chart, shares}};
}

Section roofline() {
  Chart chart{.kind = Chart::Kind::lines,
              .title = "Roofline",
              .x = {"Arithmetic intensity", true, "flop/byte"},
              .y = {"Speed", true, "GFLOP/s"}};
  Series roof{"ceiling", {}}, ops{"ops", {}, false};
  for (double x = 0.05; x < 200; x *= 1.3) roof.points.push_back({x, std::min(95.0, 18 * x), ""});
  const char* names[] = {"conv2d", "conv2d dW", "conv2d dX", "matmul", "relu", "max_pool", "softmax", "sgd"};
  for (int i = 0; i < 8; ++i)
    ops.points.push_back({0.1 * std::pow(2.4, i), 0.4 * 18 * 0.1 * std::pow(1.9, i), names[7 - i]});
  chart.series = {roof, ops};
  return {
      "roofline",
      "Roofline",
      {chart,
       "Every op stands below the ceiling that holds it:\n- left of the bend, bandwidth\n- right of it, arithmetic"}};
}

Section cures() {
  Chart chart{.kind = Chart::Kind::waterfall,
              .title = "Each cure by itself",
              .y = {"Step time", false, "ms"},
              .categories = {"MNN-shaped kernels and baseline", "tuned kernels", "one non-blocking transfer",
                             "state on the device", "zero-copy input", "fusion", "replay"}};
  chart.series = {{"", heights({21.7, 13.8, 9.9, 8.2, 8.4, 5.1, 4.7})}};
  return {"cures", "Each cure by itself", {chart}};
}

Section ops() {
  Table table{.title = "Top ops",
              .columns = {{"Op"}, {"Phase"}, {"Calls", "", 0}, {"Time", "us", 1, true}, {"Share", "%", 1}}};
  for (int i = 0; i < 40; ++i)
    table.rows.push_back({"op_" + std::to_string(i),
                          i % 3 == 0   ? "forward"
                          : i % 3 == 1 ? "backward"
                                       : "update",
                          double(i % 5 + 1), 900.0 / (i + 1), 23.4 / (i + 1)});
  return {"ops", "Top ops", {table, Table{.title = "Nothing", .columns = {{"Op"}, {"Time", "ms"}}}}};
}

Section phones() {
  Chart chart{.kind = Chart::Kind::bars,
              .title = "Predicted step time",
              .y = {"Step time", true, "ms"},
              .categories = {"16-16", "16-16-16-16", "256-256", "784-256-128-16"},
              .badge = "prediction"};
  chart.series = {{"CPU", heights({0.02, 0.05, 0.31, 1.4})},
                  {"GPU, baseline", heights({2.2, 3.9, 3.1, 6.3}), true, true},
                  {"GPU, resident", heights({0.2, 0.5, 0.4, 0.9}), true, true}};
  return {"phones", "Phones that are not at hand", {"Nothing in this section was measured.", chart}, "prediction"};
}

Section names() {
  const std::string nasty =
      "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>\"&amp;@TITLE@";
  Chart chart{.title = nasty, .x = {nasty}, .y = {nasty, false, nasty}, .categories = {nasty, "b"}, .note = nasty};
  chart.series = {{nasty, {{0, 1, nasty}, {0, 2, nasty}}}};
  Table table{
      .title = nasty, .columns = {{nasty, nasty}, {"n", "", 0}}, .rows = {{nasty, 2.0}, {"a", 1.0}}, .note = nasty};
  return {"names </h2>", nasty, {nasty, table, chart}, nasty};
}

Report sample() {
  return {.title = "The study on this device",
          .subtitle = "opencl:0, a made-up device, 16 November 2026, Stoker 0.1.0",
          .warnings = {"This OpenCL device is a CPU. Nothing below says anything about **GPUs**.",
                       "The study was interrupted: sections 3 and 5 are missing."},
          .sections = {computation(), breakdown(), roofline(), cures(), ops(), phones(), names()},
          .highlights = {{"Data movement", "20 %", "of a step in baseline mode; the study: 91 %"},
                         {"Step time", "4.6\u00d7 less", "resident and replayed against the baseline"},
                         {"Bound by", "synchronisation", "74 blocking calls a step"},
                         {"Crossover", "256-256", "smaller nets train faster on the CPU"}}};
}

}  // namespace
}  // namespace stoker

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::ofstream file(arguments[1], std::ios::binary);
  file << stoker::to_html(stoker::sample());
  return file.flush() ? 0 : 1;
}
