// gather(table [V, D], indices i32[...]) -> [..., D] and scatter_add(indices, updates [..., D]) -> [V, D], each the
// other's gradient. A row that does not exist is NaN when gathered and left out when scattered.
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/registry.h"

namespace stoker::ops {
namespace {

void require_indices(const char* op, const Spec& indices) {
  require(indices.dtype == DType::i32, Code::bad_argument, op, ": indices are i32, got ", indices);
}

std::vector<Spec> infer_gather(std::span<const Spec> inputs, const Attrs&) {
  require_f32("gather", inputs.first(1));
  require_indices("gather", inputs[1]);
  require(inputs[0].shape.rank() == 2, Code::bad_argument, "gather: expected a table [V, D], got ", inputs[0].shape);
  Shape shape = inputs[1].shape;
  shape.push_back(inputs[0].shape[1]);
  return {{DType::f32, shape}};
}

std::vector<Spec> infer_scatter_add(std::span<const Spec> inputs, const Attrs& attrs) {
  require_indices("scatter_add", inputs[0]);
  require_f32("scatter_add", inputs.subspan(1));
  const Shape table = to_shape(attrs.ints("shape"));
  require(table.rank() == 2, Code::bad_argument, "scatter_add: expected a table [V, D], got ", table);
  Shape updates = inputs[0].shape;
  updates.push_back(table[1]);
  require(inputs[1].shape == updates, Code::bad_argument, "scatter_add: expected updates ", updates, ", got ",
          inputs[1].shape);
  return {{DType::f32, table}};
}

// Calls body(first element of the row or -1 if there is none, first element of the update) for each index.
template <typename Body>
void for_each_row(const RefTensor& indices, const Shape& table, const Body& body) {
  for (std::size_t i = 0; i < indices.data.size(); ++i) {
    const auto row = static_cast<std::int64_t>(indices.data[i]);
    body(row >= 0 && row < table[0] ? row * table[1] : -1, static_cast<std::int64_t>(i) * table[1]);
  }
}

void gather_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs&) {
  const std::int64_t D = inputs[0].shape[1];
  for_each_row(inputs[1], inputs[0].shape, [&](std::int64_t row, std::int64_t at) {
    if (row < 0) {
      std::fill_n(outputs[0].data.begin() + at, D, std::numeric_limits<double>::quiet_NaN());
    } else {
      std::copy_n(inputs[0].data.begin() + row, D, outputs[0].data.begin() + at);
    }
  });
}

void scatter_add_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs&) {
  const std::int64_t D = outputs[0].shape[1];
  for_each_row(inputs[0], outputs[0].shape, [&](std::int64_t row, std::int64_t at) {
    for (std::int64_t d = 0; row >= 0 && d < D; ++d) {
      outputs[0].data[static_cast<std::size_t>(row + d)] += inputs[1].data[static_cast<std::size_t>(at + d)];
    }
  });
}

std::vector<Value> gather_grad(GradContext& c) {
  const Ints shape = to_ints(c.builder.shape(c.inputs[0]));
  return {make(c.builder, "scatter_add", {c.inputs[1], c.cotangents[0]}, {{"shape", shape}}), Value{}};
}

std::vector<Value> scatter_add_grad(GradContext& c) {
  return {Value{}, make(c.builder, "gather", {c.cotangents[0], c.inputs[0]})};
}

Cost gather_cost(std::span<const Spec> inputs, std::span<const Spec> outputs, const Attrs&) {
  // Only the rows that are asked for are read.
  return {.bytes = static_cast<double>(inputs[1].bytes()) + 2 * bytes_of(outputs)};
}

}  // namespace

void register_gather(std::vector<OpDef>& table) {
  table.push_back({.name = "gather",
                   .min_inputs = 2,
                   .max_inputs = 2,
                   .infer = infer_gather,
                   .grad = gather_grad,
                   .cost = gather_cost,
                   .reference = gather_reference});
  table.push_back({.name = "scatter_add",
                   .min_inputs = 2,
                   .max_inputs = 2,
                   .infer = infer_scatter_add,
                   .grad = scatter_add_grad,
                   .cost = streaming_cost(1),
                   .reference = scatter_add_reference});
}

Value embedding(B& b, Value table, Value indices) { return make(b, "gather", {table, indices}); }

}  // namespace stoker::ops
