// batch_norm_train, batch_norm_inference, layer_norm: composite, so that fusion can spread them over their neighbours.
// Their gradients are closed forms over per-channel (batch norm) or per-row (layer norm) coefficients.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/registry.h"

namespace stoker::ops {
namespace {

// All axes but the last.
Ints leading_axes(const Shape& x) {
  Ints axes(static_cast<std::size_t>(x.rank() - 1));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

float eps_of(const Node& node) { return static_cast<float>(node.attrs.real("eps")); }

Value rstd_of(B& b, Value variance, float eps) { return rsqrt(b, add(b, variance, eps)); }

// Sums per channel; a tensor of rank 1 is one row, so its sum is itself.
Value sum_rows(B& b, Value x) {
  const Shape shape = b.shape(x);
  return shape.rank() == 1 ? x : reduce_sum(b, x, leading_axes(shape));
}

void check(const char* op, std::span<const Spec> inputs, const Attrs& attrs) {
  require_f32(op, inputs);
  const Shape& x = inputs[0].shape;
  require(x.rank() >= 1 && x.elements() > 0, Code::bad_argument, op, ": expected [..., C] with elements, got ", x);
  for (const Spec& spec : inputs.subspan(1)) {
    require(spec.shape == Shape{x[-1]}, Code::bad_argument, op, ": expected [", x[-1], "] beside ", x, ", got ",
            spec.shape);
  }
  require(attrs.real("eps") > 0, Code::bad_argument, op, ": eps must be positive, got ", attrs.real("eps"));
}

std::vector<Spec> infer_train(std::span<const Spec> inputs, const Attrs& attrs) {
  check("batch_norm_train", inputs, attrs);
  return {inputs[0], inputs[1], inputs[1]};
}

// y = x * scale + (beta - mean * scale).
Value normalise(B& b, Value x, Value scale, Value beta, Value mean) {
  return add(b, mul(b, x, scale), sub(b, beta, mul(b, mean, scale)));
}

std::vector<Value> expand_train(B& b, const Node& node, std::span<const Value> inputs) {
  const Value x = inputs[0];
  const Value shift = inputs[3];
  const Shape shape = node.outputs[0].shape;
  const auto inverse_count = static_cast<float>(1.0 / static_cast<double>(shape.elements(0, shape.rank() - 1)));
  const Value centred = sub(b, x, shift);
  const Value m = mul(b, sum_rows(b, centred), inverse_count);
  const Value square = mul(b, sum_rows(b, mul(b, centred, centred)), inverse_count);
  const Value variance = maximum(b, sub(b, square, mul(b, m, m)), constant(b, 0.0F));
  const Value mean = add(b, shift, m);
  const Value scale = mul(b, inputs[1], rstd_of(b, variance, eps_of(node)));
  return {normalise(b, x, scale, inputs[2], mean), mean, variance};
}

// xhat = (x - mean) * rstd; dbeta = sum(dy); dgamma = sum(dy * xhat);
// dx = gamma * rstd * (dy - dbeta / n - xhat * dgamma / n) = p * dy + q * x + r, with p, q, r one value a channel.
std::vector<Value> grad_train(GradContext& c) {
  require(c.cotangents[1].is_none() && c.cotangents[2].is_none(), Code::bad_argument,
          "batch_norm_train: no gradient flows through the batch's mean and variance");
  B& b = c.builder;
  const Value x = c.inputs[0];
  const Value dy = c.cotangents[0];
  const Value mean = c.outputs[1];
  const Shape shape = c.node.outputs[0].shape;
  const auto inverse_count = static_cast<float>(1.0 / static_cast<double>(shape.elements(0, shape.rank() - 1)));
  const Value rstd = rstd_of(b, c.outputs[2], eps_of(c.node));
  const Value dbeta = sum_rows(b, dy);
  const Value dgamma = mul(b, sum_rows(b, mul(b, dy, sub(b, x, mean))), rstd);
  const Value p = mul(b, c.inputs[1], rstd);
  const Value q = mul(b, mul(b, mul(b, p, rstd), dgamma), -inverse_count);
  const Value r = sub(b, mul(b, mul(b, p, dbeta), -inverse_count), mul(b, q, mean));
  const Value dx = add(b, add(b, mul(b, p, dy), mul(b, q, x)), r);
  return {dx, dgamma, dbeta, Value{}};
}

std::vector<Spec> infer_inference(std::span<const Spec> inputs, const Attrs& attrs) {
  check("batch_norm_inference", inputs, attrs);
  return {inputs[0]};
}

std::vector<Value> expand_inference(B& b, const Node& node, std::span<const Value> inputs) {
  const Value scale = mul(b, inputs[1], rstd_of(b, inputs[4], eps_of(node)));
  return {normalise(b, inputs[0], scale, inputs[2], inputs[3])};
}

std::vector<Value> grad_inference(GradContext& c) {
  B& b = c.builder;
  const Value dy = c.cotangents[0];
  const Value rstd = rstd_of(b, c.inputs[4], eps_of(c.node));
  const Value scale = mul(b, c.inputs[1], rstd);
  const Value dbeta = sum_rows(b, dy);
  const Value dgamma = mul(b, sum_rows(b, mul(b, dy, sub(b, c.inputs[0], c.inputs[3]))), rstd);
  const Value dmean = neg(b, mul(b, scale, dbeta));
  // d rstd / d variance = -rstd^3 / 2.
  const Value dvariance = mul(b, mul(b, mul(b, dgamma, c.inputs[1]), mul(b, rstd, rstd)), -0.5F);
  return {mul(b, dy, scale), dgamma, dbeta, dmean, dvariance};
}

std::vector<Spec> infer_layer_norm(std::span<const Spec> inputs, const Attrs& attrs) {
  check("layer_norm", inputs, attrs);
  return {inputs[0]};
}

struct Rows {
  Value xhat;
  Value rstd;
};

// The same nodes forward and backward: common subexpressions make one of them.
Rows normalised_rows(B& b, Value x, float eps) {
  const Value centred = sub(b, x, reduce_mean(b, x, {-1}, true));
  const Value rstd = rstd_of(b, reduce_mean(b, mul(b, centred, centred), {-1}, true), eps);
  return {.xhat = mul(b, centred, rstd), .rstd = rstd};
}

std::vector<Value> expand_layer_norm(B& b, const Node& node, std::span<const Value> inputs) {
  return {add(b, mul(b, normalised_rows(b, inputs[0], eps_of(node)).xhat, inputs[1]), inputs[2])};
}

// With g = dy * gamma: dx = rstd * (g - mean(g) - xhat * mean(g * xhat)).
std::vector<Value> grad_layer_norm(GradContext& c) {
  B& b = c.builder;
  const Value dy = c.cotangents[0];
  const Rows rows = normalised_rows(b, c.inputs[0], eps_of(c.node));
  const Value g = mul(b, dy, c.inputs[1]);
  const Value along = reduce_mean(b, mul(b, g, rows.xhat), {-1}, true);
  const Value rest = sub(b, sub(b, g, reduce_mean(b, g, {-1}, true)), mul(b, rows.xhat, along));
  return {mul(b, rest, rows.rstd), sum_rows(b, mul(b, dy, rows.xhat)), sum_rows(b, dy)};
}

// Mean and biased variance of `count` values, `stride` apart: two passes, so that nothing cancels.
std::pair<double, double> moments(const double* x, std::size_t count, std::size_t stride) {
  double mean = 0;
  double variance = 0;
  for (std::size_t i = 0; i < count; ++i) mean += x[i * stride] / static_cast<double>(count);
  for (std::size_t i = 0; i < count; ++i) {
    variance += (x[i * stride] - mean) * (x[i * stride] - mean) / static_cast<double>(count);
  }
  return {mean, variance};
}

// y = (x - mean) / sqrt(variance + eps) * gamma + beta, with `channel` as the place in gamma and beta.
double normal(double x, double mean, double variance, const Attrs& attrs, std::span<const RefTensor> inputs,
              std::size_t channel) {
  return (x - mean) / std::sqrt(variance + attrs.real("eps")) * inputs[1].data[channel] + inputs[2].data[channel];
}

void train_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs& attrs) {
  const std::vector<double>& x = inputs[0].data;
  const std::size_t channels = inputs[1].data.size();
  for (std::size_t c = 0; c < channels; ++c) {
    const auto [mean, variance] = moments(x.data() + c, x.size() / channels, channels);
    outputs[1].data[c] = mean;
    outputs[2].data[c] = variance;
    for (std::size_t i = c; i < x.size(); i += channels) {
      outputs[0].data[i] = normal(x[i], mean, variance, attrs, inputs, c);
    }
  }
}

void inference_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs& attrs) {
  for (std::size_t i = 0; i < inputs[0].data.size(); ++i) {
    const std::size_t c = i % inputs[1].data.size();
    outputs[0].data[i] = normal(inputs[0].data[i], inputs[3].data[c], inputs[4].data[c], attrs, inputs, c);
  }
}

void layer_norm_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs& attrs) {
  const std::vector<double>& x = inputs[0].data;
  const std::size_t channels = inputs[1].data.size();
  for (std::size_t row = 0; row < x.size(); row += channels) {
    const auto [mean, variance] = moments(x.data() + row, channels, 1);
    for (std::size_t c = 0; c < channels; ++c) {
      outputs[0].data[row + c] = normal(x[row + c], mean, variance, attrs, inputs, c);
    }
  }
}

}  // namespace

void register_norm(std::vector<OpDef>& table) {
  table.push_back({.name = "batch_norm_train",
                   .min_inputs = 4,
                   .max_inputs = 4,
                   .traits = {.composite = true, .couples_samples = true},
                   .infer = infer_train,
                   .grad = grad_train,
                   .cost = streaming_cost(6),
                   .reference = train_reference,
                   .expand = expand_train});
  table.push_back({.name = "batch_norm_inference",
                   .min_inputs = 5,
                   .max_inputs = 5,
                   .traits = {.composite = true},
                   .infer = infer_inference,
                   .grad = grad_inference,
                   .cost = streaming_cost(2),
                   .reference = inference_reference,
                   .expand = expand_inference});
  table.push_back({.name = "layer_norm",
                   .min_inputs = 3,
                   .max_inputs = 3,
                   .traits = {.composite = true},
                   .infer = infer_layer_norm,
                   .grad = grad_layer_norm,
                   .cost = streaming_cost(7),
                   .reference = layer_norm_reference,
                   .expand = expand_layer_norm});
}

BatchNorm batch_norm_train(B& b, Value x, Value gamma, Value beta, Value shift, double eps) {
  const Value y = make(b, "batch_norm_train", {x, gamma, beta, shift}, {{"eps", eps}});
  return {.y = y, .mean = {y.node, 1}, .variance = {y.node, 2}};
}

Value batch_norm_inference(B& b, Value x, Value gamma, Value beta, Value mean, Value variance, double eps) {
  return make(b, "batch_norm_inference", {x, gamma, beta, mean, variance}, {{"eps", eps}});
}

Value layer_norm(B& b, Value x, Value gamma, Value beta, double eps) {
  return make(b, "layer_norm", {x, gamma, beta}, {{"eps", eps}});
}

Value running_mean(B& b, Value running, Value batch_mean, double momentum) {
  return add(b, mul(b, running, static_cast<float>(1.0 - momentum)), mul(b, batch_mean, static_cast<float>(momentum)));
}

Value running_variance(B& b, Value running, Value batch_variance, std::int64_t count, double momentum) {
  // A single value has no unbiased variance; its biased one, 0, is taken.
  const double unbiased = static_cast<double>(count) / static_cast<double>(std::max<std::int64_t>(count - 1, 1));
  return add(b, mul(b, running, static_cast<float>(1.0 - momentum)),
             mul(b, batch_variance, static_cast<float>(momentum * unbiased)));
}

}  // namespace stoker::ops
