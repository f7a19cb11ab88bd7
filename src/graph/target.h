// Target: what passes and the planner must know of a device. Declared here, filled in by the backends.
#pragma once

#include <cstdint>
#include <string>

#include "graph/graph.h"

namespace stoker {

class Target {
 public:
  virtual ~Target() = default;

  [[nodiscard]] virtual std::string name() const = 0;
  // Whether the device runs this node as it is, fusion included.
  [[nodiscard]] virtual bool supports(const Graph& graph, const Node& node) const = 0;
  // Scratch bytes that the node needs while it runs; they are planned into the arena.
  [[nodiscard]] virtual std::int64_t workspace(const Graph& graph, const Node& node) const = 0;
  // How many full-size tensors a prologue of this operand may read where it pays; 0: no prologue.
  [[nodiscard]] virtual int prologue_tensors(const Graph& graph, const Node& node, int operand) const = 0;
  // Whether the kernel op takes an epilogue.
  [[nodiscard]] virtual bool takes_epilogue(const Graph& graph, const Node& node) const = 0;
};

}  // namespace stoker
