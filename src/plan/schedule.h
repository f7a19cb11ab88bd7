// The order of a plan's steps. Candidates are made here; make_plan() keeps the one whose arena is smallest.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "graph/target.h"

namespace stoker {

// What must come before what: data, and the readers of a state before the node that writes it in place.
struct Dependencies {
  std::vector<std::vector<int>> before;  // for each node, the nodes that must have run
  std::vector<std::vector<int>> after;
};

// For each value, the value whose memory it shares: itself, or what a view looks at.
[[nodiscard]] Value storage_of(const Graph& graph, Value value);

// True for nodes that are no steps: sources and views.
[[nodiscard]] bool is_free(const Node& node);

// Makes every write safe to do in place: a value that cannot be written straight into its state (it is no pointwise
// result, has another place already, or a reader of the old value waits for it) is copied by a node of its own.
[[nodiscard]] Graph with_safe_writes(Graph graph);

[[nodiscard]] Dependencies dependencies_of(const Graph& graph);

enum class Order {
  as_written,     // the graph's order
  early_updates,  // the same, but nodes of the update phase as soon as they can run
  least_memory,   // whichever ready node leaves the least memory in use
};
[[nodiscard]] std::vector<int> schedule(const Graph& graph, const Dependencies& dependencies, Order order);

// The same steps with the small ones put off until another step needs one of them: then all that wait come together.
[[nodiscard]] std::vector<int> with_small_steps_together(const Graph& graph, const Dependencies& dependencies,
                                                         const Target& target, const std::vector<int>& steps);

}  // namespace stoker
