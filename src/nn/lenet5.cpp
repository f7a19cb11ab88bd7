// LeNet-5 in the form that the 2022 study and Caffe use: no activation after the convolutions.
#include "nn/zoo.h"

namespace stoker::nn {
namespace {

Value forward(Net& net, Value x) {
  GraphBuilder& b = net.builder();
  const ops::Window halve{.stride = {2, 2}};
  x = net.conv2d(x, "conv1", 20, {.kernel = 5});
  x = ops::max_pool(b, x, {2, 2}, halve).y;
  x = net.conv2d(x, "conv2", 50, {.kernel = 5});
  x = ops::max_pool(b, x, {2, 2}, halve).y;
  x = ops::relu(b, net.linear(ops::flatten(b, x), "fc1", 500));
  return net.linear(x, "fc2", 10);
}

}  // namespace

Model lenet5() {
  return {.name = "lenet5",
          .summary = "LeNet-5 for 28x28 grey images, 10 classes",
          .item = {28, 28, 1},
          .outputs = 10,
          .forward = forward};
}

}  // namespace stoker::nn
