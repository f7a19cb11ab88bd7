// The op cases: one table of small graphs, at least one for each registered op, that every test of an op uses: shape,
// cost, gradient, each backend.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "graph/op_def.h"

namespace stoker::test {

// Values are uniform in [low, high]; of an integer dtype, whole numbers with both ends.
struct Range {
  double low = -1.0;
  double high = 1.0;
};

struct OpCase {
  std::string name;
  std::string op;  // the op that the case is for
  std::function<Value(GraphBuilder&, const std::vector<Value>&)> build;
  std::vector<Spec> inputs;
  std::vector<Range> ranges;  // one an input
  bool differentiable = true;
  // Of an fp32 kernel against the reference: |difference| <= tolerance * max(1, |reference|).
  double tolerance = 1e-5;
};

[[nodiscard]] std::vector<OpCase> all_op_cases();

// The graph of a case, with inputs x0, x1, ..., and every output of the node that `build` returns as y0, y1, ....
// Its states, if it has any, are meant to be zero.
[[nodiscard]] Graph graph_of(const OpCase& op_case);
// Inputs of a case: numbers that fp32 holds exactly.
[[nodiscard]] std::vector<RefTensor> random_inputs(const OpCase& op_case, std::uint64_t seed);

// One a family, in op_cases_*.cpp; each appends its rows.
void pointwise_cases(std::vector<OpCase>& cases);
void movement_cases(std::vector<OpCase>& cases);
void source_cases(std::vector<OpCase>& cases);
void reduction_cases(std::vector<OpCase>& cases);
void matmul_cases(std::vector<OpCase>& cases);
void convolution_cases(std::vector<OpCase>& cases);
void pooling_cases(std::vector<OpCase>& cases);
void norm_cases(std::vector<OpCase>& cases);
void softmax_cases(std::vector<OpCase>& cases);
void gather_cases(std::vector<OpCase>& cases);

// Shorthands of the tables.
[[nodiscard]] inline Spec f32(const Shape& shape) { return {DType::f32, shape}; }
[[nodiscard]] inline Spec i32(const Shape& shape) { return {DType::i32, shape}; }

}  // namespace stoker::test
