// The self-test: small training graphs, some for each kernel family, computed on a device and on the CPU. A family that
// differs is put into quarantine: its plain kernels take over.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/opencl/opencl_backend.h"

namespace stoker::opencl {

struct CheckResult {
  std::string family;  // of kernels, as in tuning.h
  std::string name;    // of the case
  double error = 0.0;  // the largest difference, as a share of the largest value
  bool passed = false;
  std::string problem;  // why it did not pass, in words
};

struct CheckOptions {
  bool brief = false;  // one case a family
  std::string family;  // only this one; empty: all
  std::function<void(const CheckResult&)> on_result;
};

// The largest difference as a share of the largest value, which is at least 1 (sums of many terms cancel); infinite
// where one of the two is NaN and the other is not.
[[nodiscard]] double difference(std::span<const float> want, std::span<const float> got);

// Computes each case forward and backward on `device` and on the CPU.
[[nodiscard]] std::vector<CheckResult> run_checks(Backend& device, const CheckOptions& options = {});

}  // namespace stoker::opencl
