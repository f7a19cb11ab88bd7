// The OpenCL backend: one device, its queue, programs and tuning. See docs/opencl.md.
#pragma once

#include <memory>
#include <string_view>

#include "backends/backend.h"

namespace stoker {

// `device` is "opencl" (the first) or "opencl:N"; an Error says which devices there are, or which libraries were tried.
[[nodiscard]] std::unique_ptr<Backend> make_opencl_backend(std::string_view device, const BackendOptions& options);

}  // namespace stoker
