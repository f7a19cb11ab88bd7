// Predictions as sections of a report: tables of ranges, and words computed from them.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "study/simulate.h"

namespace stoker {
namespace {

constexpr const char* kPrediction =
    "Predictions, not measurements: no phone was at hand. Each is a range, from the fastest to the slowest that the "
    "published figures of the chip allow; nothing was fitted to the outcome of a study.";

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value >= 100 ? "%.0f" : value >= 10 ? "%.1f" : "%.3g", value);
  return text;
}

std::string text_of(double low, double high) {
  const std::string a = number(low);
  const std::string b = number(high);
  return a == b ? a : a + " - " + b;
}
std::string text_of(const Range& range) { return text_of(range.low, range.high); }
std::string milliseconds(const Range& range) { return text_of(1e3 * range.low, 1e3 * range.high); }
std::string percent(const Range& range) {
  const long low = std::lround(100 * range.low);
  const long high = std::lround(100 * range.high);
  return low == high ? std::to_string(low) : str(low, " - ", high);
}

Table figures_table(const Chip& chip) {
  const ChipFigures figures = figures_of(chip);
  Table table{.title = str("What is known of ", chip.soc, ", ", chip.gpu),
              .columns = {{"figure"}, {"unit"}, {"range"}, {"source"}},
              .rows = {},
              .note =
                  "M: measured, S: maker or database, D: derived, K: without a reference, P: the 2022 study; 'from': "
                  "missing, taken from the nearest chips that have it."};
  const auto add = [&](const char* name, const char* unit, const Filled& figure) {
    table.rows.push_back({name, unit, text_of(figure.low, figure.high), figure.source});
  };
  add("fp32 peak of the GPU", "GFLOPS", figures.peak_gflops);
  add("best published matrix product", "GFLOPS", figures.gemm_gflops);
  add("memory, as the GPU sees it", "GB/s", figures.gbs);
  add("host to device", "GB/s", figures.write_gbs);
  add("device to host", "GB/s", figures.read_gbs);
  add("launch", "us", figures.launch_us);
  add("fp32 of the CPU", "GFLOPS", figures.cpu_gflops);
  const MachineRange gpu = gpu_of(chip);
  for (const WorkKind kind : {WorkKind::matmul, WorkKind::conv, WorkKind::conv_weight_grad, WorkKind::depthwise}) {
    const auto index = static_cast<std::size_t>(kind);
    add("used for our kernels", "GFLOPS",
        {gpu.slow.compute[index].at(1) / 1e9, gpu.fast.compute[index].at(1) / 1e9,
         str(to_string(kind),
             kind == WorkKind::depthwise ? ": our hot loops as compiled for "
                                         : ": from the published product to our hot loop as compiled for ",
             *chip.compiled_for != '\0' ? chip.compiled_for : "any known GPU")});
  }
  return table;
}

Table counts_table(const PhoneStep& step, std::span<const StepMode> modes) {
  Table table{.title = "What a step does, counted from its plan",
              .columns = {{"mode"},
                          {"launches", "", 0},
                          {"compute", "MFLOP", 2},
                          {"memory traffic", "MB", 2},
                          {"blocking reads", "", 0},
                          {"blocking writes", "", 0},
                          {"crossing", "kB", 1},
                          {"buffers made", "", 0}},
              .rows = {},
              .note = {}};
  for (const StepMode mode : modes) {
    const StepCounts& counts = mode == StepMode::resident ? step.resident_counts : step.baseline_counts;
    table.rows.push_back(
        {std::string(to_string(mode)), static_cast<double>(counts.launches.size()), counts.flops() / 1e6,
         counts.bytes() / 1e6, static_cast<double>(counts.reads.calls), static_cast<double>(counts.writes.calls),
         (counts.maps.bytes + counts.reads.bytes + counts.writes.bytes) / 1e3, static_cast<double>(counts.objects)});
  }
  return table;
}

std::vector<Cell> parts_row(const std::string& name, const PredictionRange& range, const Range& times_cpu) {
  const auto part = [&](double Prediction::*member) { return milliseconds({range.fast.*member, range.slow.*member}); };
  return {name,
          milliseconds(seconds(range)),
          part(&Prediction::kernels),
          part(&Prediction::launches),
          part(&Prediction::movement),
          part(&Prediction::host),
          percent(movement_share(range)),
          text_of(times_cpu)};
}

Table parts_table(const PhoneStep& step, const Chip& chip, std::span<const StepMode> modes) {
  Table table{.title = "Predicted time of a step",
              .columns = {{"where"},
                          {"step", "ms"},
                          {"kernels", "ms"},
                          {"launches", "ms"},
                          {"movement", "ms"},
                          {"host", "ms"},
                          {"movement", "%"},
                          {"times the CPU at 15-30 GFLOPS"}},
              .rows = {},
              .note = "15-30 GFLOPS: the study's CPU (abstract)."};
  const auto add = [&](const std::string& name, const PredictionRange& range) {
    table.rows.push_back(parts_row(name, range, ratio(range, step.cpu_study)));
  };
  for (const StepMode mode : modes)
    add(str("GPU, ", to_string(mode)), mode == StepMode::resident ? step.resident : step.baseline);
  table.rows.push_back(parts_row("CPU at the study's 15-30 GFLOPS", step.cpu_study, {1, 1}));
  const Filled published = figures_of(chip).cpu_gflops;
  add(str("CPU at ", text_of(published.low, published.high), " GFLOPS (", published.source, ")"), step.cpu_spec);
  return table;
}

// A net on a chip.
struct Row {
  const SimulatedNet* net;
  const Chip* chip;
  PhoneStep step;
};

std::vector<Row> simulate_all(std::span<const SimulatedNet> nets, std::span<const Chip* const> chips) {
  Simulator simulator;
  std::vector<Row> rows;
  for (const Chip* chip : chips)
    for (const SimulatedNet& net : nets) rows.push_back({&net, chip, simulator.step(net.model, net.batch, *chip)});
  return rows;
}

Table overview(std::span<const Row> rows) {
  Table table{.title = "Predicted step time, baseline and resident, against the CPU",
              .columns = {{"phone"},
                          {"net"},
                          {"batch", "", 0},
                          {"CPU, 15-30 GFLOPS", "ms"},
                          {"CPU, published GFLOPS", "ms"},
                          {"GPU baseline", "ms"},
                          {"baseline / CPU"},
                          {"movement", "%"},
                          {"movement with wait", "%"},
                          {"GPU resident", "ms"},
                          {"resident / CPU"},
                          {"launches", "", 0}},
              .rows = {},
              .note =
                  "Ratios are to the CPU at 15-30 GFLOPS (abstract). Movement: transfers, conversions and buffers "
                  "alone; with wait: the wait for earlier kernels booked as a copy, as the study may have measured."};
  for (const Row& row : rows) {
    const PhoneStep& step = row.step;
    table.rows.push_back({std::string(row.chip->id), row.net->model.name, static_cast<double>(row.net->batch),
                          milliseconds(seconds(step.cpu_study)), milliseconds(seconds(step.cpu_spec)),
                          milliseconds(seconds(step.baseline)), text_of(ratio(step.baseline, step.cpu_study)),
                          percent(movement_share(step.baseline)), percent(share_with_wait(step.baseline)),
                          milliseconds(seconds(step.resident)), text_of(ratio(step.resident, step.cpu_study)),
                          static_cast<double>(step.resident_counts.launches.size())});
  }
  return table;
}

double middle(const Range& range) { return std::sqrt(range.low * range.high); }

Chart ratio_chart(std::span<const Row> rows, std::span<const SimulatedNet> nets) {
  Chart chart{.kind = Chart::Kind::bars,
              .title = "Predicted: GPU time over CPU time (middle of the range)",
              .x = {.title = "net"},
              .y = {.title = "times the CPU at 15-30 GFLOPS", .logarithmic = true},
              .categories = {},
              .series = {},
              .note = "Below 1 the GPU is faster. The middle is the geometric mean of both ends."};
  for (const SimulatedNet& net : nets) chart.categories.push_back(net.model.name);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    if (i % nets.size() == 0) {
      chart.series.push_back({.name = str(row.chip->id, " baseline"), .points = {}, .dashed = true});
      chart.series.push_back({.name = str(row.chip->id, " resident"), .points = {}, .dashed = true});
    }
    const Range baseline = ratio(row.step.baseline, row.step.cpu_study);
    const Range resident = ratio(row.step.resident, row.step.cpu_study);
    chart.series[chart.series.size() - 2].points.push_back({0, middle(baseline), "predicted " + text_of(baseline)});
    chart.series.back().points.push_back({0, middle(resident), "predicted " + text_of(resident)});
  }
  return chart;
}

std::string count_words(std::size_t yes, std::size_t of) { return str(yes, " of ", of); }

// What the study found, and whether the predictions say the same: words, from the ranges.
std::vector<std::string> findings(std::span<const Row> rows, std::size_t nets) {
  std::size_t surely_slower = 0;
  std::size_t maybe_slower = 0;
  std::size_t falling = 0;
  std::size_t chips = 0;
  std::size_t resident_faster = 0;
  std::size_t resident_may_be_faster = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Range baseline = ratio(rows[i].step.baseline, rows[i].step.cpu_study);
    const Range resident = ratio(rows[i].step.resident, rows[i].step.cpu_study);
    surely_slower += baseline.low > 1 ? 1 : 0;
    maybe_slower += baseline.high > 1 ? 1 : 0;
    resident_faster += resident.high < 1 ? 1 : 0;
    resident_may_be_faster += resident.low < 1 ? 1 : 0;
    if (i % nets != 0 || nets < 2) continue;
    ++chips;
    const Range last = ratio(rows[i + nets - 1].step.baseline, rows[i + nets - 1].step.cpu_study);
    falling += middle(last) < middle(baseline) ? 1 : 0;
  }
  return {
      str("In baseline mode the GPU is predicted slower than the CPU over the whole range for ",
          count_words(surely_slower, rows.size()), " pairs of phone and net, and in a part of the range for ",
          count_words(maybe_slower, rows.size()),
          ". The study: slower for all (abstract), at least 5 times (secondary, "
          "unverified)."),
      str("From the smallest net to the largest the ratio GPU / CPU falls on ", count_words(falling, chips),
          " phones, by the middles of the ranges. The study: it falls as nets grow (secondary, unverified)."),
      str("In resident mode the GPU is predicted faster than that CPU over the whole range for ",
          count_words(resident_faster, rows.size()), " pairs, and may be for ",
          count_words(resident_may_be_faster, rows.size()), "."),
  };
}

std::string share_words(std::span<const Row> rows) {
  std::string text = "Share of data movement in a baseline step of the largest net, predicted:";
  const std::string& net = rows.back().net->model.name;
  for (const Row& row : rows) {
    if (row.net->model.name != net) continue;
    text += str(" ", row.chip->id, " ", percent(movement_share(row.step.baseline)), " % (with the wait for kernels ",
                percent(share_with_wait(row.step.baseline)), " %),");
  }
  text.back() = '.';
  return text + " The study: about 91 % (abstract), for " + net + " on MNIST (secondary, unverified).";
}

}  // namespace

Section simulation_section(const SimulatedNet& net, const Chip& chip, std::span<const StepMode> modes) {
  const PhoneStep step = Simulator().step(net.model, net.batch, chip);
  return {.id = "simulation",
          .title = str("PREDICTION: ", net.model.name, ", batch ", net.batch, ", on ", chip.id, " (", chip.gpu, ")"),
          .blocks = {std::string(kPrediction), counts_table(step, modes), parts_table(step, chip, modes),
                     figures_table(chip)}};
}

Section phones_section(std::span<const SimulatedNet> nets, std::span<const Chip* const> chips) {
  require(!nets.empty() && !chips.empty(), Code::bad_argument, "simulate: no net or no phone was given");
  const std::vector<Row> rows = simulate_all(nets, chips);
  Section section{.id = "phones",
                  .title = "PREDICTIONS for phones that are not at hand",
                  .blocks = {std::string(kPrediction), overview(rows), ratio_chart(rows, nets)}};
  for (std::string& words : findings(rows, nets.size())) section.blocks.emplace_back(std::move(words));
  section.blocks.emplace_back(share_words(rows));
  return section;
}

Section phones_section() {
  const std::vector<SimulatedNet> nets = study_nets();
  std::vector<const Chip*> chips;
  for (const std::string_view id : study_phones()) chips.push_back(&find_chip(id));
  return phones_section(nets, chips);
}

}  // namespace stoker
