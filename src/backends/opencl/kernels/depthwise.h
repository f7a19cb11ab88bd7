// What the depthwise kernels share: the node's sizes, and how its result is cut. Images are NHWC, weights [KH, KW, 1,
// C].
#pragma once

#include <cstdint>
#include <vector>

#include "backends/opencl/kernel.h"
#include "backends/opencl/kernels/conv2d.h"
#include "backends/opencl/tuning.h"
#include "ops/window.h"

namespace stoker::opencl {

// The geometry of y = x * w, whichever of the three the node computes.
[[nodiscard]] ops::Geometry depthwise_sizes(const Graph& graph, const Node& node, ConvPart part);

// The filter, which has no prologue: operand 1 of depthwise and of its input gradient.
[[nodiscard]] const Place& depthwise_filter(const KernelContext& context);

// The widest vector of at most `limit` floats that divides `channels`: a power of two.
[[nodiscard]] int vector_width(std::int64_t channels, int limit);

// A stage that adds up `rows` rows of `floats` floats at `partials` into `result`, in the order of rows.
[[nodiscard]] Stage add_rows(const Place& partials, std::int64_t rows, std::int64_t floats, const Place& result);

// The kernels of depthwise_rows.cl, which read 3x3 filters.
[[nodiscard]] bool fits_depthwise_rows(const KernelContext& context, ConvPart part);
[[nodiscard]] std::vector<Work> depthwise_rows(const KernelContext& context, ConvPart part);
[[nodiscard]] std::int64_t depthwise_rows_workspace(const KernelContext& context, ConvPart part);

// The kernels of depthwise_plain.cl: any window, any number of channels.
[[nodiscard]] std::vector<Work> depthwise_plain(const KernelContext& context, ConvPart part);
[[nodiscard]] std::int64_t depthwise_plain_workspace(const KernelContext& context, ConvPart part);

}  // namespace stoker::opencl
