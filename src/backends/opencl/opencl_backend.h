// The OpenCL backend: one device, its queue, programs and tuning. See docs/opencl.md.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "backends/backend.h"
#include "backends/opencl/tuning.h"

namespace stoker {

// `device` is "opencl" (the first) or "opencl:N"; an Error says which devices there are, or which libraries were tried.
[[nodiscard]] std::unique_ptr<Backend> make_opencl_backend(std::string_view device, const BackendOptions& options);

// What Tuning::set takes.
struct TuningRow {
  std::string kernel;
  std::string problem;
  opencl::Params params;
};
// With these parameters instead of the seeds'; for tests and for the tuner.
[[nodiscard]] std::unique_ptr<Backend> make_opencl_backend(std::string_view device, const BackendOptions& options,
                                                           std::span<const TuningRow> rows);

}  // namespace stoker
