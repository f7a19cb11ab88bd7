// Convolution without gathering: an image is copied once, with its padding, and the product reads overlapping windows
// of it. For one kernel row, pixel w of an output row sees kw * c_in floats that stand together, stride_w * c_in after
// those of pixel w - 1: rows of a matrix as they are.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/conv2d.h"

namespace stoker::cpu {

// Whether it is the better way for these sizes: a padded image stays in L2, and there are images enough for tasks.
[[nodiscard]] bool slides(const ConvSizes& sizes);
[[nodiscard]] Kernel prepare_slide(const KernelContext& context);
[[nodiscard]] std::int64_t slide_workspace(const Graph& graph, const Node& node, int threads);

// The same for the weight gradient, where it is so small that every worker keeps one in L1.
[[nodiscard]] bool slides_weight_grad(const ConvSizes& sizes);
[[nodiscard]] Kernel prepare_slide_weight_grad(const KernelContext& context);
[[nodiscard]] std::int64_t slide_weight_grad_workspace(const Graph& graph, const Node& node, int threads);

}  // namespace stoker::cpu
