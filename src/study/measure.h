// The study's measurements, one function each. They know nothing of the report.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nn/model.h"
#include "run/session.h"
#include "study/results.h"

namespace stoker {

struct MeasureOptions {
  std::string device = "opencl";
  int threads = 0;
  bool self_test = true;
  double seconds = 1.0;             // for each figure, about
  std::function<void()> interrupt;  // between kernels that are compiled; what it throws ends the measurement
  std::function<void(const std::string&)> note;
};

// Products of the sizes in `rows`, filled in. A kernel that would take many times `seconds` is left out.
void measure_matmul(MatmulRow& row, Backend& cpu, Backend& mnn, Backend& tuned, double seconds);

[[nodiscard]] MovementRow measure_movement(const nn::Model& model, std::int64_t batch, const MeasureOptions& options);
[[nodiscard]] TrainingRow measure_training(const nn::Model& model, std::int64_t batch, const MeasureOptions& options);

[[nodiscard]] BatchRow measure_batch(const nn::Model& model, std::int64_t batch, const MeasureOptions& options);

// The changes from MNN's way to ours, in order. Each is measured by itself, so that a study can stop between them.
struct Cure {
  std::string name;
  std::string change;
};
[[nodiscard]] const std::vector<Cure>& cures();
[[nodiscard]] CureRow measure_cure(std::size_t cure, const nn::Model& model, std::int64_t batch,
                                   const MeasureOptions& options);

// What the sessions of the study have in common: plain SGD at a small rate, so that random labels keep it finite.
[[nodiscard]] SessionOptions study_session(const MeasureOptions& options);
[[nodiscard]] CallCounts counts_of(const Counters& counted, int steps);

}  // namespace stoker
