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
  if (context.device.family == Family::mali) return result;  // vectors of exp() would not fit its registers
  const int widest = context.device.is_cpu() ? std::clamp(context.device.native_width, 4, 16) : 4;
  for (const int width : {widest, 4}) {
    if (result.width == 1 && result.n % width == 0) result.width = width;
  }
  return result;
}

// Writes `text` for the vectors of this row: TYPE, WIDTH, and their LOAD and STORE at i of p and q.
std::string specialised(std::string text, const Rows& rows, bool aligned) {
  const std::pair<std::string_view, std::string> words[] = {
      {"TYPE", vector_type("float", rows.width)},
      {"WIDTH", str(rows.width)},
      {"LOAD", load_text(DType::f32, "p", "i", rows.width, aligned)},
      {"STORE", store_text(DType::f32, "q", "i", "e", rows.width, aligned)}};
  for (const auto& [word, with] : words) {
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + with.size()))
      text.replace(at, word.size(), with);
  }
  return text;
}

// The functions that a row needs: its largest value (NaN if there is one), and the sum of lanes.
std::string row_functions(const Rows& rows, bool aligned) {
  constexpr std::string_view kLanes = "0123456789abcdef";
  std::string all;
  std::string most;
  for (int lane = 0; lane < rows.width; ++lane) {
    const std::string v = rows.width == 1 ? "v" : str("v.s", kLanes.substr(static_cast<std::size_t>(lane), 1));
    all += str(lane > 0 ? " + " : "", v);
    most += lane == 0 ? str("  float best = ", v, ";\n")
                      : str("  best = ", v, " > best || isnan(", v, ") ? ", v, " : best;\n");
  }
  return render_math(1) + specialised(str("float row_sum_WIDTH(TYPE v) { return ", all, "; }\n",
                                          R"(float row_most_WIDTH(global const float* p, int n) {
  TYPE v = -INFINITY;
  for (int i = 0; i < n; i += WIDTH) {
    const TYPE e = LOAD;
    v = select(v, e, (e > v) | (e != e));
  }
)",
                                          most, "  return best;\n}\n"),
                                      rows, aligned);
}

Stage finish(StageBuilder& stage, const Rows& rows) {
  const auto elements = static_cast<double>(rows.rows * rows.n);
  return stage.finish(rows.rows, 7 * elements, 3 * elements);
}

std::vector<Work> prepare_rows(const KernelContext& context, std::string_view body) {
  const Rows rows = rows_of(context);
  if (rows.rows == 0) return {};
  StageBuilder stage;
  stage.header(row_functions(rows, !context.device.is_cpu()));
  stage.tensor("x", DType::f32, context.inputs[0], false);
  stage.tensor("y", DType::f32, context.outputs[0], true);
  stage.integer("R", rows.rows);
  stage.integer("n", rows.n);
  stage.add("  FOR_ITEMS(row, R) {\n  global const float* p = x + row * n;\n  global float* q = y + row * n;\n");
  stage.add(specialised(std::string(body), rows, !context.device.is_cpu()));
  stage.add("  }\n");
  return {stage_or_launch(finish(stage, rows), rows.rows * rows.n, context.device)};
}

std::vector<Work> prepare_softmax(const KernelContext& context) {
  return prepare_rows(context, R"(  const float most = row_most_WIDTH(p, n);
  TYPE sums = 0.0f;
  for (int i = 0; i < n; i += WIDTH) {
    const TYPE e = exp(LOAD - most);
    sums += e;
    STORE
  }
  const float scale = 1.0f / row_sum_WIDTH(sums);
  for (int i = 0; i < n; ++i) q[i] *= scale;
)");
}

std::vector<Work> prepare_log_softmax(const KernelContext& context) {
  return prepare_rows(context, R"(  const float most = row_most_WIDTH(p, n);
  TYPE sums = 0.0f;
  for (int i = 0; i < n; i += WIDTH) sums += exp(LOAD - most);
  const float less = stoker_log_1(row_sum_WIDTH(sums));
  for (int i = 0; i < n; i += WIDTH) {
    const TYPE e = LOAD - most - less;
    STORE
  }
)");
}

// loss = log sum exp(x - max) - (1 - s) (x[label] - max) - s mean(x - max); a label that is no class gives NaN.
std::vector<Work> prepare_cross_entropy(const KernelContext& context) {
  const Rows rows = rows_of(context);
  if (rows.rows == 0) return {};
  StageBuilder stage;
  stage.header(row_functions(rows, !context.device.is_cpu()));
  stage.tensor("x", DType::f32, context.inputs[0], false);
  stage.tensor("labels", DType::i32, context.inputs[1], false);
  stage.tensor("loss", DType::f32, context.outputs[0], true);
  stage.tensor("dx", DType::f32, context.outputs[1], true);
  stage.integer("R", rows.rows);
  stage.integer("n", rows.n);
  stage.real("s", static_cast<float>(context.node.attrs.real("label_smoothing")));
  stage.add(specialised(R"(  FOR_ITEMS(row, R) {
  global const float* p = x + row * n;
  global float* q = dx + row * n;
  const int label = labels[row];
  const int valid = label >= 0 && label < n;
  const float most = row_most_WIDTH(p, n);
  const float picked = valid ? p[label] - most : NAN;
  float mean = 0.0f;
  if (s != 0.0f) {
    TYPE total = 0.0f;
    for (int i = 0; i < n; i += WIDTH) total += LOAD - most;
    mean = row_sum_WIDTH(total) / (float)n;
  }
  TYPE sums = 0.0f;
  for (int i = 0; i < n; i += WIDTH) {
    const TYPE e = exp(LOAD - most);
    sums += e;
    STORE
  }
  const float sum = row_sum_WIDTH(sums);
  const float scale = valid ? 1.0f / sum : NAN;
  const float less = s / (float)n;
  for (int i = 0; i < n; ++i) q[i] = q[i] * scale - (i == label ? 1.0f - s + less : less);
  loss[row] = stoker_log_1(sum) - (1.0f - s) * picked - s * mean;
  }
)",
                        rows, !context.device.is_cpu()));
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
