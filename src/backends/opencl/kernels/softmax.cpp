// softmax and log_softmax over the last dimension; softmax_cross_entropy with its gradient in one pass. A work-item has
// a row, in vectors where the row's length allows it.
#include <algorithm>
#include <array>
#include <string>

#include "backends/opencl/single.h"
#include "backends/opencl/stage_builder.h"

namespace stoker::opencl {
namespace {

struct Rows {
  std::int64_t rows = 0;
  std::int64_t n = 1;  // of a row
  int width = 1;
};

Rows rows_of(const KernelContext& context) {
  const Shape& shape = context.input_spec(0).shape;
  Rows result{.n = shape[-1]};
  result.rows = shape.elements() / result.n;
  const int widest = context.device.is_cpu() ? std::clamp(context.device.native_width, 4, 16) : 4;
  for (const int width : {widest, 4}) {
    if (result.width == 1 && result.n % width == 0) result.width = width;
  }
  return result;
}

// The functions that a row needs, for vectors of `width`: its largest value (NaN if there is one), and sums over lanes.
std::string row_functions(int width, bool aligned) {
  const std::string type = vector_type("float", width);
  std::string all = "v";
  std::string lanes;
  constexpr std::string_view kLanes = "0123456789abcdef";
  if (width > 1) {
    all = "v.s0";
    for (int lane = 1; lane < width; ++lane) all += str(" + v.s", kLanes.substr(static_cast<std::size_t>(lane), 1));
    lanes = "  float most = v.s0;\n";
    for (int lane = 1; lane < width; ++lane) {
      const std::string next = str("v.s", kLanes.substr(static_cast<std::size_t>(lane), 1));
      lanes += str("  most = ", next, " > most || isnan(", next, ") ? ", next, " : most;\n");
    }
    lanes += "  return most;\n";
  } else {
    lanes = "  return v;\n";
  }
  return str("#define ROW_TYPE ", type, "\n#define ROW_WIDTH ", width, "\n#define ROW_LOAD(i) (",
             load_text(DType::f32, "p", "(i)", width, aligned), ")\n#define ROW_STORE(i, value) ",
             store_text(DType::f32, "q", "(i)", "value", width, aligned), "\nfloat row_sum(", type, " v) { return ",
             all, "; }\nfloat row_most_lane(", type, " v) {\n", lanes, "}\n",
             R"(float row_most(global const float* p, int n) {
  ROW_TYPE most = -INFINITY;
  for (int i = 0; i < n; i += ROW_WIDTH) {
    const ROW_TYPE v = ROW_LOAD(i);
    most = select(most, v, (v > most) | (v != v));
  }
  return row_most_lane(most);
}
)");
}

Stage finish(StageBuilder& stage, const Rows& rows) {
  const auto elements = static_cast<double>(rows.rows * rows.n);
  return stage.finish(rows.rows, 7 * elements, 3 * elements);
}

std::vector<Work> prepare_rows(const KernelContext& context, std::string_view body) {
  const Rows rows = rows_of(context);
  if (rows.rows == 0) return {};
  StageBuilder stage;
  stage.header(row_functions(rows.width, !context.device.is_cpu()));
  stage.tensor("x", DType::f32, context.inputs[0], false);
  stage.tensor("y", DType::f32, context.outputs[0], true);
  stage.integer("R", rows.rows);
  stage.integer("n", rows.n);
  stage.add("  FOR_ITEMS(row, R) {\n  global const float* p = x + row * n;\n  global float* q = y + row * n;\n");
  stage.add(body);
  stage.add("  }\n");
  return {stage_or_launch(finish(stage, rows), rows.rows * rows.n, context.device)};
}

std::vector<Work> prepare_softmax(const KernelContext& context) {
  return prepare_rows(context, R"(  const float most = row_most(p, n);
  ROW_TYPE sums = 0.0f;
  for (int i = 0; i < n; i += ROW_WIDTH) {
    const ROW_TYPE e = exp(ROW_LOAD(i) - most);
    sums += e;
    ROW_STORE(i, e)
  }
  const float scale = 1.0f / row_sum(sums);
  for (int i = 0; i < n; ++i) q[i] *= scale;
)");
}

std::vector<Work> prepare_log_softmax(const KernelContext& context) {
  return prepare_rows(context, R"(  const float most = row_most(p, n);
  ROW_TYPE sums = 0.0f;
  for (int i = 0; i < n; i += ROW_WIDTH) sums += exp(ROW_LOAD(i) - most);
  const float less = log(row_sum(sums));
  for (int i = 0; i < n; i += ROW_WIDTH) {
    const ROW_TYPE v = ROW_LOAD(i) - most - less;
    ROW_STORE(i, v)
  }
)");
}

// loss = log sum exp(x - max) - (1 - s) (x[label] - max) - s mean(x - max); a label that is no class gives NaN.
std::vector<Work> prepare_cross_entropy(const KernelContext& context) {
  const Rows rows = rows_of(context);
  if (rows.rows == 0) return {};
  StageBuilder stage;
  stage.header(row_functions(rows.width, !context.device.is_cpu()));
  stage.tensor("x", DType::f32, context.inputs[0], false);
  stage.tensor("labels", DType::i32, context.inputs[1], false);
  stage.tensor("loss", DType::f32, context.outputs[0], true);
  stage.tensor("dx", DType::f32, context.outputs[1], true);
  stage.integer("R", rows.rows);
  stage.integer("n", rows.n);
  stage.real("s", static_cast<float>(context.node.attrs.real("label_smoothing")));
  stage.add(R"(  FOR_ITEMS(row, R) {
  global const float* p = x + row * n;
  global float* q = dx + row * n;
  const int label = labels[row];
  const int valid = label >= 0 && label < n;
  const float most = row_most(p, n);
  const float picked = valid ? p[label] - most : NAN;
  float mean = 0.0f;
  if (s != 0.0f) {
    ROW_TYPE total = 0.0f;
    for (int i = 0; i < n; i += ROW_WIDTH) total += ROW_LOAD(i) - most;
    mean = row_sum(total) / (float)n;
  }
  ROW_TYPE sums = 0.0f;
  for (int i = 0; i < n; i += ROW_WIDTH) {
    const ROW_TYPE e = exp(ROW_LOAD(i) - most);
    sums += e;
    ROW_STORE(i, e)
  }
  const float sum = row_sum(sums);
  const float scale = valid ? 1.0f / sum : NAN;
  const float less = s / (float)n;
  for (int i = 0; i < n; ++i) q[i] = q[i] * scale - (i == label ? 1.0f - s + less : less);
  loss[row] = log(sum) - (1.0f - s) * picked - s * mean;
  }
)");
  return {stage_or_launch(finish(stage, rows), rows.rows * rows.n, context.device)};
}

}  // namespace

std::span<const KernelDef> softmax_kernels() {
  static constexpr std::array kKernels = {
      KernelDef{.op = "softmax", .prepare = prepare_softmax},
      KernelDef{.op = "log_softmax", .prepare = prepare_log_softmax},
      KernelDef{.op = "softmax_cross_entropy", .prepare = prepare_cross_entropy},
  };
  return kKernels;
}

}  // namespace stoker::opencl
