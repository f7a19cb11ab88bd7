// The ceilings of an OpenCL device, by micro-benchmarks (kernels/ceilings.cl).
#pragma once

#include "backends/ceilings.h"
#include "backends/opencl/api.h"
#include "backends/opencl/device.h"
#include "backends/opencl/program.h"

namespace stoker::opencl {

// Takes a few seconds, and memory: a 32nd of the device's, at most 384 MB. A device that accepts work without doing it
// (a virtual phone) has zeros for flops and bandwidths.
[[nodiscard]] Ceilings measure_ceilings(Api& api, cl_context context, cl_command_queue queue, Programs& programs,
                                        const Device& device);

}  // namespace stoker::opencl
