// max_pool, avg_pool and their gradients on images [N, H, W, C]. Padding never wins a maximum; whether it counts in an
// average is count_include_pad. Attributes: kernel, stride, pad, for max_pool dilation.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/common.h"
#include "ops/registry.h"
#include "ops/window.h"

namespace stoker::ops {
namespace {

Geometry pool_of(const char* op, const Shape& x, const Attrs& attrs) {
  const Ints& kernel = attrs.ints("kernel");
  require(kernel.size() == 2, Code::bad_argument, op, ": a kernel has 2 sizes, got ", kernel.size());
  const Geometry g = geometry_of(op, x, kernel[0], kernel[1], window_of(attrs));
  for (std::size_t i = 0; i < 4; ++i) {
    const std::int64_t extent = (kernel[i % 2] - 1) * g.window.dilation[i % 2] + 1;
    require(g.window.pad[i] <= extent / 2, Code::bad_argument, op, ": padding of ", g.window.pad[i],
            " is more than half of the kernel's ", extent);
  }
  return g;
}

Shape output_of(const Geometry& g) { return {g.N, g.OH, g.OW, g.C}; }

std::vector<Spec> infer_max(std::span<const Spec> inputs, const Attrs& attrs) {
  require_f32("max_pool", inputs);
  const Geometry g = pool_of("max_pool", inputs[0].shape, attrs);
  require(g.KH * g.KW <= 256, Code::bad_argument, "max_pool: a window has at most 256 positions, not ", g.KH, " x ",
          g.KW);
  return {{DType::f32, output_of(g)}, {DType::u8, output_of(g)}};
}

std::vector<Spec> infer_max_grad(std::span<const Spec> inputs, const Attrs& attrs) {
  const Shape x = to_shape(attrs.ints("input_shape"));
  const Shape y = output_of(pool_of("max_pool_grad", x, attrs));
  require(inputs[0] == Spec{DType::u8, y} && inputs[1] == Spec{DType::f32, y}, Code::bad_argument,
          "max_pool_grad: expected u8 and f32 of ", y, ", got ", inputs[0], " and ", inputs[1]);
  return {{DType::f32, x}};
}

std::vector<Spec> infer_avg(std::span<const Spec> inputs, const Attrs& attrs) {
  require_f32("avg_pool", inputs);
  return {{DType::f32, output_of(pool_of("avg_pool", inputs[0].shape, attrs))}};
}

std::vector<Spec> infer_avg_grad(std::span<const Spec> inputs, const Attrs& attrs) {
  const Shape x = to_shape(attrs.ints("input_shape"));
  const Spec y{DType::f32, output_of(pool_of("avg_pool_grad", x, attrs))};
  require(inputs[0] == y, Code::bad_argument, "avg_pool_grad: expected ", y, ", got ", inputs[0]);
  return {{DType::f32, x}};
}

// Calls body(x, y, position) with element numbers and the position within the window.
template <typename Body>
void for_each_pair(const Geometry& g, const Body& body) {
  for_each_tap(g, [&](std::int64_t output, std::int64_t kh, std::int64_t kw, std::int64_t input) {
    for (std::int64_t c = 0; c < g.C; ++c) {
      body(static_cast<std::size_t>(input * g.C + c), static_cast<std::size_t>(output * g.C + c), kh * g.KW + kw);
    }
  });
}

void max_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs& attrs) {
  std::vector<double>& y = outputs[0].data;
  y.assign(y.size(), -std::numeric_limits<double>::infinity());
  const Geometry g = pool_of("max_pool", inputs[0].shape, attrs);
  for_each_pair(g, [&](std::size_t i, std::size_t o, std::int64_t position) {
    const double x = inputs[0].data[i];
    if (!(x > y[o] || (std::isnan(x) && !std::isnan(y[o])))) return;  // the first of ties, and the first NaN over all
    y[o] = x;
    outputs[1].data[o] = static_cast<double>(position);
  });
}

void max_grad_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs& attrs) {
  const Geometry g = pool_of("max_pool_grad", outputs[0].shape, attrs);
  for_each_pair(g, [&](std::size_t i, std::size_t o, std::int64_t position) {
    if (inputs[0].data[o] == static_cast<double>(position)) outputs[0].data[i] += inputs[1].data[o];
  });
}

// How many positions each output averages over, by output element.
std::vector<double> divisors(const Geometry& g, const Attrs& attrs) {
  const auto elements = static_cast<std::size_t>(output_of(g).elements());
  if (attrs.integer("count_include_pad") != 0) return std::vector<double>(elements, static_cast<double>(g.KH * g.KW));
  std::vector<double> count(elements, 0.0);
  for_each_pair(g, [&](std::size_t, std::size_t o, std::int64_t) { count[o] += 1; });
  return count;
}

void avg_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs& attrs) {
  const Geometry g = pool_of("avg_pool", inputs[0].shape, attrs);
  const std::vector<double> count = divisors(g, attrs);
  for_each_pair(
      g, [&](std::size_t i, std::size_t o, std::int64_t) { outputs[0].data[o] += inputs[0].data[i] / count[o]; });
}

void avg_grad_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs& attrs) {
  const Geometry g = pool_of("avg_pool_grad", outputs[0].shape, attrs);
  const std::vector<double> count = divisors(g, attrs);
  for_each_pair(
      g, [&](std::size_t i, std::size_t o, std::int64_t) { outputs[0].data[i] += inputs[0].data[o] / count[o]; });
}

// A comparison or an addition for each position of each window; `pooled` says which tensor has the output's shape.
Cost pool_cost(std::int64_t pooled, std::span<const Spec> inputs, std::span<const Spec> outputs, const Attrs& attrs) {
  const Ints& kernel = attrs.ints("kernel");
  return {.flops = static_cast<double>(pooled * kernel[0] * kernel[1]), .bytes = bytes_of(inputs) + bytes_of(outputs)};
}

Cost forward_cost(std::span<const Spec> inputs, std::span<const Spec> outputs, const Attrs& attrs) {
  return pool_cost(outputs[0].shape.elements(), inputs, outputs, attrs);
}

Cost backward_cost(std::span<const Spec> inputs, std::span<const Spec> outputs, const Attrs& attrs) {
  return pool_cost(inputs[0].shape.elements(), inputs, outputs, attrs);
}

Attrs with_input_shape(const GradContext& c) {
  Attrs attrs = c.node.attrs;
  attrs.set("input_shape", to_ints(c.builder.shape(c.inputs[0])));
  return attrs;
}

std::vector<Value> max_grad(GradContext& c) {
  return {make(c.builder, "max_pool_grad", {c.outputs[1], c.cotangents[0]}, with_input_shape(c))};
}

std::vector<Value> avg_grad(GradContext& c) {
  return {make(c.builder, "avg_pool_grad", {c.cotangents[0]}, with_input_shape(c))};
}

}  // namespace

void register_pooling(std::vector<OpDef>& table) {
  table.push_back({.name = "max_pool",
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .infer = infer_max,
                   .grad = max_grad,
                   .cost = forward_cost,
                   .reference = max_reference});
  table.push_back({.name = "max_pool_grad",
                   .min_inputs = 2,
                   .max_inputs = 2,
                   .infer = infer_max_grad,
                   .no_grad = true,
                   .cost = backward_cost,
                   .reference = max_grad_reference});
  table.push_back({.name = "avg_pool",
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .infer = infer_avg,
                   .grad = avg_grad,
                   .cost = forward_cost,
                   .reference = avg_reference});
  table.push_back({.name = "avg_pool_grad",
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .infer = infer_avg_grad,
                   .no_grad = true,
                   .cost = backward_cost,
                   .reference = avg_grad_reference});
}

Pooled max_pool(B& b, Value x, std::array<std::int64_t, 2> kernel, const Window& window) {
  Attrs attrs{{"kernel", Ints(kernel.begin(), kernel.end())}};
  set_window(attrs, window);
  const Value y = make(b, "max_pool", {x}, std::move(attrs));
  return {.y = y, .index = {y.node, 1}};
}

Value avg_pool(B& b, Value x, std::array<std::int64_t, 2> kernel, const Window& window, bool count_include_pad) {
  require(window.dilation == std::array<std::int64_t, 2>{1, 1}, Code::bad_argument,
          "avg_pool: dilation is not provided");
  return make(b, "avg_pool", {x},
              {{"kernel", Ints(kernel.begin(), kernel.end())},
               {"stride", Ints(window.stride.begin(), window.stride.end())},
               {"pad", Ints(window.pad.begin(), window.pad.end())},
               {"count_include_pad", std::int64_t{count_include_pad}}});
}

Value global_avg_pool(B& b, Value x) {
  require(b.shape(x).rank() == 4, Code::bad_argument, "global_avg_pool: expected images [N, H, W, C], got ",
          b.shape(x));
  return reduce_mean(b, x, {1, 2});
}

}  // namespace stoker::ops
