// backward(): appends the reverse pass to a graph under construction. The rules stand with the ops (OpDef::grad).
#pragma once

#include <span>
#include <vector>

#include "graph/builder.h"

namespace stoker {

// The cotangents of `wrt`, given those of `outputs` (of the same shapes): sum over i of J_i^T * cotangents[i].
// A none Value where no path leads from a wrt value to an output. New nodes are of phase backward and carry the name
// of the node they differentiate. An op without a gradient on a path is an Error that names it; integer and bool
// values, and stop_gradient, end a path.
[[nodiscard]] std::vector<Value> backward(GraphBuilder& b, std::span<const Value> outputs,
                                          std::span<const Value> cotangents, std::span<const Value> wrt);

}  // namespace stoker
