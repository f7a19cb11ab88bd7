// The public ops and layers: each forwards to the op of the same meaning in the graph under construction.
#include "base/error.h"
#include "ops/ops.h"
#include "run/api.h"

namespace stoker {
namespace {

GraphBuilder& builder_of(const Tensor& x) { return TensorAccess::net(x).builder(); }

using Unary = Value (*)(GraphBuilder&, Value);
using Binary = Value (*)(GraphBuilder&, Value, Value);

// Calls op(builder, value of x) and wraps the result.
template <typename Op>
Tensor apply_to(const Tensor& x, const Op& op) {
  nn::Net& net = TensorAccess::net(x);
  return TensorAccess::wrap(net, op(net.builder(), TensorAccess::value(net, x)));
}

Tensor unary(const Tensor& x, Unary op) { return apply_to(x, op); }

Tensor binary(const Tensor& x, const Tensor& y, Binary op) {
  nn::Net& net = TensorAccess::net(x);
  return TensorAccess::wrap(net, op(net.builder(), TensorAccess::value(net, x), TensorAccess::value(net, y)));
}

Tensor scalar(const Tensor& like, float value) {
  return TensorAccess::wrap(TensorAccess::net(like), ops::constant(builder_of(like), value));
}

ops::Window square_window(std::int64_t stride, std::int64_t pad) {
  return {.stride = {stride, stride}, .pad = {pad, pad, pad, pad}};
}

}  // namespace

Tensor TensorAccess::wrap(nn::Net& net, Value value) {
  Tensor tensor;
  tensor.net_ = &net;
  tensor.node_ = value.node;
  tensor.index_ = value.index;
  return tensor;
}

Builder TensorAccess::wrap(nn::Net& net) {
  Builder builder;
  builder.net_ = &net;
  return builder;
}

nn::Net& TensorAccess::net(const Tensor& tensor) {
  require(tensor.net_ != nullptr, Code::bad_argument, "a tensor that no op made was used");
  return *static_cast<nn::Net*>(tensor.net_);
}

nn::Net& TensorAccess::net(const Builder& builder) {
  require(builder.net_ != nullptr, Code::bad_argument, "a builder is given to a build function, not made");
  return *static_cast<nn::Net*>(builder.net_);
}

Value TensorAccess::value(const nn::Net& net, const Tensor& tensor) {
  require(tensor.net_ == &net, Code::bad_argument, "a tensor of another network, or that no op made, was used");
  return {tensor.node_, tensor.index_};
}

Shape to_shape(const Sizes& sizes) { return Shape(std::span<const std::int64_t>(sizes)); }
Sizes to_sizes(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }

Sizes Tensor::shape() const { return to_sizes(builder_of(*this).shape({node_, index_})); }

Tensor operator+(Tensor x, Tensor y) { return binary(x, y, ops::add); }
Tensor operator-(Tensor x, Tensor y) { return binary(x, y, ops::sub); }
Tensor operator*(Tensor x, Tensor y) { return binary(x, y, ops::mul); }
Tensor operator/(Tensor x, Tensor y) { return binary(x, y, ops::div); }
Tensor operator+(Tensor x, float y) { return x + scalar(x, y); }
Tensor operator-(Tensor x, float y) { return x - scalar(x, y); }
Tensor operator*(Tensor x, float y) { return x * scalar(x, y); }
Tensor operator/(Tensor x, float y) { return x / scalar(x, y); }
Tensor operator-(Tensor x) { return unary(x, ops::neg); }
Tensor minimum(Tensor x, Tensor y) { return binary(x, y, ops::minimum); }
Tensor maximum(Tensor x, Tensor y) { return binary(x, y, ops::maximum); }
Tensor pow(Tensor x, float exponent) { return binary(x, scalar(x, exponent), ops::pow); }
Tensor equal(Tensor x, Tensor y) { return binary(x, y, ops::eq); }
Tensor less(Tensor x, Tensor y) { return binary(x, y, ops::lt); }

Tensor where(Tensor condition, Tensor yes, Tensor no) {
  nn::Net& net = TensorAccess::net(condition);
  return TensorAccess::wrap(net, ops::select(net.builder(), TensorAccess::value(net, condition),
                                             TensorAccess::value(net, yes), TensorAccess::value(net, no)));
}

Tensor abs(Tensor x) { return unary(x, ops::abs); }
Tensor exp(Tensor x) { return unary(x, ops::exp); }
Tensor log(Tensor x) { return unary(x, ops::log); }
Tensor sqrt(Tensor x) { return unary(x, ops::sqrt); }
Tensor tanh(Tensor x) { return unary(x, ops::tanh); }
Tensor sigmoid(Tensor x) { return unary(x, ops::sigmoid); }
Tensor relu(Tensor x) { return unary(x, ops::relu); }
Tensor relu6(Tensor x) { return unary(x, ops::relu6); }
Tensor gelu(Tensor x) { return unary(x, ops::gelu); }
Tensor silu(Tensor x) { return unary(x, ops::silu); }
Tensor hard_swish(Tensor x) { return unary(x, ops::hard_swish); }
Tensor stop_gradient(Tensor x) { return unary(x, ops::stop_gradient); }
Tensor softmax(Tensor x) { return unary(x, ops::softmax); }
Tensor log_softmax(Tensor x) { return unary(x, ops::log_softmax); }
Tensor global_avg_pool(Tensor x) { return unary(x, ops::global_avg_pool); }
Tensor flatten(Tensor x) { return unary(x, ops::flatten); }

Tensor leaky_relu(Tensor x, double slope) {
  return apply_to(x, [&](GraphBuilder& b, Value v) { return ops::leaky_relu(b, v, slope); });
}
Tensor sum(Tensor x, const Sizes& axes, bool keep_axes) {
  return apply_to(x, [&](GraphBuilder& b, Value v) { return ops::reduce_sum(b, v, axes, keep_axes); });
}
Tensor mean(Tensor x, const Sizes& axes, bool keep_axes) {
  return apply_to(x, [&](GraphBuilder& b, Value v) { return ops::reduce_mean(b, v, axes, keep_axes); });
}
Tensor max(Tensor x, const Sizes& axes, bool keep_axes) {
  return apply_to(x, [&](GraphBuilder& b, Value v) { return ops::reduce_max(b, v, axes, keep_axes); });
}
Tensor max_pool(Tensor x, std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
  return apply_to(x, [&](GraphBuilder& b, Value v) {
    return ops::max_pool(b, v, {kernel, kernel}, square_window(stride, pad)).y;
  });
}
Tensor avg_pool(Tensor x, std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
  return apply_to(x, [&](GraphBuilder& b, Value v) {
    return ops::avg_pool(b, v, {kernel, kernel}, square_window(stride, pad));
  });
}
Tensor reshape(Tensor x, const Sizes& shape) {
  return apply_to(x, [&](GraphBuilder& b, Value v) { return ops::reshape(b, v, to_shape(shape)); });
}
Tensor transpose(Tensor x, const Sizes& order) {
  return apply_to(x, [&](GraphBuilder& b, Value v) { return ops::transpose(b, v, order); });
}

Tensor softmax_cross_entropy(Tensor logits, Tensor labels, double label_smoothing) {
  nn::Net& net = TensorAccess::net(logits);
  return TensorAccess::wrap(net, ops::softmax_cross_entropy(net.builder(), TensorAccess::value(net, logits),
                                                            TensorAccess::value(net, labels), label_smoothing));
}

Tensor one_hot(Tensor labels, std::int64_t classes) {
  return apply_to(labels, [&](GraphBuilder& b, Value v) {
    std::vector<float> numbers;
    for (std::int64_t i = 0; i < classes; ++i) numbers.push_back(static_cast<float>(i));
    Shape column = b.shape(v);
    column.push_back(1);
    const Value as_number = ops::cast(b, ops::reshape(b, v, column), DType::f32);
    return ops::cast(b, ops::eq(b, as_number, ops::constant(b, {classes}, std::move(numbers))), DType::f32);
  });
}

Tensor matmul(Tensor x, Tensor y, bool transpose_x, bool transpose_y) {
  nn::Net& net = TensorAccess::net(x);
  return TensorAccess::wrap(net, ops::matmul(net.builder(), TensorAccess::value(net, x), TensorAccess::value(net, y),
                                             transpose_x, transpose_y));
}

Tensor concat(const std::vector<Tensor>& parts, std::int64_t axis) {
  require(!parts.empty(), Code::bad_argument, "concat: there is nothing to join");
  nn::Net& net = TensorAccess::net(parts.front());
  std::vector<Value> values;
  for (const Tensor& part : parts) values.push_back(TensorAccess::value(net, part));
  return TensorAccess::wrap(net, ops::concat(net.builder(), values, axis));
}

Tensor Builder::parameter(const std::string& name, const Sizes& shape, Init init) {
  nn::Net& net = TensorAccess::net(*this);
  const nn::Init own{static_cast<nn::Init::Kind>(init.kind), init.a, init.b};
  return TensorAccess::wrap(net, net.parameter(name, to_shape(shape), own));
}

Tensor Builder::linear(Tensor x, const std::string& name, std::int64_t outputs, bool bias) {
  nn::Net& net = TensorAccess::net(*this);
  return TensorAccess::wrap(net, net.linear(TensorAccess::value(net, x), name, outputs, {.bias = bias}));
}

Tensor Builder::conv2d(Tensor x, const std::string& name, std::int64_t outputs, const Conv& options) {
  nn::Net& net = TensorAccess::net(*this);
  const nn::ConvOptions own{.kernel = options.kernel,
                            .stride = options.stride,
                            .pad = options.pad,
                            .dilation = options.dilation,
                            .groups = options.groups,
                            .bias = options.bias};
  return TensorAccess::wrap(net, net.conv2d(TensorAccess::value(net, x), name, outputs, own));
}

Tensor Builder::batch_norm(Tensor x, const std::string& name, double momentum, double eps) {
  nn::Net& net = TensorAccess::net(*this);
  return TensorAccess::wrap(net, net.batch_norm(TensorAccess::value(net, x), name, momentum, eps));
}

Tensor Builder::layer_norm(Tensor x, const std::string& name, double eps) {
  nn::Net& net = TensorAccess::net(*this);
  return TensorAccess::wrap(net, net.layer_norm(TensorAccess::value(net, x), name, eps));
}

Tensor Builder::dropout(Tensor x, double probability) {
  nn::Net& net = TensorAccess::net(*this);
  return TensorAccess::wrap(net, net.dropout(TensorAccess::value(net, x), probability));
}

bool Builder::training() const { return TensorAccess::net(*this).training(); }

}  // namespace stoker
