// The weight gradient of depthwise convolutions, dw[kh, kw, c] = sum over pixels of x * dy.
#pragma once

#include "backends/cpu/kernel.h"

namespace stoker::cpu {

[[nodiscard]] Kernel prepare_depthwise_weight_grad(const KernelContext& context);
[[nodiscard]] std::int64_t workspace_depthwise_weight_grad(const Graph& graph, const Node& node, int threads);

}  // namespace stoker::cpu
