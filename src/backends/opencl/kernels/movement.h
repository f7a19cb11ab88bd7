// Copies of tensors, for families that have nothing else to do with one.
#pragma once

#include "backends/opencl/kernel.h"

namespace stoker::opencl {

// Element for element, `spec` both.
[[nodiscard]] Work copy_work(const Place& from, const Place& to, const Spec& spec, const Device& device);

}  // namespace stoker::opencl
