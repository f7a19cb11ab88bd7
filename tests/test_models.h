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
    const auto conv_norm = [&](Value in, const std::string& name, std::int64_t outputs, nn::ConvOptions options) {
      options.bias = false;
      return net.batch_norm(net.conv2d(in, name + ".0", outputs, options), name + ".1");
    };
    Value h = ops::relu6(b, conv_norm(x, "stem", 8, {.kernel = 3, .pad = 1}));
    Value y = ops::relu6(b, conv_norm(h, "expand", 16, {.kernel = 1}));
    y = ops::relu6(b, conv_norm(y, "depthwise", 16, {.kernel = 3, .pad = 1, .groups = 16}));
    y = conv_norm(y, "project", 8, {.kernel = 1});
    h = ops::add(b, h, y);
    return net.linear(ops::global_avg_pool(b, h), "classifier", 4);
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
