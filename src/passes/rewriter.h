// Rewriter: copies a graph node by node into a new one while a pass replaces some of its values.
#pragma once

#include <vector>

#include "graph/builder.h"

namespace stoker {

class Rewriter {
 public:
  explicit Rewriter(const Graph& from);

  [[nodiscard]] const Graph& from() const { return from_; }
  [[nodiscard]] GraphBuilder& builder() { return builder_; }
  // The new value that stands for an old one; none if it was dropped.
  [[nodiscard]] Value map(Value old) const;
  [[nodiscard]] std::vector<Value> map(const std::vector<Value>& old) const;
  void replace(Value old, Value value);
  // Copies an old node with its inputs mapped.
  void copy(int node);
  // Adds a node that stands for output 0.. of the old node `old`.
  void add(int old, Node node);
  // Maps inputs, writes and outputs, and gives the new graph.
  [[nodiscard]] Graph finish() &&;

 private:
  const Graph& from_;
  GraphBuilder builder_;
  std::vector<std::vector<Value>> mapped_;
};

// Orders nodes so that each follows its inputs, otherwise keeping the given order.
[[nodiscard]] Graph sort_topologically(Graph graph);

}  // namespace stoker
