// reduce_sum, reduce_max, argmax. A reduction over any axes is a chain of steps out[o, i] = reduction over r of
// in[o, r, i], innermost axes first. A step's R is cut into K chunks by shape, whose results a stage joins in order.
#include <algorithm>
#include <array>
#include <numeric>
#include <string>

#include "backends/opencl/kernels/movement.h"
#include "backends/opencl/single.h"
#include "backends/opencl/stage_builder.h"
#include "graph/op_def.h"

namespace stoker::opencl {
namespace {

enum class Kind : std::uint8_t { sum, max };

// One step, with letters as in the code: [O, R, I] -> [O, I].
struct Reduction {
  std::int64_t O = 1;
  std::int64_t R = 1;
  std::int64_t I = 1;
  int width = 1;       // of vectors along I, or along R where I is 1
  std::int64_t K = 1;  // chunks

  [[nodiscard]] std::int64_t results() const { return O * I; }
  [[nodiscard]] std::int64_t partial_bytes() const { return K > 1 ? round_up(4 * K * results(), 128) : 0; }
};

int widest_of(const Device& device) { return device.is_cpu() ? std::clamp(device.native_width, 4, 16) : 4; }

void cut(Reduction& step, const Device& device) {
  const int widest = widest_of(device);
  const std::int64_t along = step.I > 1 ? step.I : step.R;
  step.width = along % widest == 0 ? widest : along % 4 == 0 ? 4 : 1;
  if (step.I == 1 && device.is_cpu()) step.width = widest;  // what is left over is added at the end
  const std::int64_t units = step.O * std::max<std::int64_t>(1, step.I > 1 ? step.I / step.width : 1);
  const std::int64_t length = std::max<std::int64_t>(1, step.I > 1 ? step.R : step.R / step.width);
  // Enough for every thread, and not so little each that joining costs more.
  const std::int64_t wanted = device.is_cpu() ? ceil_div(64, units) : ceil_div(4096, units);
  const std::int64_t least = device.is_cpu() ? ceil_div(8192, step.I > 1 ? step.width : 16) : 16;
  step.K = std::clamp<std::int64_t>(std::min(wanted, length / least), 1, 256);
}

std::vector<Reduction> reductions_of(const Shape& shape, const Ints& axes, const Device& device) {
  std::vector<Reduction> steps;
  const auto is_reduced = [&](int i) { return std::ranges::find(axes, i) != axes.end(); };
  std::int64_t inner = 1;
  for (int i = shape.rank() - 1; i >= 0;) {
    if (!is_reduced(i)) {
      inner *= shape[i--];
      continue;
    }
    std::int64_t run = 1;
    while (i >= 0 && (is_reduced(i) || shape[i] == 1)) run *= shape[i--];
    if (run == 1) continue;
    const std::int64_t outer = shape.elements(0, i + 1);
    // Several rows as one, where a row is no whole number of vectors but they are: [O, R, I] as [O, R / m, m * I]
    // first.
    const std::int64_t widest = widest_of(device);
    const std::int64_t rows = inner > 1 ? widest / std::gcd(inner, widest) : 1;
    if (rows > 1 && run % rows == 0 && run / rows >= 64) {
      steps.push_back({.O = outer, .R = run / rows, .I = inner * rows});
      cut(steps.back(), device);
      run = rows;
    }
    steps.push_back({.O = outer, .R = run, .I = inner});
    cut(steps.back(), device);
  }
  return steps;
}

// `into` joined with `value`; NaN wins a maximum.
std::string joined(Kind kind, const std::string& into, const std::string& value, int width) {
  if (kind == Kind::sum) return str(into, " += ", value, ";");
  return str("{ const ", vector_type("float", width), " v = ", value, "; ", into, " = select(", into, ", v, (v > ",
             into, ") | (v != v)); }");
}

const char* start(Kind kind) { return kind == Kind::sum ? "0.0f" : "-INFINITY"; }

// The loop of one work-item over its part of r, into `acc`. A GPU's neighbours take every K-th vector, so that they
// read side by side; a CPU's thread reads on.
std::string chunk_loop(Kind kind, const Reduction& step, const Device& device) {
  const bool cpu = device.is_cpu();
  const std::string loop =
      cpu ? "  for (int r = k * P; r < min(k * P + P, N); ++r) " : "  for (int r = k; r < N; r += K) ";
  const std::string index = step.I > 1 ? "(o * R + r) * I + c" : str("o * R + r * ", step.width);
  return loop + joined(kind, "acc", load_text(DType::f32, "x", index, step.width, !cpu), step.width) + "\n";
}

// A row's chunk as a scalar: lanes from the first to the last, then what no vector held.
std::string fold_row(Kind kind, const Reduction& step) {
  std::string text;
  if (step.width == 1) return "  float all = acc;\n";
  text += "  float all = acc.s0;\n";
  constexpr std::string_view kLanes = "0123456789abcdef";
  for (int lane = 1; lane < step.width; ++lane)
    text += "  " + joined(kind, "all", str("acc.s", kLanes.substr(static_cast<std::size_t>(lane), 1)), 1) + "\n";
  if (step.R % step.width != 0) {
    text += str("  if (k == K - 1) for (int r = N * ", step.width, "; r < R; ++r) ",
                joined(kind, "all", "x[o * R + r]", 1), "\n");
  }
  return text;
}

Stage reduce_stage(Kind kind, const Reduction& step, const Place& from, const Place& to, const Device& device) {
  StageBuilder stage;
  stage.tensor("x", DType::f32, from, false);
  stage.tensor("y", DType::f32, to, true);
  const std::int64_t length = step.I > 1 ? step.R : step.R / step.width;  // N: vectors or rows
  for (const auto& [name, value] : {std::pair("O", step.O), {"R", step.R}, {"I", step.I}, {"K", step.K}, {"N", length}})
    stage.integer(name, value);
  if (device.is_cpu()) stage.integer("P", ceil_div(length, step.K));
  const std::string clear = str("  ", vector_type("float", step.width), " acc = ", start(kind), ";\n");
  std::int64_t items = step.O * step.K;
  if (step.I > 1) {
    items *= step.I / step.width;
    stage.add(str("  const int Q = I / ", step.width, ";\n  FOR_ITEMS(u, K * O * Q) {\n  const int c = u % Q * ",
                  step.width, ", o = u / Q % O, k = u / Q / O;\n", clear, chunk_loop(kind, step, device), "  ",
                  store_text(DType::f32, "y", "(k * O + o) * I + c", "acc", step.width, !device.is_cpu()), "\n  }\n"));
  } else {
    stage.add(str("  FOR_ITEMS(u, K * O) {\n  const int k = u % K, o = u / K;\n", clear, chunk_loop(kind, step, device),
                  fold_row(kind, step), "  y[k * O + o] = all;\n  }\n"));
  }
  const auto elements = static_cast<double>(step.O * step.R * step.I);
  return stage.finish(items, elements, elements);
}

// Joins [K, n] into [n].
Stage join_stage(Kind kind, const Reduction& step, const Place& from, const Place& to) {
  StageBuilder stage;
  stage.tensor("x", DType::f32, from, false);
  stage.tensor("y", DType::f32, to, true);
  stage.integer("K", step.K);
  stage.integer("n", step.results());
  stage.add(str("  FOR_ITEMS(i, n) {\n  float acc = ", start(kind), ";\n  for (int k = 0; k < K; ++k) ",
                joined(kind, "acc", "x[k * n + i]", 1), "\n  y[i] = acc;\n  }\n"));
  const auto elements = static_cast<double>(step.K * step.results());
  return stage.finish(step.results(), elements, elements);
}

std::int64_t workspace_reduce(const KernelContext& context) {
  std::int64_t bytes = 0;
  for (const Reduction& step :
       reductions_of(context.input_spec(0).shape, context.node.attrs.ints("axes"), context.device))
    bytes += step.partial_bytes() + round_up(4 * step.results(), 128);
  return bytes;
}

template <Kind kKind>
std::vector<Work> prepare_reduce(const KernelContext& context) {
  const std::vector<Reduction> steps =
      reductions_of(context.input_spec(0).shape, context.node.attrs.ints("axes"), context.device);
  if (context.output_spec(0).shape.elements() == 0) return {};
  if (steps.empty()) return {copy_work(context.inputs[0], context.outputs[0], context.input_spec(0), context.device)};
  std::vector<Work> work;
  Place from = context.inputs[0];
  std::int64_t used = 0;
  for (const Reduction& step : steps) {
    const bool last = &step == &steps.back();
    const std::int64_t bytes = 4 * step.results();
    const Place partial = part(context.scratch, used, 4 * step.K * step.results());
    used += step.partial_bytes();
    const Place to = last ? context.outputs[0] : part(context.scratch, used, bytes);
    if (!last) used += round_up(bytes, 128);
    work.push_back(stage_or_launch(reduce_stage(kKind, step, from, step.K > 1 ? partial : to, context.device),
                                   step.O * step.R * step.I, context.device));
    if (step.K > 1) work.emplace_back(join_stage(kKind, step, partial, to));
    from = to;
  }
  return work;
}

std::vector<Work> prepare_argmax(const KernelContext& context) {
  const Shape& shape = context.input_spec(0).shape;
  const auto axis = static_cast<int>(context.node.attrs.ints("axes")[0]);
  const std::int64_t inner = shape.elements(axis + 1, shape.rank());
  const std::int64_t results = shape.elements(0, axis) * inner;
  StageBuilder stage;
  stage.tensor("x", DType::f32, context.inputs[0], false);
  stage.tensor("y", DType::i32, context.outputs[0], true);
  stage.integer("n", results);
  stage.integer("R", shape[axis]);
  stage.integer("I", inner);
  // The first of ties, and the first NaN over all.
  stage.add(R"(  FOR_ITEMS(i, n) {
  global const float* p = x + i / I * R * I + i % I;
  float best = p[0];
  int position = 0;
  for (int r = 1; r < R; ++r) {
    const float v = p[r * I];
    const int better = (v > best || isnan(v)) && !isnan(best);
    best = better ? v : best;
    position = better ? r : position;
  }
  y[i] = position;
  }
)");
  const auto elements = static_cast<double>(shape.elements());
  return {stage_or_launch(stage.finish(results, elements, elements), shape.elements(), context.device)};
}

}  // namespace

std::span<const KernelDef> reduction_kernels() {
  static constexpr std::array kKernels = {
      KernelDef{.op = "reduce_sum", .prepare = prepare_reduce<Kind::sum>, .workspace = workspace_reduce},
      KernelDef{.op = "reduce_max", .prepare = prepare_reduce<Kind::max>, .workspace = workspace_reduce},
      KernelDef{.op = "argmax", .prepare = prepare_argmax},
  };
  return kKernels;
}

}  // namespace stoker::opencl
