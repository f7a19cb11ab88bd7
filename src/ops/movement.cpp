// Ops that move elements without computing: reshape, broadcast_to, transpose, pad, slice, concat. Any dtype.
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/registry.h"

namespace stoker::ops {
namespace {

std::size_t index_of(const Shape& shape, std::span<const std::int64_t> position) {
  return static_cast<std::size_t>(ravel(shape, position));
}

void require_rank(const char* op, const Shape& shape, const Ints& list, const char* what) {
  require(static_cast<int>(list.size()) == shape.rank(), Code::bad_argument, op, ": ", list.size(), " values of ", what,
          " for shape ", shape);
}

std::vector<Spec> infer_reshape(std::span<const Spec> inputs, const Attrs& attrs) {
  const Shape shape = to_shape(attrs.ints("shape"));
  require(shape.elements() == inputs[0].shape.elements(), Code::bad_argument, "reshape: ", inputs[0].shape, " has ",
          inputs[0].shape.elements(), " elements, ", shape, " has ", shape.elements());
  return {{inputs[0].dtype, shape}};
}

std::vector<Spec> infer_broadcast_to(std::span<const Spec> inputs, const Attrs& attrs) {
  const Shape shape = to_shape(attrs.ints("shape"));
  require(broadcasts_to(inputs[0].shape, shape), Code::bad_argument, "broadcast_to: ", inputs[0].shape,
          " does not broadcast to ", shape);
  return {{inputs[0].dtype, shape}};
}

std::vector<Spec> infer_transpose(std::span<const Spec> inputs, const Attrs& attrs) {
  const Ints& order = attrs.ints("order");
  require_rank("transpose", inputs[0].shape, order, "order");
  Ints sorted = order;
  std::ranges::sort(sorted);
  Shape shape;
  for (std::size_t i = 0; i < order.size(); ++i) {
    require(sorted[i] == static_cast<std::int64_t>(i), Code::bad_argument, "transpose: the order must name each of ",
            order.size(), " dimensions once");
    shape.push_back(inputs[0].shape[static_cast<int>(order[i])]);
  }
  return {{inputs[0].dtype, shape}};
}

std::vector<Spec> infer_pad(std::span<const Spec> inputs, const Attrs& attrs) {
  const Ints& before = attrs.ints("before");
  const Ints& after = attrs.ints("after");
  require_rank("pad", inputs[0].shape, before, "before");
  require_rank("pad", inputs[0].shape, after, "after");
  Shape shape;
  for (std::size_t i = 0; i < before.size(); ++i) {
    require(before[i] >= 0 && after[i] >= 0, Code::bad_argument, "pad: padding cannot be negative");
    shape.push_back(before[i] + inputs[0].shape[static_cast<int>(i)] + after[i]);
  }
  return {{inputs[0].dtype, shape}};
}

std::vector<Spec> infer_slice(std::span<const Spec> inputs, const Attrs& attrs) {
  const Ints& begin = attrs.ints("begin");
  const Ints& size = attrs.ints("size");
  require_rank("slice", inputs[0].shape, begin, "begin");
  require_rank("slice", inputs[0].shape, size, "size");
  for (std::size_t i = 0; i < begin.size(); ++i) {
    require(begin[i] >= 0 && size[i] >= 0 && begin[i] + size[i] <= inputs[0].shape[static_cast<int>(i)],
            Code::bad_argument, "slice: [", begin[i], ", ", begin[i] + size[i], ") of dimension ", i, " is not within ",
            inputs[0].shape);
  }
  return {{inputs[0].dtype, to_shape(size)}};
}

std::vector<Spec> infer_concat(std::span<const Spec> inputs, const Attrs& attrs) {
  Spec all = inputs[0];
  const auto axis = static_cast<int>(attrs.integer("axis"));
  require(axis >= 0 && axis < all.shape.rank(), Code::bad_argument, "concat: axis ", axis, " is out of range for ",
          all.shape);
  for (const Spec& part : inputs.subspan(1)) {
    Spec expected = all;
    expected.shape.set(axis, part.shape.rank() > axis ? part.shape[axis] : 0);
    require(part == expected, Code::bad_argument, "concat: ", part, " does not match ", inputs[0], " outside of axis ",
            axis);
    all.shape.set(axis, all.shape[axis] + part.shape[axis]);
  }
  return {all};
}

void copy_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs&) {
  outputs[0].data = inputs[0].data;
}

void broadcast_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs&) {
  for (std::size_t i = 0; i < outputs[0].data.size(); ++i) {
    const auto from = broadcast_offset(inputs[0].shape, outputs[0].shape, static_cast<std::int64_t>(i));
    outputs[0].data[i] = inputs[0].data[static_cast<std::size_t>(from)];
  }
}

void transpose_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs& attrs) {
  const Ints& order = attrs.ints("order");
  Ints from(order.size());
  for (std::size_t i = 0; i < outputs[0].data.size(); ++i) {
    const Ints to = unravel(outputs[0].shape, static_cast<std::int64_t>(i));
    for (std::size_t d = 0; d < order.size(); ++d) from[static_cast<std::size_t>(order[d])] = to[d];
    outputs[0].data[i] = inputs[0].data[index_of(inputs[0].shape, from)];
  }
}

void pad_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs& attrs) {
  const Ints& before = attrs.ints("before");
  outputs[0].data.assign(outputs[0].data.size(), attrs.real("value"));
  for (std::size_t i = 0; i < inputs[0].data.size(); ++i) {
    Ints at = unravel(inputs[0].shape, static_cast<std::int64_t>(i));
    for (std::size_t d = 0; d < at.size(); ++d) at[d] += before[d];
    outputs[0].data[index_of(outputs[0].shape, at)] = inputs[0].data[i];
  }
}

void slice_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs& attrs) {
  const Ints& begin = attrs.ints("begin");
  for (std::size_t i = 0; i < outputs[0].data.size(); ++i) {
    Ints at = unravel(outputs[0].shape, static_cast<std::int64_t>(i));
    for (std::size_t d = 0; d < at.size(); ++d) at[d] += begin[d];
    outputs[0].data[i] = inputs[0].data[index_of(inputs[0].shape, at)];
  }
}

void concat_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs& attrs) {
  const auto axis = static_cast<std::size_t>(attrs.integer("axis"));
  std::int64_t begin = 0;
  for (const RefTensor& part : inputs) {
    for (std::size_t i = 0; i < part.data.size(); ++i) {
      Ints at = unravel(part.shape, static_cast<std::int64_t>(i));
      at[axis] += begin;
      outputs[0].data[index_of(outputs[0].shape, at)] = part.data[i];
    }
    begin += part.shape[static_cast<int>(axis)];
  }
}

std::vector<Value> reshape_grad(GradContext& c) {
  return {reshape(c.builder, c.cotangents[0], Shape(c.builder.shape(c.inputs[0])))};
}

std::vector<Value> broadcast_grad(GradContext& c) {
  return {sum_to(c.builder, c.cotangents[0], Shape(c.builder.shape(c.inputs[0])))};
}

std::vector<Value> transpose_grad(GradContext& c) {
  const Ints& order = c.node.attrs.ints("order");
  Ints inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return {transpose(c.builder, c.cotangents[0], inverse)};
}

std::vector<Value> pad_grad(GradContext& c) {
  return {slice(c.builder, c.cotangents[0], c.node.attrs.ints("before"), to_ints(c.builder.shape(c.inputs[0])))};
}

std::vector<Value> slice_grad(GradContext& c) {
  const Ints& begin = c.node.attrs.ints("begin");
  Ints after = to_ints(c.builder.shape(c.inputs[0]));
  for (std::size_t i = 0; i < after.size(); ++i) after[i] -= begin[i] + c.node.attrs.ints("size")[i];
  return {pad(c.builder, c.cotangents[0], begin, after)};
}

std::vector<Value> concat_grad(GradContext& c) {
  const auto axis = static_cast<std::size_t>(c.node.attrs.integer("axis"));
  Ints begin(static_cast<std::size_t>(c.node.outputs[0].shape.rank()), 0);
  std::vector<Value> grads;
  for (const Value input : c.inputs) {
    const Ints size = to_ints(c.builder.shape(input));
    grads.push_back(slice(c.builder, c.cotangents[0], begin, size));
    begin[axis] += size[axis];
  }
  return grads;
}

Cost view_cost(std::span<const Spec>, std::span<const Spec>, const Attrs&) { return {}; }

}  // namespace

void register_movement(std::vector<OpDef>& table) {
  const auto add = [&](const char* name, OpDef::Infer infer, OpDef::Grad grad, OpDef::Reference reference) -> OpDef& {
    return table.emplace_back(OpDef{.name = name,
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .infer = std::move(infer),
                                    .grad = std::move(grad),
                                    .cost = streaming_cost(0),
                                    .reference = std::move(reference)});
  };
  OpDef& view = add("reshape", infer_reshape, reshape_grad, copy_reference);
  view.traits.view = true;
  view.cost = view_cost;
  OpDef& stretch = add("broadcast_to", infer_broadcast_to, broadcast_grad, broadcast_reference);
  stretch.traits.pointwise = true;
  stretch.emit = [](ExprBuilder&, std::span<const int> x, const Attrs&) { return x[0]; };
  add("transpose", infer_transpose, transpose_grad, transpose_reference);
  add("pad", infer_pad, pad_grad, pad_reference);
  add("slice", infer_slice, slice_grad, slice_reference);
  add("concat", infer_concat, concat_grad, concat_reference).max_inputs = std::numeric_limits<int>::max();
}

Value reshape(B& b, Value x, const Shape& shape) {
  if (b.shape(x) == shape) return x;
  return make(b, "reshape", {x}, {{"shape", to_ints(shape)}});
}

Value broadcast_to(B& b, Value x, const Shape& shape) {
  if (b.shape(x) == shape) return x;
  return make(b, "broadcast_to", {x}, {{"shape", to_ints(shape)}});
}

Value transpose(B& b, Value x, std::vector<std::int64_t> order) {
  return make(b, "transpose", {x}, {{"order", std::move(order)}});
}

Value pad(B& b, Value x, std::vector<std::int64_t> before, std::vector<std::int64_t> after, float value) {
  return make(b, "pad", {x},
              {{"before", std::move(before)}, {"after", std::move(after)}, {"value", static_cast<double>(value)}});
}

Value slice(B& b, Value x, std::vector<std::int64_t> begin, std::vector<std::int64_t> size) {
  return make(b, "slice", {x}, {{"begin", std::move(begin)}, {"size", std::move(size)}});
}

Value concat(B& b, std::span<const Value> parts, std::int64_t axis) {
  require(!parts.empty(), Code::bad_argument, "concat: there is nothing to join");
  const Ints axes = normalise_axes("concat", b.shape(parts[0]), {axis});
  return b.add(find_op("concat"), parts, {{"axis", axes[0]}});
}

Value flatten(B& b, Value x) {
  const Shape shape = b.shape(x);
  if (shape.rank() == 4 && shape[1] * shape[2] > 1) x = transpose(b, x, {0, 3, 1, 2});
  require(shape.rank() >= 1, Code::bad_argument, "flatten: expected a batch of tensors, got a scalar");
  return reshape(b, x, {shape[0], shape.elements(1, shape.rank())});
}

}  // namespace stoker::ops
