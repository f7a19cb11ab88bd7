// Reductions over any set of axes. Attributes: axes (ascending, non-negative), keep_dims.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/registry.h"

namespace stoker::ops {
namespace {

std::vector<Spec> infer_as(const char* op, DType result, std::span<const Spec> inputs, const Attrs& attrs) {
  require_f32(op, inputs);
  const Ints& axes = attrs.ints("axes");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    require(axes[i] >= 0 && axes[i] < inputs[0].shape.rank() && (i == 0 || axes[i] > axes[i - 1]), Code::bad_argument,
            op, ": axes must be ascending and within ", inputs[0].shape);
  }
  return {{result, reduced_shape(inputs[0].shape, axes, attrs.integer("keep_dims") != 0)}};
}

// Where in a result that kept its dimensions element `i` of x goes.
std::size_t target(const Shape& x, const Shape& kept, std::size_t i) {
  return static_cast<std::size_t>(broadcast_offset(kept, x, static_cast<std::int64_t>(i)));
}

void sum_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs& attrs) {
  const RefTensor& x = inputs[0];
  const Shape kept = reduced_shape(x.shape, attrs.ints("axes"), true);
  for (std::size_t i = 0; i < x.data.size(); ++i) outputs[0].data[target(x.shape, kept, i)] += x.data[i];
}

void max_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs& attrs) {
  const RefTensor& x = inputs[0];
  const Shape kept = reduced_shape(x.shape, attrs.ints("axes"), true);
  outputs[0].data.assign(outputs[0].data.size(), -std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    double& most = outputs[0].data[target(x.shape, kept, i)];
    if (x.data[i] > most || std::isnan(x.data[i])) most = x.data[i];
  }
}

void argmax_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs& attrs) {
  const RefTensor& x = inputs[0];
  const std::int64_t axis = attrs.ints("axes")[0];
  const Shape kept = reduced_shape(x.shape, attrs.ints("axes"), true);
  const std::int64_t inner = x.shape.elements(static_cast<int>(axis) + 1, x.shape.rank());
  std::vector<double> most(outputs[0].data.size(), -std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    const std::size_t at = target(x.shape, kept, i);
    // The first of ties wins, and the first NaN over all.
    if (std::isnan(most[at]) || (!std::isnan(x.data[i]) && x.data[i] <= most[at])) continue;
    most[at] = x.data[i];
    outputs[0].data[at] = static_cast<double>(static_cast<std::int64_t>(i) / inner % x.shape[static_cast<int>(axis)]);
  }
}

// A value of the reduced shape so that it broadcasts to the input: the reduced dimensions put back as 1, where they are
// not the outermost.
Value keep(GradContext& c, Value reduced) {
  const Ints& axes = c.node.attrs.ints("axes");
  if (axes.empty() || axes.back() == static_cast<std::int64_t>(axes.size()) - 1) return reduced;
  const Shape x = c.builder.shape(c.inputs[0]);
  return reshape(c.builder, reduced, reduced_shape(x, axes, true));
}

std::vector<Value> sum_grad(GradContext& c) {
  const Shape x = c.builder.shape(c.inputs[0]);
  return {broadcast_to(c.builder, keep(c, c.cotangents[0]), x)};
}

std::vector<Value> max_grad(GradContext& c) {
  B& b = c.builder;
  // amax: the maxima share the cotangent evenly.
  const Value is_max = cast(b, eq(b, c.inputs[0], keep(c, c.outputs[0])), DType::f32);
  const Value count = reduce_sum(b, is_max, c.node.attrs.ints("axes"), true);
  return {mul(b, is_max, div(b, keep(c, c.cotangents[0]), count))};
}

Value reduce(B& b, const char* op, Value x, std::vector<std::int64_t> axes, bool keep_dims) {
  Ints normal = normalise_axes(op, b.shape(x), std::move(axes));
  return make(b, op, {x}, {{"axes", std::move(normal)}, {"keep_dims", std::int64_t{keep_dims}}});
}

OpDef reduction(const char* name, DType result) {
  OpDef op{.name = name, .min_inputs = 1, .max_inputs = 1, .cost = streaming_cost(1)};
  op.infer = [=](auto inputs, const Attrs& attrs) { return infer_as(name, result, inputs, attrs); };
  return op;
}

}  // namespace

void register_reductions(std::vector<OpDef>& table) {
  OpDef sum = reduction("reduce_sum", DType::f32);
  sum.grad = sum_grad;
  sum.reference = sum_reference;
  table.push_back(std::move(sum));

  OpDef max = reduction("reduce_max", DType::f32);
  max.grad = max_grad;
  max.reference = max_reference;
  table.push_back(std::move(max));

  OpDef arg = reduction("argmax", DType::i32);
  arg.no_grad = true;
  arg.reference = argmax_reference;
  table.push_back(std::move(arg));
}

Value reduce_sum(B& b, Value x, std::vector<std::int64_t> axes, bool keep_dims) {
  return reduce(b, "reduce_sum", x, std::move(axes), keep_dims);
}

Value reduce_max(B& b, Value x, std::vector<std::int64_t> axes, bool keep_dims) {
  return reduce(b, "reduce_max", x, std::move(axes), keep_dims);
}

Value argmax(B& b, Value x, std::int64_t axis) { return reduce(b, "argmax", x, {axis}, false); }

Value reduce_mean(B& b, Value x, std::vector<std::int64_t> axes, bool keep_dims) {
  const auto from = static_cast<double>(b.shape(x).elements());
  const Value sum = reduce_sum(b, x, std::move(axes), keep_dims);
  const auto to = static_cast<double>(b.shape(sum).elements());
  require(from > 0, Code::bad_argument, "reduce_mean: there is nothing to average");
  return mul(b, sum, static_cast<float>(to / from));
}

Value sum_to(B& b, Value x, const Shape& shape) {
  const Shape from = b.shape(x);
  if (from == shape) return x;
  require(broadcasts_to(shape, from), Code::bad_argument, "sum_to: ", shape, " does not broadcast to ", from);
  const int added = from.rank() - shape.rank();
  std::vector<std::int64_t> axes;
  for (int i = 0; i < from.rank(); ++i) {
    if (i < added || (shape[i - added] == 1 && from[i] != 1)) axes.push_back(i);
  }
  const Value sum = reduce_sum(b, x, std::move(axes));
  return b.shape(sum) == shape ? sum : reshape(b, sum, shape);
}

}  // namespace stoker::ops
