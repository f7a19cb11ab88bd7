#include "study/predict.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace stoker {
namespace {

double crossing(const Crossings& crossings, double call_seconds, double rate) {
  return static_cast<double>(crossings.calls) * call_seconds + crossings.bytes / rate;
}

// Of the kernel alone.
double kernel_seconds(const LaunchWork& work, const Machine& machine) {
  const double busy =
      machine.items_to_fill > 0 && work.items > 0 ? std::min(1.0, work.items / machine.items_to_fill) : 1;
  const Curve& compute = machine.compute[static_cast<std::size_t>(work.kind)];
  return std::max(compute.seconds(work.flops) / busy, machine.memory.seconds(work.bytes));
}

}  // namespace

double Curve::at(double size) const {
  DCHECK(!points.empty());
  if (size <= points.front().first) return points.front().second;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const auto& [a, rate_a] = points[i - 1];
    const auto& [b, rate_b] = points[i];
    if (size > b) continue;
    const double share = std::log(size / a) / std::log(b / a);
    return std::exp(std::log(rate_a) * (1 - share) + std::log(rate_b) * share);
  }
  return points.back().second;
}

double Curve::seconds(double size) const { return size > 0 ? size / at(size) : 0; }

Prediction predict(const StepCounts& counts, const Machine& machine) {
  Prediction result;
  for (const LaunchWork& work : counts.launches) {
    const double kernel = kernel_seconds(work, machine);
    const double start = machine.overlaps ? std::max(0.0, machine.launch_seconds - kernel) : machine.launch_seconds;
    (work.converts ? result.movement : result.kernels) += kernel;
    (work.converts ? result.movement : result.launches) += start;
  }
  // A copy on the device reads and writes.
  for (std::int64_t i = 0; i < counts.copies.calls; ++i) {
    const double bytes = 2 * counts.copies.bytes / static_cast<double>(counts.copies.calls);
    result.movement += machine.launch_seconds + machine.memory.seconds(bytes);
  }
  result.movement += crossing(counts.reads, machine.read_seconds, machine.to_host);
  result.movement += crossing(counts.writes, machine.write_seconds, machine.to_device);
  // The host fills the next batch while the device is at this one: what is not hidden counts.
  const double fill = crossing(counts.maps, machine.map_seconds, machine.host_memory);
  result.movement += std::max(0.0, fill - result.kernels - result.launches);
  result.movement += static_cast<double>(counts.objects) * machine.object_seconds;
  result.host =
      counts.host_bytes / machine.host_memory + static_cast<double>(counts.host_ops) * machine.host_op_seconds;
  return result;
}

}  // namespace stoker
