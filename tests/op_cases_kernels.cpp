// Op cases of reductions, matmul, convolutions, pooling, norms, softmax and gather.
#include "base/error.h"
#include "op_cases.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/window.h"

namespace stoker::test {
namespace {

using B = GraphBuilder;
using Values = std::vector<Value>;
using Sizes = std::array<std::int64_t, 2>;

struct ConvRow {
  Shape x;
  Shape w;
  ops::Window window;
  std::int64_t groups = 1;
};

const std::vector<ConvRow> kConvs = {
    {{1, 1, 1, 1}, {1, 1, 1, 1}, {}},
    {{2, 7, 5, 3}, {3, 3, 3, 7}, {.pad = {1, 1, 1, 1}}},
    {{1, 9, 8, 4}, {3, 3, 4, 6}, {.stride = {2, 2}, .pad = {1, 1, 1, 1}}},
    {{1, 7, 7, 5}, {2, 3, 5, 3}, {.stride = {2, 1}, .pad = {0, 1, 2, 0}}},
    {{1, 9, 9, 2}, {3, 3, 2, 3}, {.pad = {2, 2, 2, 2}, .dilation = {2, 2}}},
    {{2, 6, 5, 6}, {3, 3, 3, 4}, {.pad = {1, 1, 1, 1}}, 2},
    {{2, 3, 5, 63}, {1, 1, 63, 65}, {}},
    {{2, 7, 9, 7}, {1, 1, 7, 9}, {.stride = {2, 2}}},
    {{1, 12, 11, 1}, {5, 5, 1, 20}, {}},
    {{1, 10, 9, 16}, {3, 3, 16, 17}, {.pad = {1, 1, 1, 1}}},
    {{3, 5, 5, 8}, {5, 5, 8, 3}, {}},
    {{1, 2, 63, 3}, {1, 7, 3, 5}, {.stride = {1, 3}, .pad = {0, 3, 0, 3}}},
};

const std::vector<ConvRow> kDepthwise = {
    {{1, 1, 1, 7}, {1, 1, 1, 7}, {}},
    {{1, 5, 6, 1}, {3, 3, 1, 1}, {.pad = {1, 1, 1, 1}}},
    {{2, 5, 7, 63}, {3, 3, 1, 63}, {.pad = {1, 1, 1, 1}}},
    {{1, 8, 7, 65}, {3, 3, 1, 65}, {.stride = {2, 2}, .pad = {1, 1, 1, 1}}},
    {{1, 9, 6, 7}, {5, 5, 1, 7}, {.pad = {2, 2, 2, 2}}},
    {{1, 9, 9, 3}, {3, 3, 1, 3}, {.pad = {2, 2, 2, 2}, .dilation = {2, 2}}},
    {{1, 6, 7, 5}, {2, 3, 1, 5}, {.stride = {2, 1}, .pad = {0, 1, 1, 0}}},
};

// A row gives three cases: the op and its two gradients.
void conv_cases(std::vector<OpCase>& cases, const std::string& op, const ConvRow& row) {
  Attrs attrs;
  ops::set_window(attrs, row.window);
  if (op == "conv2d") attrs.set("groups", row.groups);
  const ops::Geometry g = ops::geometry_of("case", row.x, row.w[0], row.w[1], row.window);
  const Spec y = f32({g.N, g.OH, g.OW, row.w[3]});
  const std::string name = op + " " + to_string(row.x) + " " + to_string(row.w) + " " + to_string(attrs);
  const auto add = [&](const char* suffix, std::vector<Spec> inputs, const Attrs& with) {
    cases.push_back({.name = name + suffix,
                     .op = op + suffix,
                     .build =
                         [op = op + suffix, with](B& b, const Values& x) {
                           return ops::make(b, op.c_str(), {x[0], x[1]}, with);
                         },
                     .inputs = std::move(inputs),
                     .differentiable = *suffix == '\0',
                     .tolerance = 2e-5});
  };
  add("", {f32(row.x), f32(row.w)}, attrs);
  Attrs input_attrs = attrs;
  input_attrs.set("input_shape", ops::to_ints(row.x));
  add("_input_grad", {y, f32(row.w)}, input_attrs);
  attrs.set("weight_shape", ops::to_ints(row.w));
  add("_weight_grad", {f32(row.x), y}, attrs);
}

struct PoolRow {
  Shape x;
  Sizes kernel;
  ops::Window window;
};

const std::vector<PoolRow> kPools = {
    {{1, 1, 1, 1}, {1, 1}, {}},
    {{2, 8, 6, 7}, {2, 2}, {.stride = {2, 2}}},
    {{1, 7, 9, 63}, {3, 3}, {.stride = {2, 2}, .pad = {1, 1, 1, 1}}},
    {{1, 5, 6, 65}, {3, 2}, {.stride = {1, 1}, .pad = {0, 1, 1, 0}}},
    {{2, 7, 7, 3}, {7, 7}, {}},
};

template <typename Grad>
void pool_grad_case(std::vector<OpCase>& cases, const char* op, const PoolRow& row, Grad inputs_of, Attrs attrs) {
  const ops::Geometry g = ops::geometry_of("case", row.x, row.kernel[0], row.kernel[1], row.window);
  attrs.set("input_shape", ops::to_ints(row.x));
  attrs.set("kernel", Ints{row.kernel[0], row.kernel[1]});
  const auto inputs = inputs_of(Shape{g.N, g.OH, g.OW, g.C});
  std::vector<Range> ranges(inputs.size());
  if (inputs.size() == 2) ranges[0] = {0.0, static_cast<double>(g.KH * g.KW - 1)};
  cases.push_back({.name = std::string(op) + " " + to_string(row.x) + " " + to_string(attrs),
                   .op = op,
                   .build =
                       [=](B& b, const Values& x) {
                         return x.size() == 2 ? ops::make(b, op, {x[0], x[1]}, attrs) : ops::make(b, op, {x[0]}, attrs);
                       },
                   .inputs = inputs,
                   .ranges = ranges,
                   .differentiable = false});
}

void avg_pool_cases(std::vector<OpCase>& cases, const PoolRow& row) {
  for (const bool include : {true, false}) {
    cases.push_back(
        {.name = "avg_pool " + to_string(row.x) + (include ? " counting padding" : " without padding"),
         .op = "avg_pool",
         .build = [=](B& b, const Values& x) { return ops::avg_pool(b, x[0], row.kernel, row.window, include); },
         .inputs = {f32(row.x)}});
    const auto& [stride, pad, dilation] = row.window;
    pool_grad_case(cases, "avg_pool_grad", row, [](const Shape& y) { return std::vector{f32(y)}; },
                   {{"stride", Ints{stride[0], stride[1]}},
                    {"pad", Ints(pad.begin(), pad.end())},
                    {"count_include_pad", std::int64_t{include}}});
  }
}

void max_pool_cases(std::vector<OpCase>& cases, const PoolRow& row) {
  Attrs attrs;
  ops::set_window(attrs, row.window);
  cases.push_back({.name = str("max_pool ", row.x, " ", row.kernel[0], "x", row.kernel[1], " ", to_string(attrs)),
                   .op = "max_pool",
                   .build = [=](B& b, const Values& x) { return ops::max_pool(b, x[0], row.kernel, row.window).y; },
                   .inputs = {f32(row.x)}});
  pool_grad_case(
      cases, "max_pool_grad", row,
      [](const Shape& y) {
        return std::vector{Spec{DType::u8, y}, f32(y)};
      },
      attrs);
}

constexpr Range kPositive{0.3, 2.0};

}  // namespace

void reduction_cases(std::vector<OpCase>& cases) {
  const std::vector<std::pair<Shape, Ints>> rows = {
      {{1}, {}},
      {{7}, {}},
      {{7, 63}, {0}},
      {{7, 63}, {1}},
      {{3, 5, 65}, {0, 2}},
      {{3, 5, 7}, {1}},
      {{65, 63}, {}},
      {{2, 3, 4, 65}, {0, 1, 2}},
      {{2, 5, 4, 7}, {1, 2}},
      {{257, 33}, {0}},
      {{2, 3, 5, 7}, {0, 2}},
      {{1, 1, 9}, {0, 1}},
  };
  for (const auto& [shape, axes] : rows) {
    for (const bool keep : {false, true}) {
      const std::string name = to_string(shape) + " " + to_string(Attrs{{"axes", axes}}) + (keep ? " kept" : "");
      cases.push_back(
          {.name = "reduce_sum " + name,
           .op = "reduce_sum",
           .build = [=, axes = axes](B& b, const Values& x) { return ops::reduce_sum(b, x[0], axes, keep); },
           .inputs = {f32(shape)}});
      cases.push_back(
          {.name = "reduce_max " + name,
           .op = "reduce_max",
           .build = [=, axes = axes](B& b, const Values& x) { return ops::reduce_max(b, x[0], axes, keep); },
           .inputs = {f32(shape)}});
    }
  }
  for (const auto& [shape, axis] :
       std::vector<std::pair<Shape, int>>{{{1}, 0}, {{7, 63}, 0}, {{7, 65}, -1}, {{3, 5, 7}, 1}}) {
    cases.push_back({.name = "argmax " + to_string(shape) + " along " + std::to_string(axis),
                     .op = "argmax",
                     .build = [axis = axis](B& b, const Values& x) { return ops::argmax(b, x[0], axis); },
                     .inputs = {f32(shape)},
                     .differentiable = false});
  }
}

void matmul_cases(std::vector<OpCase>& cases) {
  struct Batch {
    Shape x;
    Shape y;
  };
  const std::vector<Batch> batches = {{{}, {}}, {{3}, {3}}, {{2, 3}, {2, 3}}, {{3}, {}}, {{}, {3}}};
  const std::vector<std::array<std::int64_t, 3>> sizes = {{1, 1, 1},   {7, 63, 65}, {65, 7, 63},
                                                          {63, 65, 1}, {1, 65, 7},  {5, 3, 9}};
  for (const auto& [M, K, N] : sizes) {
    for (const Batch& batch : batches) {
      if (batch.x.rank() + batch.y.rank() > 0 && M * N > 63) continue;  // the batch is what matters there
      for (const auto& [tx, ty] : {std::pair{false, false}, {false, true}, {true, false}}) {
        Shape x = batch.x;
        Shape y = batch.y;
        for (const std::int64_t size : tx ? Sizes{K, M} : Sizes{M, K}) x.push_back(size);
        for (const std::int64_t size : ty ? Sizes{N, K} : Sizes{K, N}) y.push_back(size);
        cases.push_back(
            {.name = std::string("matmul ") + (tx ? "T" : "N") + (ty ? "T " : "N ") + to_string(x) + to_string(y),
             .op = "matmul",
             .build = [tx = tx, ty = ty](B& b, const Values& in) { return ops::matmul(b, in[0], in[1], tx, ty); },
             .inputs = {f32(x), f32(y)}});
      }
    }
  }
}

void convolution_cases(std::vector<OpCase>& cases) {
  for (const ConvRow& row : kConvs) conv_cases(cases, "conv2d", row);
  for (const ConvRow& row : kDepthwise) conv_cases(cases, "depthwise", row);
}

void pooling_cases(std::vector<OpCase>& cases) {
  for (const PoolRow& row : kPools) {
    max_pool_cases(cases, row);
    avg_pool_cases(cases, row);
  }
  max_pool_cases(cases, {{1, 9, 8, 5}, {3, 3}, {.stride = {1, 2}, .pad = {2, 2, 2, 2}, .dilation = {2, 2}}});
}

void norm_cases(std::vector<OpCase>& cases) {
  for (const Shape& x : {Shape{7, 1}, Shape{9, 63}, Shape{2, 3, 5, 7}, Shape{5, 65}}) {
    const Spec channel = f32({x[-1]});
    cases.push_back(
        {.name = "batch_norm_train " + to_string(x),
         .op = "batch_norm_train",
         .build = [](B& b, const Values& in) { return ops::batch_norm_train(b, in[0], in[1], in[2], in[3]).y; },
         .inputs = {f32(x), channel, channel, channel},
         .tolerance = 5e-5});
    cases.push_back(
        {.name = "batch_norm_inference " + to_string(x),
         .op = "batch_norm_inference",
         .build = [](B& b,
                     const Values& in) { return ops::batch_norm_inference(b, in[0], in[1], in[2], in[3], in[4]); },
         .inputs = {f32(x), channel, channel, channel, channel},
         .ranges = {{}, {}, {}, {}, kPositive}});
  }
  for (const Shape& x : {Shape{7}, Shape{5, 65}, Shape{2, 3, 7}, Shape{63, 9}}) {
    cases.push_back({.name = "layer_norm " + to_string(x),
                     .op = "layer_norm",
                     .build = [](B& b, const Values& in) { return ops::layer_norm(b, in[0], in[1], in[2]); },
                     .inputs = {f32(x), f32({x[-1]}), f32({x[-1]})},
                     .tolerance = 5e-5});
  }
}

void softmax_cases(std::vector<OpCase>& cases) {
  for (const Shape& x : {Shape{1}, Shape{5, 7}, Shape{3, 65}, Shape{63, 10}, Shape{2, 3, 9}}) {
    cases.push_back({.name = "softmax " + to_string(x),
                     .op = "softmax",
                     .build = [](B& b, const Values& in) { return ops::softmax(b, in[0]); },
                     .inputs = {f32(x)},
                     .ranges = {{-5.0, 5.0}}});
    cases.push_back({.name = "log_softmax " + to_string(x),
                     .op = "log_softmax",
                     .build = [](B& b, const Values& in) { return ops::log_softmax(b, in[0]); },
                     .inputs = {f32(x)},
                     .ranges = {{-5.0, 5.0}}});
  }
  for (const Shape& x : {Shape{1, 1}, Shape{7, 10}, Shape{63, 3}, Shape{3, 65}}) {
    for (const double smoothing : {0.0, 0.1}) {
      cases.push_back(
          {.name = "softmax_cross_entropy " + to_string(x) + (smoothing > 0 ? " smoothed" : ""),
           .op = "softmax_cross_entropy",
           .build = [=](B& b, const Values& in) { return ops::softmax_cross_entropy(b, in[0], in[1], smoothing); },
           .inputs = {f32(x), i32({x[0]})},
           .ranges = {{-5.0, 5.0}, {0.0, static_cast<double>(x[1] - 1)}}});
    }
  }
}

void gather_cases(std::vector<OpCase>& cases) {
  for (const auto& [table, indices] : std::vector<std::pair<Shape, Shape>>{
           {{1, 1}, {1}}, {{7, 65}, {9}}, {{63, 5}, {3, 4}}, {{65, 7}, {}}, {{5, 3}, {63}}}) {
    const Range rows{0.0, static_cast<double>(table[0] - 1)};
    cases.push_back({.name = "gather " + to_string(table) + to_string(indices),
                     .op = "gather",
                     .build = [](B& b, const Values& x) { return ops::embedding(b, x[0], x[1]); },
                     .inputs = {f32(table), i32(indices)},
                     .ranges = {{}, rows}});
    Shape updates = indices;
    updates.push_back(table[1]);
    const Attrs attrs{{"shape", ops::to_ints(table)}};
    cases.push_back({.name = "scatter_add " + to_string(table) + to_string(indices),
                     .op = "scatter_add",
                     .build =
                         [=](B& b, const Values& x) {
                           return ops::make(b, "scatter_add", {x[0], x[1]}, attrs);
                         },
                     .inputs = {i32(indices), f32(updates)},
                     .ranges = {rows, {}}});
  }
}

}  // namespace stoker::test
