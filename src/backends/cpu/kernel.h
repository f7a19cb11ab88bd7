// A CPU kernel: prepared once with its pointers and sizes (no allocation, string or log afterwards), run once a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/threads.h"
#include "graph/graph.h"

namespace stoker::cpu {

// What a node's kernel is prepared with. Pointers stay the same for the life of the executable and are 64-byte aligned.
struct KernelContext {
  const Graph& graph;
  const Node& node;
  std::vector<const std::byte*> inputs;  // one for each of node.inputs
  std::vector<std::byte*> outputs;       // one for each of node.outputs
  std::byte* scratch = nullptr;          // workspace() bytes
  int threads = 1;

  [[nodiscard]] const Spec& input_spec(int i) const { return graph.spec(node.inputs[static_cast<std::size_t>(i)]); }
  [[nodiscard]] const Spec& output_spec(int i) const { return node.outputs[static_cast<std::size_t>(i)]; }
  template <typename T = float>
  [[nodiscard]] const T* input(int i) const {
    return reinterpret_cast<const T*>(inputs[static_cast<std::size_t>(i)]);
  }
  template <typename T = float>
  [[nodiscard]] T* output(int i) const {
    return reinterpret_cast<T*>(outputs[static_cast<std::size_t>(i)]);
  }
};

using Kernel = std::function<void(ThreadPool& pool)>;

// Facts that depend on the number of threads are per-worker scratch only: work is cut by shape (determinism).
struct KernelDef {
  const char* op;
  Kernel (*prepare)(const KernelContext& context);
  std::int64_t (*workspace)(const Graph& graph, const Node& node, int threads) = nullptr;  // null: none
  int (*prologue_tensors)(const Graph& graph, const Node& node, int operand) = nullptr;    // null: 0
  bool (*takes_epilogue)(const Graph& graph, const Node& node) = nullptr;                  // null: no
};

// One for each family, in kernels/.
std::span<const KernelDef> pointwise_kernels();
std::span<const KernelDef> reduction_kernels();
std::span<const KernelDef> matmul_kernels();
std::span<const KernelDef> conv2d_kernels();
std::span<const KernelDef> depthwise_kernels();
std::span<const KernelDef> pooling_kernels();
std::span<const KernelDef> softmax_kernels();
std::span<const KernelDef> gather_kernels();
std::span<const KernelDef> movement_kernels();

}  // namespace stoker::cpu
