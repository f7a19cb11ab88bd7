// What a node costs, fused ones included.
#pragma once

#include "graph/graph.h"
#include "graph/op_def.h"

namespace stoker {

[[nodiscard]] Cost cost_of(const Graph& graph, const Node& node);

}  // namespace stoker
