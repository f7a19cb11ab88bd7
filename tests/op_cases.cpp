#include "op_cases.h"

#include <cmath>

#include "base/random.h"
#include "ops/ops.h"

namespace stoker::test {

std::vector<OpCase> all_op_cases() {
  std::vector<OpCase> cases;
  source_cases(cases);
  pointwise_cases(cases);
  movement_cases(cases);
  reduction_cases(cases);
  matmul_cases(cases);
  convolution_cases(cases);
  pooling_cases(cases);
  norm_cases(cases);
  softmax_cases(cases);
  gather_cases(cases);
  for (OpCase& op_case : cases) op_case.ranges.resize(op_case.inputs.size());
  return cases;
}

Graph graph_of(const OpCase& op_case) {
  GraphBuilder b;
  std::vector<Value> inputs;
  for (std::size_t i = 0; i < op_case.inputs.size(); ++i) {
    inputs.push_back(ops::input(b, "x" + std::to_string(i), op_case.inputs[i]));
  }
  const Value y = op_case.build(b, inputs);
  const auto outputs = static_cast<int>(b.graph().node(y).outputs.size());
  for (int i = 0; i < outputs; ++i) b.set_output("y" + std::to_string(i), {y.node, i});
  return std::move(b).finish();
}

std::vector<RefTensor> random_inputs(const OpCase& op_case, std::uint64_t seed) {
  Random random(seed);
  std::vector<RefTensor> tensors;
  for (std::size_t i = 0; i < op_case.inputs.size(); ++i) {
    const auto [dtype, shape] = op_case.inputs[i];
    const auto [low, high] = op_case.ranges[i];
    RefTensor tensor{shape, {}};
    for (std::int64_t k = 0; k < shape.elements(); ++k) {
      const bool real = dtype == DType::f32;
      tensor.data.push_back(real ? random.uniform(static_cast<float>(low), static_cast<float>(high))
                                 : low + static_cast<double>(random.below(static_cast<std::uint64_t>(high - low) + 1)));
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace stoker::test
