#include "ops/common.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "ops/registry.h"

namespace stoker::ops {

Value make(GraphBuilder& b, const char* op, std::initializer_list<Value> inputs, Attrs attrs) {
  return b.add(find_op(op), inputs, std::move(attrs));
}

Ints to_ints(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }
Shape to_shape(const Ints& dims) { return Shape(std::span<const std::int64_t>(dims)); }

void require_f32(const char* op, std::span<const Spec> inputs) {
  for (const Spec& spec : inputs) {
    require(spec.dtype == DType::f32, Code::bad_argument, op, ": expected f32, got ", spec);
  }
}

double bytes_of(std::span<const Spec> specs) {
  double bytes = 0;
  for (const Spec& spec : specs) bytes += static_cast<double>(spec.bytes());
  return bytes;
}

OpDef::CostRule streaming_cost(double flops_per_element) {
  return [=](std::span<const Spec> inputs, std::span<const Spec> outputs, const Attrs&) {
    std::int64_t elements = 0;
    for (const Spec& spec : inputs) elements = std::max(elements, spec.shape.elements());
    for (const Spec& spec : outputs) elements = std::max(elements, spec.shape.elements());
    return Cost{.flops = flops_per_element * static_cast<double>(elements),
                .bytes = bytes_of(inputs) + bytes_of(outputs)};
  };
}

std::int64_t broadcast_offset(const Shape& from, const Shape& to, std::int64_t element) {
  if (from == to) return element;
  std::int64_t offset = 0;
  std::int64_t stride = 1;
  for (int i = 1; i <= from.rank(); ++i) {
    if (from[-i] != 1) offset += element % to[-i] * stride;
    element /= to[-i];
    stride *= from[-i];
  }
  return offset;
}

Ints unravel(const Shape& shape, std::int64_t element) {
  Ints position(static_cast<std::size_t>(shape.rank()));
  for (int i = shape.rank() - 1; i >= 0; --i) {
    position[static_cast<std::size_t>(i)] = element % shape[i];
    element /= shape[i];
  }
  return position;
}

std::int64_t ravel(const Shape& shape, std::span<const std::int64_t> position) {
  std::int64_t element = 0;
  for (int i = 0; i < shape.rank(); ++i) element = element * shape[i] + position[static_cast<std::size_t>(i)];
  return element;
}

Shape reduced_shape(const Shape& shape, const Ints& axes, bool keep_dims) {
  Shape result;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool reduced = std::ranges::find(axes, i) != axes.end();
    if (!reduced) result.push_back(shape[i]);
    if (reduced && keep_dims) result.push_back(1);
  }
  return result;
}

Ints normalise_axes(const char* op, const Shape& shape, std::vector<std::int64_t> axes) {
  const std::int64_t rank = shape.rank();
  if (axes.empty()) {
    axes.resize(static_cast<std::size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (std::int64_t& axis : axes) {
    require(axis >= -rank && axis < rank, Code::bad_argument, op, ": axis ", axis, " is out of range for ", shape);
    if (axis < 0) axis += rank;
  }
  std::ranges::sort(axes);
  require(std::ranges::adjacent_find(axes) == axes.end(), Code::bad_argument, op, ": an axis is named twice");
  return axes;
}

std::vector<Value> no_gradient(GradContext& context) { return std::vector<Value>(context.inputs.size()); }

}  // namespace stoker::ops
