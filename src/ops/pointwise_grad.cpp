#include "ops/pointwise_grad.h"

#include <numbers>

#include "ops/common.h"
#include "ops/ops.h"

namespace stoker::ops {
namespace {

constexpr auto kPi = std::numbers::pi_v<float>;

// 1 - x.
Value one_minus(B& b, Value x) { return sub(b, constant(b, 1.0F), x); }

// Of minimum and maximum: all to the winner, half each at a tie, as in PyTorch.
std::vector<Value> winner_grad(GradContext& c, Value first_wins) {
  B& b = c.builder;
  const Value dy = c.cotangents[0];
  const Value zero = constant(b, 0.0F);
  const Value tie = eq(b, c.inputs[0], c.inputs[1]);
  const Value half = mul(b, dy, 0.5F);
  return {select(b, tie, half, select(b, first_wins, dy, zero)), select(b, tie, half, select(b, first_wins, zero, dy))};
}

}  // namespace

std::vector<Value> add_grad(GradContext& c) { return {c.cotangents[0], c.cotangents[0]}; }

std::vector<Value> sub_grad(GradContext& c) { return {c.cotangents[0], neg(c.builder, c.cotangents[0])}; }

std::vector<Value> mul_grad(GradContext& c) {
  return {mul(c.builder, c.cotangents[0], c.inputs[1]), mul(c.builder, c.cotangents[0], c.inputs[0])};
}

std::vector<Value> div_grad(GradContext& c) {
  B& b = c.builder;
  const Value dx = div(b, c.cotangents[0], c.inputs[1]);
  return {dx, neg(b, mul(b, dx, c.outputs[0]))};
}

std::vector<Value> minimum_grad(GradContext& c) { return winner_grad(c, lt(c.builder, c.inputs[0], c.inputs[1])); }
std::vector<Value> maximum_grad(GradContext& c) { return winner_grad(c, gt(c.builder, c.inputs[0], c.inputs[1])); }

std::vector<Value> pow_grad(GradContext& c) {
  B& b = c.builder;
  const Value x = c.inputs[0];
  const Value y = c.inputs[1];
  const Value dy = c.cotangents[0];
  const Value zero = constant(b, 0.0F);
  // PyTorch's: x^0 is constant, and 0^y with y >= 0 does not depend on y.
  const Value dx = mul(b, dy, mul(b, y, pow(b, x, add(b, y, -1.0F))));
  const Value flat = logical_and(b, eq(b, x, zero), ge(b, y, zero));
  return {select(b, eq(b, y, zero), zero, dx), select(b, flat, zero, mul(b, dy, mul(b, c.outputs[0], log(b, x))))};
}

std::vector<Value> select_grad(GradContext& c) {
  B& b = c.builder;
  const Value zero = constant(b, 0.0F);
  return {Value{}, select(b, c.inputs[0], c.cotangents[0], zero), select(b, c.inputs[0], zero, c.cotangents[0])};
}

std::vector<Value> neg_grad(GradContext& c) { return {neg(c.builder, c.cotangents[0])}; }

std::vector<Value> abs_grad(GradContext& c) {
  B& b = c.builder;
  const Value zero = constant(b, 0.0F);
  const Value dy = c.cotangents[0];
  return {select(b, gt(b, c.inputs[0], zero), dy, select(b, lt(b, c.inputs[0], zero), neg(b, dy), zero))};
}

std::vector<Value> exp_grad(GradContext& c) { return {mul(c.builder, c.cotangents[0], c.outputs[0])}; }

std::vector<Value> expm1_grad(GradContext& c) {
  return {mul(c.builder, c.cotangents[0], add(c.builder, c.outputs[0], 1.0F))};
}

std::vector<Value> log_grad(GradContext& c) { return {div(c.builder, c.cotangents[0], c.inputs[0])}; }

std::vector<Value> sqrt_grad(GradContext& c) {
  return {mul(c.builder, div(c.builder, c.cotangents[0], c.outputs[0]), 0.5F)};
}

std::vector<Value> rsqrt_grad(GradContext& c) {
  B& b = c.builder;
  const Value y = c.outputs[0];
  return {mul(b, mul(b, c.cotangents[0], -0.5F), mul(b, y, mul(b, y, y)))};
}

std::vector<Value> tanh_grad(GradContext& c) {
  B& b = c.builder;
  return {mul(b, c.cotangents[0], one_minus(b, mul(b, c.outputs[0], c.outputs[0])))};
}

std::vector<Value> sigmoid_grad(GradContext& c) {
  B& b = c.builder;
  return {mul(b, c.cotangents[0], mul(b, c.outputs[0], one_minus(b, c.outputs[0])))};
}

std::vector<Value> erf_grad(GradContext& c) {
  B& b = c.builder;
  const Value x = c.inputs[0];
  return {mul(b, c.cotangents[0], mul(b, exp(b, neg(b, mul(b, x, x))), 2.0F * std::numbers::inv_sqrtpi_v<float>))};
}

std::vector<Value> cos_grad(GradContext& c) {
  // -sin(x) = cos(x + pi/2).
  return {mul(c.builder, c.cotangents[0], cos(c.builder, add(c.builder, c.inputs[0], kPi / 2)))};
}

std::vector<Value> relu_grad(GradContext& c) {
  B& b = c.builder;
  const Value zero = constant(b, 0.0F);
  return {select(b, gt(b, c.outputs[0], zero), c.cotangents[0], zero)};
}

std::vector<Value> relu6_grad(GradContext& c) {
  B& b = c.builder;
  const Value zero = constant(b, 0.0F);
  const Value inside = logical_and(b, gt(b, c.outputs[0], zero), lt(b, c.outputs[0], constant(b, 6.0F)));
  return {select(b, inside, c.cotangents[0], zero)};
}

std::vector<Value> leaky_relu_grad(GradContext& c) {
  B& b = c.builder;
  const auto slope = static_cast<float>(c.node.attrs.real("slope"));
  // With a slope that is not negative the output has the input's sign.
  const Value sign = slope >= 0 ? c.outputs[0] : c.inputs[0];
  return {select(b, gt(b, sign, constant(b, 0.0F)), c.cotangents[0], mul(b, c.cotangents[0], slope))};
}

std::vector<Value> gelu_grad(GradContext& c) {
  // y = x * cdf(x): dy/dx = cdf(x) + x * pdf(x), of the standard normal distribution.
  B& b = c.builder;
  const Value x = c.inputs[0];
  const Value cdf = mul(b, add(b, erf(b, mul(b, x, 1.0F / std::numbers::sqrt2_v<float>)), 1.0F), 0.5F);
  const float scale = std::numbers::inv_sqrtpi_v<float> / std::numbers::sqrt2_v<float>;
  const Value pdf = mul(b, exp(b, mul(b, mul(b, x, x), -0.5F)), scale);
  return {mul(b, c.cotangents[0], add(b, cdf, mul(b, x, pdf)))};
}

std::vector<Value> silu_grad(GradContext& c) {
  // y = x * s(x): dy/dx = s + x * s * (1 - s).
  B& b = c.builder;
  const Value s = sigmoid(b, c.inputs[0]);
  return {mul(b, c.cotangents[0], mul(b, s, add(b, mul(b, c.inputs[0], one_minus(b, s)), 1.0F)))};
}

std::vector<Value> hard_swish_grad(GradContext& c) {
  // 0 up to -3, 1 from 3 on, x / 3 + 1/2 between.
  B& b = c.builder;
  const Value x = c.inputs[0];
  const Value dy = c.cotangents[0];
  const Value between = mul(b, dy, add(b, mul(b, x, 1.0F / 3.0F), 0.5F));
  const Value below = le(b, x, constant(b, -3.0F));
  return {select(b, below, constant(b, 0.0F), select(b, lt(b, x, constant(b, 3.0F)), between, dy))};
}

std::vector<Value> cast_grad(GradContext& c) {
  const DType from = c.builder.spec(c.inputs[0]).dtype;
  if (!is_float(from) || !is_float(c.node.outputs[0].dtype)) return {Value{}};
  return {from == c.node.outputs[0].dtype ? c.cotangents[0] : cast(c.builder, c.cotangents[0], from)};
}

}  // namespace stoker::ops
