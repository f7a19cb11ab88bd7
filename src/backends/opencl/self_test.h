// The self-test of a device: which kernel families compute rightly, found once and remembered by device, driver and the
// text of the kernels.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/opencl/check.h"

namespace stoker::opencl {

struct SelfTest {
  std::vector<CheckResult> results;     // of the kernels that the device started with
  std::vector<std::string> quarantine;  // families whose plain kernels are right and the others not
  std::vector<std::string> broken;      // families that are wrong even so
};

// Runs the checks. A family that fails is put into quarantine in the backend's tuning, and checked again.
[[nodiscard]] SelfTest run_self_test(ClBackend& backend, const CheckOptions& options = {});

// What is kept of it (not the results). None: this device has not been tested with these kernels.
[[nodiscard]] std::optional<SelfTest> load_self_test(const Device& device);
// Empty, or why it could not be stored.
[[nodiscard]] std::string store_self_test(const Device& device, const SelfTest& test);

// What the user should know of it, a line each; empty if all is right.
[[nodiscard]] std::vector<std::string> describe(const SelfTest& test, const Device& device);

// For a backend that is about to be used: quarantines what was found before or, if `run`, finds out now by a shortened
// self-test of `fresh`, a backend with the seeds alone.
void apply_self_test(ClBackend& backend, bool run, const std::function<std::unique_ptr<ClBackend>()>& fresh,
                     const std::function<void(const std::string&)>& note);

}  // namespace stoker::opencl
