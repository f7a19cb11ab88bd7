// Runs a graph with the ops' references, in double: the oracle for every backend and pass. Fused nodes included.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/op_def.h"

namespace stoker {

// `inputs` stand in the order of graph.inputs, `states` in that of graph.states; states are written at the end.
// Returns graph.outputs in order. Integers and bools are doubles too.
[[nodiscard]] std::vector<RefTensor> evaluate_reference(const Graph& graph, std::span<const RefTensor> inputs,
                                                        std::span<RefTensor> states);

// The shape that a fused expression runs over when it reads these arguments of the node.
[[nodiscard]] Shape fused_domain(const Graph& graph, const Node& node, std::span<const FusedArg> args);
// The same for a node's epilogue: the plain result's shape, or a `pointwise` node's own domain.
[[nodiscard]] Shape epilogue_domain(const Graph& graph, const Node& node);
// What the kernel op of a fused node sees: one spec an operand, after its prologue.
[[nodiscard]] std::vector<Spec> operand_specs(const Graph& graph, const Node& node);

}  // namespace stoker
