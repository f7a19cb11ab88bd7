#include "study/phones.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace stoker {
namespace {

// A figure of a chip, or a ratio of two of them, where the chip has it.
using Getter = Figure (*)(const Chip& chip);

Figure ratio(const Figure& a, const Figure& b) {
  if (!a.is_known() || !b.is_known()) return {};
  return {a.low / b.high, a.high / b.low, a.source};
}

Figure peak_of(const Chip& chip) { return chip.measured_gflops.is_known() ? chip.measured_gflops : chip.peak_gflops; }

// The chips whose figure stands for a missing one: of the same year, else the nearest before and after.
std::vector<const Chip*> nearest(const Chip& chip, Getter get) {
  std::vector<const Chip*> candidates;
  for (const bool same_family : {true, false}) {
    for (const Chip& other : all_chips())
      if (get(other).is_known() && (!same_family || other.family == chip.family)) candidates.push_back(&other);
    if (!candidates.empty()) break;
  }
  int before = 0;
  int after = 1 << 20;
  for (const Chip* other : candidates) {
    if (other->year <= chip.year) before = std::max(before, other->year);
    if (other->year >= chip.year) after = std::min(after, other->year);
  }
  if (before == chip.year) after = before;
  std::erase_if(candidates, [&](const Chip* other) { return other->year != before && other->year != after; });
  return candidates;
}

// The chip's own figure, or the range of its neighbours', times `scale`.
Filled filled(const Chip& chip, const Figure& own, Getter get, const Figure& scale = {1, 1, ""}) {
  if (own.is_known()) return {own.low, own.high, own.source};
  Filled result;
  for (const Chip* other : nearest(chip, get)) {
    const Figure figure = get(*other);
    result.low = result.source.empty() ? figure.low : std::min(result.low, figure.low);
    result.high = std::max(result.high, figure.high);
    result.source += (result.source.empty() ? "from " : ", ") + std::string(other->id);
  }
  result.low *= scale.low;
  result.high *= scale.high;
  return result;
}

struct Shares {
  double middle = 0;
  double best = 0;
};

// Of a GPU that no compiler at hand knows: the range of all that are known.
Shares hot_loop(const Chip& chip, WorkKind kind) {
  Shares shares;
  for (const HotLoop& row : hot_loops()) {
    if (row.kind != kind || (*chip.compiled_for != '\0' && std::string_view(chip.compiled_for) != row.gpu)) continue;
    shares.middle = shares.middle == 0 ? row.middle : std::min(shares.middle, row.middle);
    shares.best = std::max(shares.best, row.best);
  }
  return shares;
}

constexpr double kGiga = 1e9;
constexpr double kMicro = 1e-6;
// A blocking call has its command's way to the device, and the host's way back from sleep: no measurement was found of
// the second, so it is taken for nothing up to as much again.
constexpr double kMostWays = 2;
// To hide the latency of arithmetic and memory, a GPU wants several work-items for each of its lanes.
constexpr double kMostItems = 4;
// To wake the threads of a CPU for a kernel.
constexpr double kCpuJob[] = {0.5 * kMicro, 10 * kMicro};

double compute_rate(const Chip& chip, const ChipFigures& figures, WorkKind kind, bool fast) {
  const Shares shares = hot_loop(chip, kind);
  const double loop = fast ? shares.best * figures.peak_gflops.high : shares.middle * figures.peak_gflops.low;
  switch (kind) {
    case WorkKind::stream: return kGiga * (fast ? figures.peak_gflops.high : figures.peak_gflops.low / kMostItems);
    case WorkKind::depthwise: return kGiga * loop;
    default: break;
  }
  return kGiga * (fast ? std::max(figures.gemm_gflops.high, loop) : std::min(figures.gemm_gflops.low, loop));
}

Machine gpu_machine(const Chip& chip, const ChipFigures& figures, bool fast) {
  const auto best = [&](const Filled& figure) { return kGiga * (fast ? figure.high : figure.low); };
  const double launch = kMicro * (fast ? figures.launch_us.low : figures.launch_us.high);
  Machine machine;
  for (int kind = 0; kind < kWorkKinds; ++kind) {
    machine.compute[static_cast<std::size_t>(kind)] =
        Curve::constant(compute_rate(chip, figures, static_cast<WorkKind>(kind), fast));
  }
  machine.memory = Curve::constant(best(figures.gbs));
  machine.items_to_fill = fast ? figures.alus.low : kMostItems * figures.alus.high;
  machine.overlaps = fast;
  machine.launch_seconds = launch;
  machine.read_seconds = machine.write_seconds = launch * (fast ? 1 : kMostWays);
  machine.map_seconds = machine.read_seconds;
  machine.object_seconds = fast ? 0 : launch;  // no measurement was found: up to a launch's
  machine.to_device = best(figures.write_gbs);
  machine.to_host = best(figures.read_gbs);
  machine.host_memory = best(figures.gbs);
  machine.host_op_seconds = fast ? kCpuJob[0] : kCpuJob[1];
  return machine;
}

Machine cpu_machine(const ChipFigures& figures, double gflops, bool fast) {
  Machine machine;
  machine.compute.fill(Curve::constant(kGiga * gflops));
  machine.memory = Curve::constant(kGiga * (fast ? figures.gbs.high : figures.gbs.low));
  machine.launch_seconds = fast ? kCpuJob[0] : kCpuJob[1];
  return machine;
}

}  // namespace

const Chip& find_chip(std::string_view id) {
  std::string ids;
  for (const Chip& chip : all_chips()) {
    if (chip.id == id) return chip;
    ids += (ids.empty() ? "" : ", ") + std::string(chip.id);
  }
  fail(Code::bad_argument, "there is no phone '", id, "' in the table; there are ", ids);
}

ChipFigures figures_of(const Chip& chip) {
  const Figure peak = peak_of(chip);
  ChipFigures figures;
  figures.peak_gflops = {peak.low, peak.high, peak.source};
  figures.gemm_gflops = filled(
      chip, chip.gemm_gflops, [](const Chip& other) { return ratio(other.gemm_gflops, peak_of(other)); }, peak);
  figures.gbs = filled(
      chip, chip.measured_gbs, [](const Chip& other) { return ratio(other.measured_gbs, other.dram_gbs); },
      chip.dram_gbs);
  figures.write_gbs = filled(chip, chip.write_gbs, [](const Chip& other) { return other.write_gbs; });
  figures.read_gbs = filled(chip, chip.read_gbs, [](const Chip& other) { return other.read_gbs; });
  figures.launch_us = filled(chip, chip.launch_us, [](const Chip& other) { return other.launch_us; });
  figures.cpu_gflops = filled(chip, chip.cpu_gflops, [](const Chip& other) { return other.cpu_gflops; });
  const Filled mhz = filled(chip, chip.gpu_mhz, [](const Chip& other) { return other.gpu_mhz; });
  // A lane does a multiply-add a cycle: 2 flops. The maker's peak, which is that of the clock.
  figures.alus = {chip.peak_gflops.low / (2e-3 * mhz.high), chip.peak_gflops.high / (2e-3 * mhz.low), mhz.source};
  return figures;
}

MachineRange gpu_of(const Chip& chip) {
  const ChipFigures figures = figures_of(chip);
  return {gpu_machine(chip, figures, true), gpu_machine(chip, figures, false)};
}

MachineRange cpu_of(const Chip& chip, const GflopsRange& gflops) {
  const ChipFigures figures = figures_of(chip);
  return {cpu_machine(figures, gflops.high, true), cpu_machine(figures, gflops.low, false)};
}

}  // namespace stoker
