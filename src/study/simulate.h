// Predicted step times on phones that are not at hand. Everything here is a prediction, and a range: from the fastest
// that the chip's figures allow to the slowest.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "profile/report.h"
#include "study/phones.h"
#include "study/predict.h"

namespace stoker {

enum class StepMode : std::uint8_t { resident, baseline };
[[nodiscard]] const char* to_string(StepMode mode);

struct PredictionRange {
  Prediction fast;
  Prediction slow;
};
[[nodiscard]] PredictionRange predict(const StepCounts& counts, const MachineRange& machines);

struct Range {
  double low = 0;
  double high = 0;
};
[[nodiscard]] Range seconds(const PredictionRange& range);
// How many times as long as the other.
[[nodiscard]] Range ratio(const PredictionRange& a, const PredictionRange& b);
// Of the step: transfers, conversions and buffers alone.
[[nodiscard]] Range movement_share(const PredictionRange& range);
// With the wait for the kernels before it booked as a copy, as the study may have measured.
[[nodiscard]] Range share_with_wait(const PredictionRange& range);

// A net on a phone.
struct PhoneStep {
  StepCounts resident_counts;
  StepCounts baseline_counts;
  PredictionRange resident;
  PredictionRange baseline;
  PredictionRange cpu_study;  // at the study's 15-30 GFLOPS
  PredictionRange cpu_spec;   // at what was measured of the phone's CPU
};

// Plans each net once for each family of GPUs: phones share the counts.
class Simulator {
 public:
  [[nodiscard]] PhoneStep step(const nn::Model& model, std::int64_t batch, const Chip& chip);

 private:
  struct Counts {
    StepCounts resident;
    StepCounts baseline;
  };
  [[nodiscard]] const Counts& gpu_counts(const nn::Model& model, std::int64_t batch, opencl::Family family);
  [[nodiscard]] const StepCounts& host_counts(const nn::Model& model, std::int64_t batch);

  std::map<opencl::Family, std::unique_ptr<opencl::DescribedDevice>> devices_;
  std::map<std::string, Counts> gpu_;
  std::map<std::string, StepCounts> host_;
};

struct SimulatedNet {
  nn::Model model;
  std::int64_t batch;
};
// 16-16, 16-16-16-16, 256-256, 784-256-128-16, batch 32 (secondary, unverified).
[[nodiscard]] std::vector<SimulatedNet> study_nets();

// One net on one phone: counts, the chip's figures with their sources, the step's parts.
[[nodiscard]] Section simulation_section(const SimulatedNet& net, const Chip& chip, std::span<const StepMode> modes);
// `nets` on `chips`, against the CPU, with what of the study's findings follows and what does not: for
// `stoker study --phones`.
[[nodiscard]] Section phones_section(std::span<const SimulatedNet> nets, std::span<const Chip* const> chips);
// The study's nets on its phones.
[[nodiscard]] Section phones_section();

}  // namespace stoker
