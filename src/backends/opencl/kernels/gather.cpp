// gather: rows of a table by number; scatter_add: its gradient, without atomics. A number out of range gives a row of
// NaN, or is left out.
#include <algorithm>
#include <array>

#include "backends/opencl/single.h"
#include "backends/opencl/stage_builder.h"

namespace stoker::opencl {
namespace {

// Of vectors along a row, where its length allows them.
int width_for(std::int64_t row, const Device& device) {
  const int widest = device.is_cpu() ? std::clamp(device.native_width, 4, 16) : 4;
  return row % widest == 0 ? widest : row % 4 == 0 ? 4 : 1;
}

std::vector<Work> prepare_gather(const KernelContext& context) {
  const Shape& table = context.input_spec(0).shape;
  const std::int64_t count = context.input_spec(1).shape.elements();
  const int width = width_for(table[1], context.device);
  if (count * table[1] == 0) return {};
  const bool aligned = !context.device.is_cpu();
  StageBuilder stage;
  stage.tensor("table", DType::f32, context.inputs[0], false);
  stage.tensor("numbers", DType::i32, context.inputs[1], false);
  stage.tensor("y", DType::f32, context.outputs[0], true);
  stage.integer("V", table[0]);
  stage.integer("D", table[1]);
  stage.integer("n", count * (table[1] / width));
  stage.add(str("  FOR_ITEMS(u, n) {\n  const int Q = D / ", width, ", i = u / Q, c = (u - i * Q) * ", width,
                ", from = numbers[i];\n  ", vector_type("float", width),
                " value = NAN;\n  if (from >= 0 && from < V) value = ",
                load_text(DType::f32, "table", "from * D + c", width, aligned), ";\n  ",
                store_text(DType::f32, "y", "i * D + c", "value", width, aligned), "\n  }\n"));
  const auto elements = static_cast<double>(count * table[1]);
  return {stage_or_launch(stage.finish(count * (table[1] / width), 0, 2 * elements), count * table[1], context.device)};
}

// A work-item owns a vector of columns in every G-th row of the table and goes through all numbers in order: every sum
// is taken in the same order, and nobody else writes there.
std::vector<Work> prepare_scatter_add(const KernelContext& context) {
  const Ints& table = context.node.attrs.ints("shape");
  const std::int64_t count = context.input_spec(0).shape.elements();
  const int width = width_for(table[1], context.device);
  const std::int64_t columns = table[1] / width;
  if (table[0] * table[1] == 0) return {};
  const bool aligned = !context.device.is_cpu();
  const std::int64_t wanted = ceil_div(context.device.is_cpu() ? 64 : 4096, columns);
  const std::int64_t groups = std::clamp<std::int64_t>(wanted, 1, table[0]);
  StageBuilder stage;
  stage.tensor("numbers", DType::i32, context.inputs[0], false);
  stage.tensor("dy", DType::f32, context.inputs[1], false);
  stage.tensor("table", DType::f32, context.outputs[0], true);
  stage.integer("V", table[0]);
  stage.integer("D", table[1]);
  stage.integer("N", count);
  stage.integer("G", groups);
  const std::string at = load_text(DType::f32, "table", "row * D + c", width, aligned);
  const std::string type = vector_type("float", width);
  stage.add(
      str("  const int Q = D / ", width, ";\n  FOR_ITEMS(u, Q * G) {\n  const int g = u / Q, c = (u - g * Q) * ", width,
          ";\n  const ", type, " zero = 0.0f;\n  for (int row = g; row < V; row += G) ",
          store_text(DType::f32, "table", "row * D + c", "zero", width, aligned),
          "\n  for (int i = 0; i < N; ++i) {\n  const int row = numbers[i];\n  if (row < 0 || row >= V || row % G "
          "!= g) continue;\n  const ",
          type, " sum = ", at, " + ", load_text(DType::f32, "dy", "i * D + c", width, aligned), ";\n  ",
          store_text(DType::f32, "table", "row * D + c", "sum", width, aligned), "\n  }\n  }\n"));
  const auto elements = static_cast<double>(count * table[1]);
  return {stage_or_launch(stage.finish(columns * groups, elements, 3 * elements),
                          std::max(count * table[1], table[0] * table[1]), context.device)};
}

}  // namespace

std::span<const KernelDef> gather_kernels() {
  static constexpr std::array kKernels = {
      KernelDef{.op = "gather", .prepare = prepare_gather},
      KernelDef{.op = "scatter_add", .prepare = prepare_scatter_add},
  };
  return kKernels;
}

}  // namespace stoker::opencl
