// What the study measured, as plain data: the report and the verdict are made from it alone.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "profile/breakdown.h"

namespace stoker {

inline constexpr const char* kMnistNet = "mlp:784-256-128-16";  // of the study; its 91 % are probably this net's
inline constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

// 1. Computation: a matrix product in GFLOP/s.
struct MatmulRow {
  std::int64_t m = 0, n = 0, k = 0;
  bool layer = false;         // of the 2022 study's nets; else a square
  double cpu = kNotMeasured;  // our CPU backend
  double mnn = kNotMeasured;  // the device, a kernel in the shape of MNN 1.1's
  double tuned = kNotMeasured;
};

// Of one step.
struct CallCounts {
  double launches = 0;
  double reads = 0;
  double writes = 0;
  double blocking = 0;
  double objects = 0;
  double host_bytes = 0;
};

// 2. Memory: a step of the baseline.
struct MovementRow {
  std::string model;
  std::int64_t batch = 0;
  int parameters = 0;  // tensors
  std::int64_t parameter_bytes = 0;
  Breakdown breakdown;  // of one step
  CallCounts counts;
  double loss_gap = 0;  // the largest difference to the resident step's losses

  // As a stopwatch around the copies sees it, the wait before them included.
  [[nodiscard]] double share_with_waits() const { return breakdown.blocking_copies / breakdown.wall; }
  [[nodiscard]] double share_of_transfers() const { return breakdown.of(Activity::copy) / breakdown.wall; }
};

// Milliseconds. backward: with the gradients left where the update finds them.
struct PartTimes {
  double forward = kNotMeasured;
  double backward = kNotMeasured;
  double step = kNotMeasured;
};

// 3. Training.
struct TrainingRow {
  std::string model;
  std::int64_t batch = 0;
  std::int64_t parameters = 0;
  double flops = 0;  // a step
  double bytes = 0;  // that a step must move at least, in the device's memory
  bool of_study = false;
  PartTimes cpu;
  PartTimes baseline;
  PartTimes resident;
};

// The same net at another batch: milliseconds a step.
struct BatchRow {
  std::string model;
  std::int64_t batch = 0;
  double cpu = 0;
  double resident = 0;
};

// 4. The step after one more change.
struct CureRow {
  std::string model;
  std::int64_t batch = 0;
  std::string name;
  std::string change;  // what is different from the row before
  double milliseconds = 0;
  CallCounts counts;
};

// What could not be measured, and why.
struct Skipped {
  std::string what;
  std::string why;
};

struct StudyResults {
  DeviceInfo device;
  DeviceInfo cpu;
  bool quick = false;
  bool interrupted = false;
  Ceilings device_ceilings;
  Ceilings cpu_ceilings;
  std::vector<MatmulRow> matmuls;
  std::vector<MovementRow> movements;
  std::vector<TrainingRow> trainings;
  std::vector<BatchRow> batches;
  std::vector<CureRow> cures;
  std::vector<Skipped> skipped;
};

}  // namespace stoker
