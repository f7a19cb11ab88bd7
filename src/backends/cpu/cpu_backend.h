// The CPU backend: Highway SIMD kernels on a thread pool.
#pragma once

#include <memory>

#include "backends/backend.h"

namespace stoker {

[[nodiscard]] std::unique_ptr<Backend> make_cpu_backend(const BackendOptions& options);

}  // namespace stoker
