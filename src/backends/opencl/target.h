// What passes and the planner must know of an OpenCL device, answered by the kernel families.
#pragma once

#include <map>
#include <string>

#include "backends/opencl/kernel.h"
#include "graph/target.h"

namespace stoker::opencl {

// The kernels of a node's op; null: there is none.
[[nodiscard]] const KernelDef* find_kernel(const Node& node);

class ClTarget : public Target {
 public:
  // `largest_buffer`: 0 is the device's own.
  ClTarget(const Device& device, const Tuning& tuning, std::int64_t largest_buffer);

  [[nodiscard]] std::string name() const override { return device_.id; }
  [[nodiscard]] bool supports(const Graph& graph, const Node& node) const override;
  [[nodiscard]] std::int64_t workspace(const Graph& graph, const Node& node) const override;
  [[nodiscard]] int prologue_tensors(const Graph& graph, const Node& node, int operand) const override;
  [[nodiscard]] bool takes_epilogue(const Graph& graph, const Node& node) const override;
  [[nodiscard]] std::int64_t alignment() const override { return alignment_; }
  [[nodiscard]] std::int64_t largest_buffer() const override { return largest_buffer_; }
  // Its work is stages only, which are merged with their neighbours.
  [[nodiscard]] bool is_small(const Graph& graph, const Node& node) const override;
  [[nodiscard]] int lingering_steps() const override { return 16; }

 private:
  [[nodiscard]] KernelContext context(const Graph& graph, const Node& node) const;

  const Device& device_;
  const Tuning& tuning_;
  std::int64_t alignment_;
  std::int64_t largest_buffer_;
};

}  // namespace stoker::opencl
