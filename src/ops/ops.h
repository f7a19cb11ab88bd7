// One function an op: adds its node to a graph under construction. Shapes are logical, images are NHWC, convolution
// weights [KH, KW, Cin / groups, Cout], linear weights [out, in] as in PyTorch.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/builder.h"

namespace stoker::ops {

using B = GraphBuilder;

// Sources.
Value input(B& b, const std::string& name, const Spec& spec);
Value state(B& b, int state);  // the state's value before this step
Value constant(B& b, float value);
Value constant(B& b, const Shape& shape, std::vector<float> values);

// Pointwise, with NumPy broadcasting. Comparisons give bool (b8); arithmetic is f32.
Value add(B& b, Value x, Value y);
Value sub(B& b, Value x, Value y);
Value mul(B& b, Value x, Value y);
Value div(B& b, Value x, Value y);
Value minimum(B& b, Value x, Value y);
Value maximum(B& b, Value x, Value y);
Value pow(B& b, Value x, Value y);
Value eq(B& b, Value x, Value y);
Value ne(B& b, Value x, Value y);
Value lt(B& b, Value x, Value y);
Value le(B& b, Value x, Value y);
Value gt(B& b, Value x, Value y);
Value ge(B& b, Value x, Value y);
Value logical_and(B& b, Value x, Value y);
Value logical_or(B& b, Value x, Value y);
Value logical_not(B& b, Value x);
Value select(B& b, Value condition, Value yes, Value no);
Value neg(B& b, Value x);
Value abs(B& b, Value x);
Value exp(B& b, Value x);
Value expm1(B& b, Value x);
Value log(B& b, Value x);
Value sqrt(B& b, Value x);
Value rsqrt(B& b, Value x);
Value tanh(B& b, Value x);
Value sigmoid(B& b, Value x);
Value erf(B& b, Value x);
Value cos(B& b, Value x);
Value floor(B& b, Value x);
Value relu(B& b, Value x);
Value relu6(B& b, Value x);
Value leaky_relu(B& b, Value x, double slope = 0.01);
Value gelu(B& b, Value x);  // the exact form, with erf
Value silu(B& b, Value x);
Value hard_swish(B& b, Value x);
Value cast(B& b, Value x, DType dtype);
Value stop_gradient(B& b, Value x);
// Scalar shorthands.
Value add(B& b, Value x, float y);
Value mul(B& b, Value x, float y);

// x with elements zeroed with probability p and the rest divided by 1 - p. `seed` and `step` are scalar i32 values
// (state), `id` tells one dropout from another; the same three give the same mask.
Value dropout(B& b, Value x, double p, Value seed, Value step, std::int64_t id);

// Reductions. Negative axes count from the end; an empty list means all axes.
Value reduce_sum(B& b, Value x, std::vector<std::int64_t> axes, bool keep_dims = false);
Value reduce_mean(B& b, Value x, std::vector<std::int64_t> axes, bool keep_dims = false);
Value reduce_max(B& b, Value x, std::vector<std::int64_t> axes,
                 bool keep_dims = false);        // gradient: shared among ties (amax)
Value argmax(B& b, Value x, std::int64_t axis);  // i32; the first of ties
// Sums x down to `shape`, which broadcasts to x's: the gradient of broadcasting.
Value sum_to(B& b, Value x, const Shape& shape);

// op(a) * op(b) on the last two dimensions. Leading ones are batch dimensions: equal, or absent on one side.
Value matmul(B& b, Value x, Value y, bool transpose_x = false, bool transpose_y = false);

struct Window {  // of convolutions and pooling, as (height, width) or (top, left, bottom, right)
  std::array<std::int64_t, 2> stride{1, 1};
  std::array<std::int64_t, 4> pad{0, 0, 0, 0};
  std::array<std::int64_t, 2> dilation{1, 1};
};
// Padding that keeps ceil(size / stride), the odd one at the bottom and right (TensorFlow's and PyTorch's "same").
[[nodiscard]] std::array<std::int64_t, 4> same_padding(const Shape& x, std::array<std::int64_t, 2> kernel,
                                                       const Window& window);

// Picks `depthwise` where groups == Cin == Cout, else `conv2d`.
Value conv2d(B& b, Value x, Value w, const Window& window = {}, std::int64_t groups = 1);

struct Pooled {
  Value y;
  Value index;  // u8: which position of its window, row by row, was the first maximum
};
Pooled max_pool(B& b, Value x, std::array<std::int64_t, 2> kernel, const Window& window);
Value avg_pool(B& b, Value x, std::array<std::int64_t, 2> kernel, const Window& window, bool count_include_pad = true);
Value global_avg_pool(B& b, Value x);  // [N, H, W, C] -> [N, C]

struct BatchNorm {
  Value y;
  Value mean;      // of this batch
  Value variance;  // of this batch, biased
};
// Over all but the last dimension. `shift` is near the mean (the running mean): sums are taken of x - shift.
BatchNorm batch_norm_train(B& b, Value x, Value gamma, Value beta, Value shift, double eps = 1e-5);
Value batch_norm_inference(B& b, Value x, Value gamma, Value beta, Value mean, Value variance, double eps = 1e-5);
// PyTorch's rule: (1 - momentum) * running + momentum * batch, the variance unbiased (count / (count - 1)).
Value running_mean(B& b, Value running, Value batch_mean, double momentum);
Value running_variance(B& b, Value running, Value batch_variance, std::int64_t count, double momentum);
Value layer_norm(B& b, Value x, Value gamma, Value beta, double eps = 1e-5);  // over the last dimension

// Over the last dimension.
Value softmax(B& b, Value x);
Value log_softmax(B& b, Value x);

// Losses: one value a sample, [N]; integer labels [N] (i32). Others reduce to the mean over all elements.
Value softmax_cross_entropy(B& b, Value logits, Value labels, double label_smoothing = 0.0);
Value mse(B& b, Value prediction, Value target);
Value binary_cross_entropy(B& b, Value probability, Value target);  // logarithms clamped at -100, as in PyTorch
Value binary_cross_entropy_with_logits(B& b, Value logits, Value target);

// Rows of `table` [V, D] by `indices` (i32, any shape): [..., D].
Value embedding(B& b, Value table, Value indices);

// Movement.
Value reshape(B& b, Value x, const Shape& shape);
Value broadcast_to(B& b, Value x, const Shape& shape);
Value transpose(B& b, Value x, std::vector<std::int64_t> order);
Value pad(B& b, Value x, std::vector<std::int64_t> before, std::vector<std::int64_t> after, float value = 0.0F);
Value slice(B& b, Value x, std::vector<std::int64_t> begin, std::vector<std::int64_t> size);
Value concat(B& b, std::span<const Value> parts, std::int64_t axis);
// [N, H, W, C] -> [N, C * H * W] in PyTorch's order (channel outermost).
Value flatten(B& b, Value x);

}  // namespace stoker::ops
