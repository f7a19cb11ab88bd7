// A model of a training step's time: each launch is held by the device's compute or by its memory (a roofline),
// starting it costs something, and so does each crossing. What a device can do is a Machine: measured, or read from a
// data sheet.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "study/step_counts.h"

namespace stoker {

// A rate as a function of how much there is to do at once: interpolated between points, constant beyond them. The
// points ascend in size; more work is never a lower time.
struct Curve {
  std::vector<std::pair<double, double>> points;  // (flops or bytes, a second)

  [[nodiscard]] static Curve constant(double rate) { return {{{1.0, rate}}}; }
  [[nodiscard]] double at(double size) const;
  [[nodiscard]] double seconds(double size) const;  // for so much; 0 for nothing
};

struct Machine {
  std::array<Curve, kWorkKinds> compute;  // by WorkKind
  Curve memory;
  double items_to_fill = 0;  // work-items below which parts of the device idle; 0: a CPU, which needs none
  bool overlaps = false;     // a kernel is started while the one before it runs
  double launch_seconds = 0;
  double read_seconds = 0;  // of a blocking call, beside the bytes
  double write_seconds = 0;
  double map_seconds = 0;
  double object_seconds = 0;
  double to_device = 1e12;  // bytes a second
  double to_host = 1e12;
  double host_memory = 1e12;  // of the optimizer on the host
  double host_op_seconds = 0;
};

struct Prediction {
  double kernels = 0;   // seconds in which kernels run
  double launches = 0;  // of starting them, as far as it is not hidden
  double movement = 0;  // crossings, copies, conversions, buffers made
  double host = 0;

  [[nodiscard]] double total() const { return kernels + launches + movement + host; }
};

[[nodiscard]] Prediction predict(const StepCounts& counts, const Machine& machine);

}  // namespace stoker
