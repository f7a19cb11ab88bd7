// Gradient rules of the pointwise ops. Each returns cotangents of the output's shape; the caller sums them down where
// an input was broadcast. Rules use the output rather than the input where that is enough: one tensor less is kept.
#pragma once

#include <vector>

#include "graph/op_def.h"

namespace stoker::ops {

using PointwiseGrad = std::vector<Value> (*)(GradContext&);

std::vector<Value> add_grad(GradContext& c);
std::vector<Value> sub_grad(GradContext& c);
std::vector<Value> mul_grad(GradContext& c);
std::vector<Value> div_grad(GradContext& c);
std::vector<Value> minimum_grad(GradContext& c);
std::vector<Value> maximum_grad(GradContext& c);
std::vector<Value> pow_grad(GradContext& c);
std::vector<Value> select_grad(GradContext& c);
std::vector<Value> neg_grad(GradContext& c);
std::vector<Value> abs_grad(GradContext& c);
std::vector<Value> exp_grad(GradContext& c);
std::vector<Value> expm1_grad(GradContext& c);
std::vector<Value> log_grad(GradContext& c);
std::vector<Value> sqrt_grad(GradContext& c);
std::vector<Value> rsqrt_grad(GradContext& c);
std::vector<Value> tanh_grad(GradContext& c);
std::vector<Value> sigmoid_grad(GradContext& c);
std::vector<Value> erf_grad(GradContext& c);
std::vector<Value> cos_grad(GradContext& c);
std::vector<Value> relu_grad(GradContext& c);
std::vector<Value> relu6_grad(GradContext& c);
std::vector<Value> leaky_relu_grad(GradContext& c);
std::vector<Value> gelu_grad(GradContext& c);
std::vector<Value> silu_grad(GradContext& c);
std::vector<Value> hard_swish_grad(GradContext& c);
std::vector<Value> cast_grad(GradContext& c);

}  // namespace stoker::ops
