// What a pointwise node runs over: R rows of C channels, in as few dimensions as its arguments allow.
#pragma once

#include <vector>

#include "backends/opencl/kernel.h"
#include "graph/expr.h"

namespace stoker::opencl {

// An argument, by how it is indexed with the element number i = row * C + c.
struct PointArg {
  int input = 0;
  DType dtype = DType::f32;
  Access access = Access::full;       // in terms of R and C; broadcast: by `strides`
  std::vector<std::int64_t> strides;  // of the outer dimensions, in elements
  bool along_channels = false;        // moves with c
};

struct PointDomain {
  Expr expr;
  std::vector<ResultKind> results;
  std::vector<PointArg> args;       // one for each operand of the expression
  std::vector<std::int64_t> outer;  // dimensions whose product is `rows`
  std::int64_t rows = 1;
  std::int64_t channels = 1;
  bool flat = false;  // every argument is full or a scalar and nothing is summed: one row
  int sums = 0;

  [[nodiscard]] std::int64_t elements() const { return rows * channels; }
};

[[nodiscard]] PointDomain point_domain(const Graph& graph, const Node& node);

}  // namespace stoker::opencl
