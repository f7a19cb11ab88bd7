// StepCounts: what one training step does, counted exactly from its plan: launches with their flops and bytes, what
// crosses between host and device and by how many calls. No device is needed, a description will do.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "backends/opencl/plan_work.h"
#include "nn/model.h"

namespace stoker {

// Kinds of kernels that differ in how near they come to a device's ceilings.
enum class WorkKind : std::uint8_t { matmul, conv, conv_input_grad, conv_weight_grad, depthwise, stream };
inline constexpr int kWorkKinds = 6;
[[nodiscard]] WorkKind kind_of(std::string_view op);
[[nodiscard]] const char* to_string(WorkKind kind);

struct LaunchWork {
  WorkKind kind = WorkKind::stream;
  double flops = 0;
  double bytes = 0;
  double items = 0;       // work-items; 0: as many as the device wants (CPU)
  bool converts = false;  // changes a tensor's layout on its way between host and device: data movement
};

struct Crossings {
  std::int64_t calls = 0;
  double bytes = 0;
};

struct StepCounts {
  std::vector<LaunchWork> launches;
  Crossings maps;            // the batch, filled in place
  Crossings reads;           // blocking
  Crossings writes;          // blocking
  Crossings copies;          // device to device
  std::int64_t objects = 0;  // buffers made
  double host_bytes = 0;     // read and written by an optimizer on the host
  std::int64_t host_ops = 0;

  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
  [[nodiscard]] std::int64_t blocking_calls() const { return reads.calls + writes.calls; }
};

// SGD with momentum, which every figure here is for.
[[nodiscard]] StepCounts resident_counts(const nn::Model& model, std::int64_t batch,
                                         const opencl::DescribedDevice& device);
// As BaselineSession moves data: each gradient read and each parameter written by a blocking call, through a new buffer
// and a conversion; the optimizer on the host; kernels that are neither fused nor merged.
[[nodiscard]] StepCounts baseline_counts(const nn::Model& model, std::int64_t batch,
                                         const opencl::DescribedDevice& device);
// On the CPU backend of this build.
[[nodiscard]] StepCounts cpu_counts(const nn::Model& model, std::int64_t batch);

}  // namespace stoker
