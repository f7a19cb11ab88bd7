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
  // Where a tensor may begin in the arena, in bytes: a power of two.
  [[nodiscard]] virtual std::int64_t alignment() const { return 64; }
  // The arena is cut into pieces of this many bytes (a multiple of alignment()), and no tensor lies across a cut.
  [[nodiscard]] virtual std::int64_t largest_buffer() const { return std::int64_t{1} << 62; }
  // Whether the node is little work that the device runs together with others of its kind, so that such nodes should
  // stand side by side in the schedule.
  [[nodiscard]] virtual bool is_small(const Graph&, const Node&) const { return false; }
  // For how many steps after its last reader a tensor of up to 256 KB keeps its place: work that may be done a little
  // later than its step is merged into fewer launches if nothing has overwritten what it reads.
  [[nodiscard]] virtual int lingering_steps() const { return 0; }
  // Whether the kernel op takes an epilogue.
  [[nodiscard]] virtual bool takes_epilogue(const Graph& graph, const Node& node) const = 0;
};

}  // namespace stoker
