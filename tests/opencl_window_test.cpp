// Depthwise convolutions and pooling on the OpenCL devices of this machine against the CPU, forward and backward, fused
// and not: the plain kernels, and the others with the parameters of CPUs and of phones' GPUs.
#include <gtest/gtest.h>

#include "backends/opencl/check.h"
#include "backends/opencl/devices.h"
#include "base/error.h"

namespace stoker::opencl {
namespace {

void expect_right(const char* family, const std::vector<Params>& list) {
  const std::vector<DeviceInfo> devices = list_opencl_devices();
  if (devices.empty()) GTEST_SKIP() << "no OpenCL device";
  for (const DeviceInfo& device : devices) {
    for (const Params& params : list) {
      const std::unique_ptr<ClBackend> backend = make_seeded_backend(device.id, {});
      if (params.empty()) {
        backend->tuning().quarantine(family);
      } else {
        backend->tuning().set(family, "", params);
      }
      for (const CheckResult& result : run_checks(*backend, {.family = family})) {
        EXPECT_TRUE(result.passed) << device.id << ", " << to_string(params) << ": " << result.name << ": "
                                   << result.problem << ", error " << result.error;
      }
    }
  }
}

TEST(OpenclWindow, DepthwiseMatchesTheCpuWithEveryKernel) {
  expect_right("depthwise", {{},
                             {{"VEC", 16}, {"ROWS", 4}, {"GROUP", 1}},
                             {{"VEC", 8}, {"ROWS", 1}, {"GROUP", 1}},
                             {{"VEC", 4}, {"ROWS", 2}, {"GROUP", 64}},
                             {{"VEC", 2}, {"ROWS", 1}, {"GROUP", 32}}});
}

TEST(OpenclWindow, PoolingMatchesTheCpuWithEveryKernel) {
  expect_right("pooling",
               {{}, {{"VEC", 16}, {"OVERLAP", 1}, {"GROUP", 1}}, {{"VEC", 4}, {"OVERLAP", 0}, {"GROUP", 64}}});
}

}  // namespace
}  // namespace stoker::opencl
