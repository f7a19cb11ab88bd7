// The table of the self-test: what each case computes.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backends/run_graph.h"
#include "graph/builder.h"

namespace stoker::opencl {

// A graph under construction together with values for its inputs.
class CaseGraph {
 public:
  // Uniform in [low, high].
  Value real(const Shape& shape, float low = -1.0F, float high = 1.0F);
  // 0 .. bound - 1.
  Value whole(const Shape& shape, int bound);
  void add_output(Value value);
  // Adds the gradients of the outputs so far, under random cotangents, for every real input.
  void add_gradients();

  [[nodiscard]] GraphBuilder& builder() { return builder_; }
  [[nodiscard]] const std::vector<Bytes>& inputs() const { return inputs_; }

 private:
  Value input(const Spec& spec, Bytes bytes);

  GraphBuilder builder_;
  std::vector<Bytes> inputs_;
  std::vector<Value> reals_;
  std::vector<Value> outputs_;
};

struct CheckCase {
  const char* family;
  const char* name;
  std::function<void(CaseGraph& graph)> build;  // forward; gradients are added to it
  bool brief = false;  // part of the shortened self-test: families with a plain kernel to fall back on
  double tolerance = 1e-4;
};

[[nodiscard]] std::span<const CheckCase> check_cases();

}  // namespace stoker::opencl
