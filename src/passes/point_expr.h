// PointExpr: a value as an expression over other values of its graph. The fusing passes join and place them.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/op_def.h"
#include "graph/target.h"

namespace stoker {

struct PointExpr {
  Expr expr;                  // operand i is leaves[i]
  std::vector<Value> leaves;  // each once
};

// Collects expressions over one set of leaves into one program.
class PointExprBuilder {
 public:
  explicit PointExprBuilder(const Graph& graph) : graph_(graph) {}

  // An instruction for a leaf; a scalar constant becomes part of the program.
  [[nodiscard]] int leaf(Value value);
  [[nodiscard]] int append(const PointExpr& part);
  [[nodiscard]] std::vector<int> append(const Expr& expr, std::span<const Value> operands);
  [[nodiscard]] ExprBuilder& code() { return code_; }
  [[nodiscard]] const std::vector<Value>& leaves() const { return leaves_; }
  // Drops leaves that no output needs.
  [[nodiscard]] PointExpr finish(std::span<const int> outputs) const;

 private:
  const Graph& graph_;
  ExprBuilder code_;
  std::vector<Value> leaves_;
};

// What a pointwise node computes: a fused one's epilogue, or its op's own expression.
struct NodeExpr {
  Expr expr;
  std::vector<int> inputs;          // operand i of the expression is the node's input inputs[i]
  std::vector<ResultKind> results;  // one an output
  Shape shape;                      // that it runs over
};
[[nodiscard]] NodeExpr expression_of(const Graph& graph, const Node& node);

struct ExprWeight {
  int tensors = 0;       // leaves of the value's own shape
  int broadcasts = 0;    // leaves that kernels cannot index (Access::broadcast)
  int instructions = 0;  // without loads and constants
  int costly = 0;        // transcendental ones
};
[[nodiscard]] ExprWeight weigh(const Graph& graph, const PointExpr& value, const Shape& shape);

// A `pointwise` node that stores the expression's outputs, each with its spec.
[[nodiscard]] Node pointwise_node(const Graph& graph, const PointExpr& value, std::vector<Spec> outputs,
                                  std::vector<ResultKind> results, const Shape& shape);

// Whether `node` is a reduce_sum over all but the innermost dimension: what an epilogue can do.
[[nodiscard]] bool is_channel_sum(const Graph& graph, const Node& node);

// Nodes that are to become one: a node's group is named by its root; alone, it is its own.
class Groups {
 public:
  explicit Groups(std::size_t nodes);

  [[nodiscard]] int of(int node) const { return root_[static_cast<std::size_t>(node)]; }
  void join(int node, int root);
  [[nodiscard]] std::span<const int> members(int root) const { return members_[static_cast<std::size_t>(root)]; }

 private:
  std::vector<int> root_;
  std::vector<std::vector<int>> members_;
};

// Whether `value` is computed from an output of `root`'s group, each group counting as one node.
[[nodiscard]] bool depends_on(const Graph& graph, Value value, int root, const Groups& groups);

// Whether a `pointwise` node could vanish into its users: each is a kernel op that takes it as a prologue.
[[nodiscard]] bool fits_as_prologue(const Graph& graph, const Target& target, int node, std::span<const int> users);

}  // namespace stoker
