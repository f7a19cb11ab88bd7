#include "backends/opencl/check_cases.h"

#include <array>
#include <cstring>

#include "autodiff/backward.h"
#include "base/random.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/window.h"

namespace stoker::opencl {
namespace {

using G = CaseGraph;
using Build = std::function<void(G&)>;

template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Batch norm as in training, then ReLU6: what fusion spreads over the kernels before and after it.
Value normalised(G& g, Value x) {
  GraphBuilder& b = g.builder();
  const Shape channels{b.shape(x)[-1]};
  const Value gamma = g.real(channels, 0.5F, 1.5F);
  const Value beta = g.real(channels);
  return ops::relu6(b, ops::batch_norm_train(b, x, gamma, beta, g.real(channels, -0.1F, 0.1F)).y);
}

enum class Around { nothing, norm };

// Normalise, convolve, normalise: prologues of one and two tensors, epilogues with stores and sums.
Build convolution(const Shape& x, const Shape& w, const ops::Window& window, Around around, std::int64_t groups = 1) {
  return [=](G& g) {
    const bool fused = around == Around::norm;
    const Value images = fused ? normalised(g, g.real(x)) : g.real(x);
    const Value y = ops::conv2d(g.builder(), images, g.real(w), window, groups);
    g.add_output(fused ? normalised(g, y) : y);
  };
}

// A 3x3 convolution that goes by Winograd, whether it pays or not.
Build winograd(const Shape& x, const Shape& w, Around around) {
  return [=](G& g) {
    const bool fused = around == Around::norm;
    Attrs attrs;
    ops::set_window(attrs, {.pad = {1, 1, 1, 1}});
    attrs.set("groups", std::int64_t{1});
    attrs.set("winograd", std::int64_t{2});
    const Value images = fused ? normalised(g, g.real(x)) : g.real(x);
    const Value y = ops::make(g.builder(), "conv2d", {images, g.real(w)}, std::move(attrs));
    g.add_output(fused ? normalised(g, y) : y);
  };
}

Build depthwise(const Shape& x, std::int64_t kernel, const ops::Window& window, Around around) {
  return convolution(x, {kernel, kernel, 1, x[3]}, window, around, x[3]);
}

Build product(const Shape& x, const Shape& y, bool transpose_x, bool transpose_y) {
  return [=](G& g) { g.add_output(ops::matmul(g.builder(), g.real(x), g.real(y), transpose_x, transpose_y)); };
}

// A hidden layer with bias and ReLU, and the next one.
Build layers(std::int64_t items, std::int64_t in, std::int64_t hidden, std::int64_t out) {
  return [=](G& g) {
    GraphBuilder& b = g.builder();
    Value h = ops::matmul(b, g.real({items, in}), g.real({hidden, in}), false, true);
    h = ops::relu(b, ops::add(b, h, g.real({hidden})));
    g.add_output(ops::add(b, ops::matmul(b, h, g.real({out, hidden}), false, true), g.real({out})));
  };
}

Build maximum(const Shape& x, std::array<std::int64_t, 2> kernel, const ops::Window& window) {
  return [=](G& g) { g.add_output(ops::max_pool(g.builder(), g.real(x), kernel, window).y); };
}

Build average(const Shape& x, std::array<std::int64_t, 2> kernel, const ops::Window& window, bool padding) {
  return [=](G& g) { g.add_output(ops::avg_pool(g.builder(), g.real(x), kernel, window, padding)); };
}

Build pointwise(const Shape& shape) {
  return [=](G& g) {
    GraphBuilder& b = g.builder();
    const Value x = g.real(shape);
    const Value y = g.real({shape[-1]}, 0.5F, 2.0F);
    const Value z = ops::add(b, ops::gelu(b, ops::mul(b, x, y)), ops::sigmoid(b, ops::div(b, x, y)));
    g.add_output(ops::select(b, ops::gt(b, x, y), ops::tanh(b, z), ops::hard_swish(b, z)));
    g.add_output(ops::pow(b, y, ops::exp(b, ops::silu(b, z))));
  };
}

Build reductions(const Shape& shape) {
  return [=](G& g) {
    GraphBuilder& b = g.builder();
    const Value x = g.real(shape);
    g.add_output(ops::reduce_sum(b, ops::mul(b, x, x), {-1}));
    g.add_output(ops::reduce_mean(b, x, {0, 1}));
    g.add_output(ops::reduce_max(b, x, {1}));
    g.add_output(ops::reduce_sum(b, ops::tanh(b, x), {}));
  };
}

Build losses(std::int64_t items, std::int64_t classes) {
  return [=](G& g) {
    GraphBuilder& b = g.builder();
    const Value logits = g.real({items, classes}, -3.0F, 3.0F);
    g.add_output(ops::softmax_cross_entropy(b, logits, g.whole({items}, static_cast<int>(classes)), 0.1));
    g.add_output(ops::softmax(b, logits));
    g.add_output(ops::log_softmax(b, ops::layer_norm(b, logits, g.real({classes}), g.real({classes}))));
  };
}

Build rows_of_table(std::int64_t rows, std::int64_t width, std::int64_t count) {
  return [=](G& g) {
    g.add_output(ops::embedding(g.builder(), g.real({rows, width}), g.whole({count, 2}, static_cast<int>(rows))));
  };
}

Build movement(const Shape& shape) {
  return [=](G& g) {
    GraphBuilder& b = g.builder();
    const Value x = g.real(shape);
    const Value turned = ops::transpose(b, x, {2, 0, 1});
    const std::array parts = {ops::transpose(b, turned, {1, 2, 0}), ops::pad(b, x, {0, 0, 0}, {0, 2, 0}, 0.5F)};
    const Value joined = ops::concat(b, parts, 1);
    g.add_output(ops::slice(b, joined, {0, 1, 0}, {shape[0], 2 * shape[1], shape[2]}));
    g.add_output(turned);
  };
}

constexpr ops::Window kSame{.stride = {1, 1}, .pad = {1, 1, 1, 1}};
constexpr ops::Window kHalf{.stride = {2, 2}, .pad = {1, 1, 1, 1}};
constexpr bool kBrief = true;

const std::vector<CheckCase>& table() {
  static const std::vector<CheckCase> kCases = {
      {"gemm", "layers 33x29", layers(33, 29, 47, 7)},
      {"gemm", "layers 64x64", layers(64, 64, 128, 32)},
      {"gemm", "NN 17x65x31", product({17, 65}, {65, 31}, false, false), kBrief},
      {"gemm", "NT 32x256x64", product({32, 256}, {64, 256}, false, true)},
      {"gemm", "TN 48x300x20", product({300, 48}, {300, 20}, true, false)},
      // Long loops: there is a driver that breaks them off (quirks.cpp).
      {"gemm", "TN 12x4096x20", product({4096, 12}, {4096, 20}, true, false), kBrief},
      {"gemm", "batched 3x19x24x21", product({3, 19, 24}, {3, 24, 21}, false, false)},
      {"gemm", "1x1 convolution", convolution({2, 6, 5, 24}, {1, 1, 24, 40}, {}, Around::norm)},
      {"conv2d", "3x3", convolution({2, 7, 5, 12}, {3, 3, 12, 20}, kSame, Around::norm)},
      {"conv2d", "3x3 alone", convolution({2, 8, 8, 16}, {3, 3, 16, 32}, kSame, Around::nothing), kBrief},
      {"conv2d", "3x3 stride 2", convolution({2, 9, 8, 8}, {3, 3, 8, 7}, kHalf, Around::norm)},
      {"conv2d", "3x3, 40 channels", convolution({1, 9, 8, 40}, {3, 3, 40, 36}, kSame, Around::norm)},
      {"conv2d", "5x5, 1 channel", convolution({3, 12, 11, 1}, {5, 5, 1, 20}, {}, Around::nothing)},
      {"conv2d", "3x3, 2 groups", convolution({2, 6, 5, 6}, {3, 3, 3, 4}, kSame, Around::nothing, 2)},
      {"winograd", "3x3", winograd({2, 7, 10, 32}, {3, 3, 32, 64}, Around::norm)},
      {"winograd", "3x3 alone", winograd({1, 8, 8, 32}, {3, 3, 32, 32}, Around::nothing), kBrief},
      {"depthwise", "3x3", depthwise({2, 7, 5, 12}, 3, kSame, Around::norm)},
      {"depthwise", "3x3 alone", depthwise({2, 8, 8, 16}, 3, kSame, Around::nothing), kBrief},
      {"depthwise", "3x3 stride 2", depthwise({3, 8, 9, 32}, 3, kHalf, Around::norm)},
      {"depthwise", "3x3 odd", depthwise({1, 5, 4, 7}, 3, kHalf, Around::norm)},
      {"depthwise", "3x3 to the edge",
       depthwise({2, 6, 7, 6}, 3, {.stride = {2, 2}, .pad = {0, 0, 1, 1}}, Around::nothing)},
      {"depthwise", "5x5", depthwise({2, 9, 6, 10}, 5, {.pad = {2, 2, 2, 2}}, Around::norm)},
      {"pooling", "maximum", maximum({2, 8, 10, 20}, {2, 2}, {.stride = {2, 2}}), kBrief},
      {"pooling", "maximum with padding", maximum({2, 9, 7, 33}, {3, 3}, kHalf)},
      {"pooling", "average", average({2, 9, 7, 12}, {3, 3}, kHalf, true)},
      {"pooling", "average of what is inside",
       average({2, 9, 7, 7}, {3, 2}, {.stride = {2, 1}, .pad = {1, 1, 1, 0}}, false)},
      {"pointwise", "odd", pointwise({5, 37})},
      {"pointwise", "aligned", pointwise({300, 64})},
      {"reduction", "odd", reductions({7, 5, 33}), kBrief},
      {"reduction", "aligned", reductions({8, 64, 32})},
      {"softmax", "odd", losses(9, 13)},
      {"softmax", "aligned", losses(32, 128)},
      {"gather", "odd", rows_of_table(11, 7, 19)},
      {"gather", "aligned", rows_of_table(64, 32, 100)},
      {"movement", "odd", movement({3, 5, 7})},
      {"movement", "aligned", movement({8, 16, 32})},
  };
  return kCases;
}

}  // namespace

Value CaseGraph::input(const Spec& spec, Bytes bytes) {
  inputs_.push_back(std::move(bytes));
  return ops::input(builder_, "x" + std::to_string(inputs_.size()), spec);
}

Value CaseGraph::real(const Shape& shape, float low, float high) {
  Random random(inputs_.size() + 1);
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  for (float& value : values) value = random.uniform(low, high);
  reals_.push_back(input({DType::f32, shape}, bytes_of(values)));
  return reals_.back();
}

Value CaseGraph::whole(const Shape& shape, int bound) {
  Random random(inputs_.size() + 1);
  std::vector<std::int32_t> values(static_cast<std::size_t>(shape.elements()));
  for (std::int32_t& value : values) value = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(bound)));
  return input({DType::i32, shape}, bytes_of(values));
}

void CaseGraph::add_output(Value value) {
  outputs_.push_back(value);
  builder_.set_output("y" + std::to_string(outputs_.size()), value);
}

void CaseGraph::add_gradients() {
  const std::vector<Value> wrt = reals_;
  std::vector<Value> cotangents;
  for (const Value y : outputs_) cotangents.push_back(real(builder_.shape(y)));
  const std::vector<Value> gradients = backward(builder_, outputs_, cotangents, wrt);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].is_none()) builder_.set_output("dx" + std::to_string(i), gradients[i]);
  }
}

std::span<const CheckCase> check_cases() { return table(); }

}  // namespace stoker::opencl
