// Families that are still to come: weak, so that the real ones take their place.
#include "backends/opencl/kernel.h"

namespace stoker::opencl {

#define STOKER_UNFINISHED(family) \
  __attribute__((weak)) std::span<const KernelDef> family() { return {}; }
STOKER_UNFINISHED(matmul_kernels)

}  // namespace stoker::opencl
