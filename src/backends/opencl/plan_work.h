// A plan's work as kernel families give it, and the launches that it would be on an OpenCL device that is only
// described: no driver is asked.
#pragma once

#include <vector>

#include "backends/opencl/stages.h"
#include "backends/opencl/target.h"
#include "backends/opencl/tuning.h"

namespace stoker::opencl {

// The work of all steps, in order.
[[nodiscard]] std::vector<StepWork> plan_work(const Plan& plan, const Device& device, const Tuning& tuning);
// Of the plan's scalar results, in their order.
[[nodiscard]] std::vector<Place> scalar_results(const Plan& plan);

// A GPU of the family as its drivers describe themselves, for planning; its limits are those that phones of the last
// years share.
[[nodiscard]] Device typical_gpu(Family family);

// Plans for a device by its description alone, with the seeds of its family.
class DescribedDevice {
 public:
  explicit DescribedDevice(Device device);
  DescribedDevice(const DescribedDevice&) = delete;
  DescribedDevice& operator=(const DescribedDevice&) = delete;

  [[nodiscard]] const Device& device() const { return device_; }
  [[nodiscard]] const Target& target() const { return target_; }
  // Those of one run of `plan`, which was made for target().
  [[nodiscard]] std::vector<MergedLaunch> launches(const Plan& plan, bool merge) const;

 private:
  Device device_;
  Tuning tuning_;
  ClTarget target_;
};

}  // namespace stoker::opencl
