// softmax, log_softmax and softmax_cross_entropy, over the last dimension; the maximum is subtracted first.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/registry.h"

namespace stoker::ops {
namespace {

std::vector<Spec> infer_rows(const char* op, std::span<const Spec> inputs) {
  require_f32(op, inputs);
  require(inputs[0].shape.rank() >= 1 && inputs[0].shape[-1] > 0, Code::bad_argument, op, ": expected [..., C], got ",
          inputs[0].shape);
  return {inputs[0]};
}

// log(sum(exp(row))).
double log_sum_exp(std::span<const double> row) {
  const double most = *std::ranges::max_element(row);
  double sum = 0;
  for (const double x : row) sum += std::exp(x - most);
  return most + std::log(sum);
}

std::span<const double> row_of(const RefTensor& x, std::size_t row) {
  const auto columns = static_cast<std::size_t>(x.shape[-1]);
  return std::span(x.data).subspan(row * columns, columns);
}

void log_softmax_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs&) {
  const auto columns = static_cast<std::size_t>(inputs[0].shape[-1]);
  for (std::size_t row = 0; row < inputs[0].data.size() / columns; ++row) {
    const std::span<const double> x = row_of(inputs[0], row);
    const double total = log_sum_exp(x);
    for (std::size_t c = 0; c < columns; ++c) outputs[0].data[row * columns + c] = x[c] - total;
  }
}

void softmax_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs& attrs) {
  log_softmax_reference(inputs, outputs, attrs);
  for (double& y : outputs[0].data) y = std::exp(y);
}

std::vector<Value> softmax_grad(GradContext& c) {
  B& b = c.builder;
  const Value y = c.outputs[0];
  const Value dy = c.cotangents[0];
  return {mul(b, y, sub(b, dy, reduce_sum(b, mul(b, dy, y), {-1}, true)))};
}

std::vector<Value> log_softmax_grad(GradContext& c) {
  B& b = c.builder;
  const Value dy = c.cotangents[0];
  return {sub(b, dy, mul(b, exp(b, c.outputs[0]), reduce_sum(b, dy, {-1}, true)))};
}

std::vector<Spec> infer_cross_entropy(std::span<const Spec> inputs, const Attrs& attrs) {
  const char* op = "softmax_cross_entropy";
  const Spec& logits = inputs[0];
  require(logits.dtype == DType::f32 && logits.shape.rank() == 2 && logits.shape[1] > 0, Code::bad_argument, op,
          ": expected logits f32[N,C], got ", logits);
  require(inputs[1] == Spec{DType::i32, {logits.shape[0]}}, Code::bad_argument, op, ": expected labels i32[",
          logits.shape[0], "], got ", inputs[1]);
  const double smoothing = attrs.real("label_smoothing");
  require(smoothing >= 0 && smoothing <= 1, Code::bad_argument, op, ": label smoothing must be in [0, 1], got ",
          smoothing);
  return {{DType::f32, {logits.shape[0]}}, logits};
}

// With s = label smoothing, the target is q = (1 - s) * onehot + s / C; the loss is -sum(q * log_softmax) and its
// gradient softmax - q. A label that is no class gives NaN, which stops the step, rather than a wrong loss.
void cross_entropy_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs& attrs) {
  const auto columns = static_cast<std::size_t>(inputs[0].shape[1]);
  const double smoothing = attrs.real("label_smoothing");
  for (std::size_t row = 0; row < inputs[1].data.size(); ++row) {
    const std::span<const double> x = row_of(inputs[0], row);
    const double label = inputs[1].data[row];
    const bool valid = label >= 0 && label < static_cast<double>(columns);
    const double total = valid ? log_sum_exp(x) : std::numeric_limits<double>::quiet_NaN();
    double loss = 0;
    for (std::size_t c = 0; c < columns; ++c) {
      const double onehot = static_cast<double>(c) == label ? 1.0 : 0.0;
      const double target = (1 - smoothing) * onehot + smoothing / static_cast<double>(columns);
      if (target != 0 || !valid) loss -= target * (x[c] - total);
      outputs[1].data[row * columns + c] = std::exp(x[c] - total) - target;
    }
    outputs[0].data[row] = loss;
  }
}

std::vector<Value> cross_entropy_grad(GradContext& c) {
  require(c.cotangents[1].is_none(), Code::bad_argument, "softmax_cross_entropy: its second output has no gradient");
  B& b = c.builder;
  const Value dloss = reshape(b, c.cotangents[0], {c.node.outputs[0].shape[0], 1});
  return {mul(b, c.outputs[1], dloss), Value{}};
}

}  // namespace

void register_softmax(std::vector<OpDef>& table) {
  table.push_back({.name = "softmax",
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .infer = [](auto inputs, const Attrs&) { return infer_rows("softmax", inputs); },
                   .grad = softmax_grad,
                   .cost = streaming_cost(5),
                   .reference = softmax_reference});
  table.push_back({.name = "log_softmax",
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .infer = [](auto inputs, const Attrs&) { return infer_rows("log_softmax", inputs); },
                   .grad = log_softmax_grad,
                   .cost = streaming_cost(5),
                   .reference = log_softmax_reference});
  table.push_back({.name = "softmax_cross_entropy",
                   .min_inputs = 2,
                   .max_inputs = 2,
                   .infer = infer_cross_entropy,
                   .grad = cross_entropy_grad,
                   .cost = streaming_cost(7),
                   .reference = cross_entropy_reference});
}

Value softmax(B& b, Value x) { return make(b, "softmax", {x}); }
Value log_softmax(B& b, Value x) { return make(b, "log_softmax", {x}); }

Value softmax_cross_entropy(B& b, Value logits, Value labels, double label_smoothing) {
  return make(b, "softmax_cross_entropy", {logits, labels}, {{"label_smoothing", label_smoothing}});
}

}  // namespace stoker::ops
