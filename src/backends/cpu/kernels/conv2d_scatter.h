// conv2d_input_grad the other way round: dy w^T gives what each output pixel sends to each of its taps, and the shares
// are added up where the taps lie. No product with padding, and wide results where dx has few channels.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/conv2d.h"

namespace stoker::cpu {

// Whether it is the better way for these sizes: an image of dx stays in L2, and there are images enough for tasks.
[[nodiscard]] bool scatters(const ConvSizes& sizes);
[[nodiscard]] Kernel prepare_scatter(const KernelContext& context);
[[nodiscard]] std::int64_t scatter_workspace(const Graph& graph, const Node& node, int threads);

// Shares of `pixels` output pixels from `pixel` on (of one image): row r of `block` holds those of one pixel for kernel
// rows [kh0, kh0 + kernel_rows), [kh][kw][c_in]; they are added to `image`, [h, w, c_in].
struct ScatterBlock {
  std::int64_t pixel = 0, pixels = 0;
  std::int64_t kh0 = 0, kernel_rows = 0;
  const float* block = nullptr;
  std::int64_t stride = 0;
};
void scatter_add(const ConvSizes& sizes, const ScatterBlock& shares, float* image);

}  // namespace stoker::cpu
