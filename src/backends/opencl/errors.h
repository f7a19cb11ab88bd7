// OpenCL's error numbers as names, and as an Error of ours.
#pragma once

#include <string>

#include "backends/opencl/library.h"
#include "stoker/error.hpp"

namespace stoker::opencl {

[[nodiscard]] std::string error_name(cl_int error);  // "CL_OUT_OF_RESOURCES (-5)"

// Which kind of failure `error` is. CL_OUT_OF_RESOURCES is lack of memory where memory was asked for (`allocates`), and
// elsewhere mostly a device that was lost or stopped by its watchdog.
[[nodiscard]] Code error_code(cl_int error, bool allocates);

}  // namespace stoker::opencl
