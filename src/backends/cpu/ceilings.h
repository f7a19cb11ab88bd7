// The CPU's ceilings: multiply-adds in registers and streams through memory, on all threads of a pool.
#pragma once

#include "backends/ceilings.h"
#include "base/threads.h"

namespace stoker::cpu {

// Flops a second, independent fused multiply-adds in registers on all threads; the best of several runs.
[[nodiscard]] double fma_peak(ThreadPool& pool);
[[nodiscard]] Ceilings measure_ceilings(ThreadPool& pool);

}  // namespace stoker::cpu
