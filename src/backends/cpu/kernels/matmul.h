// The product under matmul, for kernels that are one: 1x1 convolutions.
#pragma once

#include <cstdint>

#include "backends/cpu/kernel.h"

namespace stoker::cpu {

// op(x) op(y): M x N over K, for each item of the batch. Operand 0 of the node is x, operand 1 is y.
struct MatMulSizes {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_x = false, transpose_y = false;
  bool batched_x = false, batched_y = false;  // whether the operand steps with the batch
};

[[nodiscard]] Kernel prepare_matmul(const KernelContext& context, const MatMulSizes& sizes);
[[nodiscard]] std::int64_t matmul_workspace(const Graph& graph, const Node& node, const MatMulSizes& sizes,
                                            int threads);

}  // namespace stoker::cpu
