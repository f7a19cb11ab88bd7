// What the op families share: making nodes by name, shapes in attributes, cost rules, index arithmetic.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "graph/builder.h"
#include "graph/op_def.h"

namespace stoker::ops {

// Adds a node of the op of that name.
Value make(GraphBuilder& b, const char* op, std::initializer_list<Value> inputs, Attrs attrs = {});

[[nodiscard]] Ints to_ints(const Shape& shape);
[[nodiscard]] Shape to_shape(const Ints& dims);

[[nodiscard]] constexpr bool is_float(DType type) { return type == DType::f32 || type == DType::f16; }
void require_f32(const char* op, std::span<const Spec> inputs);

[[nodiscard]] double bytes_of(std::span<const Spec> specs);
// Reads every input and writes every output once, with so many flops for each element of the largest tensor.
[[nodiscard]] OpDef::CostRule streaming_cost(double flops_per_element);

// Where element number `element` of a tensor of shape `to` lies in one of shape `from` that broadcasts to it.
[[nodiscard]] std::int64_t broadcast_offset(const Shape& from, const Shape& to, std::int64_t element);

// Row-major index <-> position in each dimension.
[[nodiscard]] Ints unravel(const Shape& shape, std::int64_t element);
[[nodiscard]] std::int64_t ravel(const Shape& shape, std::span<const std::int64_t> position);

// The shape after reducing `axes` (ascending, non-negative).
[[nodiscard]] Shape reduced_shape(const Shape& shape, const Ints& axes, bool keep_dims);
// Ascending and non-negative; an empty list means all. An Error names `op` for one out of range or repeated.
[[nodiscard]] Ints normalise_axes(const char* op, const Shape& shape, std::vector<std::int64_t> axes);

// A gradient rule for ops through which nothing flows.
[[nodiscard]] std::vector<Value> no_gradient(GradContext& context);

}  // namespace stoker::ops
