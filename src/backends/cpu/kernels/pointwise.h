// The kernel of pointwise nodes: the fused op `pointwise`, and any op whose traits say pointwise.
#pragma once

#include "backends/cpu/kernel.h"

namespace stoker::cpu {

[[nodiscard]] Kernel prepare_pointwise(const KernelContext& context);
[[nodiscard]] std::int64_t workspace_pointwise(const Graph& graph, const Node& node, int threads);

}  // namespace stoker::cpu
