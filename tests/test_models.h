// Small nets that tests train: everything a large one has (batch norm, depthwise, residual), in milliseconds.
#pragma once

#include "nn/model.h"
#include "nn/net.h"
#include "ops/ops.h"

namespace stoker::test {

// The net of the goldens (tools/goldens): 8x8x3, inverted residual with batch norm, 4 classes.
inline nn::Model residual_net() {
  nn::Model model;
  model.name = "residual";
  model.item = {8, 8, 3};
  model.outputs = 4;
  model.forward = [](nn::Net& net, Value x) {
    GraphBuilder& b = net.builder();
    const auto conv = [&](Value in, const std::string& name, std::int64_t outputs, nn::ConvOptions options) {
      options.bias = false;
      return net.conv2d(in, name, outputs, options);
    };
    const Value h = ops::relu6(b, net.batch_norm(conv(x, "stem.0", 8, {.kernel = 3, .pad = 1}), "stem.1"));
    Value y = ops::relu6(b, net.batch_norm(conv(h, "block.0.0", 16, {.kernel = 1}), "block.0.1"));
    y = conv(y, "block.1.0", 16, {.kernel = 3, .pad = 1, .groups = 16});
    y = conv(ops::relu6(b, net.batch_norm(y, "block.1.1")), "block.2", 8, {.kernel = 1});
    y = net.batch_norm(y, "block.3");
    return net.linear(ops::global_avg_pool(b, ops::add(b, h, y)), "fc", 4);
  };
  return model;
}

// Convolution, pooling, flatten and dropout, without batch norm.
inline nn::Model small_conv_net() {
  nn::Model model;
  model.name = "smallconv";
  model.item = {9, 7, 2};
  model.outputs = 5;
  model.forward = [](nn::Net& net, Value x) {
    GraphBuilder& b = net.builder();
    Value h = ops::relu(b, net.conv2d(x, "conv1", 6, {.kernel = 3, .stride = 2, .pad = 1}));
    h = ops::max_pool(b, h, {2, 2}, {.stride = {2, 2}}).y;
    h = net.dropout(ops::gelu(b, net.linear(ops::flatten(b, h), "fc1", 11)), 0.25);
    return net.linear(h, "fc2", 5);
  };
  return model;
}

}  // namespace stoker::test
