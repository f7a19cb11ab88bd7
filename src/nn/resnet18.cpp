// ResNet-18 for 32x32 images: torchvision's names and initialisation, a 3x3 stem of stride 1 and no max pooling.
#include "nn/zoo.h"

namespace stoker::nn {
namespace {

Value conv(Net& net, Value x, const std::string& name, std::int64_t outputs, std::int64_t kernel, std::int64_t stride) {
  return net.conv2d(x, name, outputs,
                    {.kernel = kernel, .stride = stride, .pad = kernel / 2, .bias = false, .kaiming_normal = true});
}

Value basic_block(Net& net, Value x, const std::string& name, std::int64_t channels, std::int64_t stride) {
  GraphBuilder& b = net.builder();
  Value y = net.batch_norm(conv(net, x, name + ".conv1", channels, 3, stride), name + ".bn1");
  y = conv(net, ops::relu(b, y), name + ".conv2", channels, 3, 1);
  y = net.batch_norm(y, name + ".bn2");
  if (stride != 1 || b.shape(x)[-1] != channels) {
    x = conv(net, x, name + ".downsample.0", channels, 1, stride);
    x = net.batch_norm(x, name + ".downsample.1");
  }
  return ops::relu(b, ops::add(b, y, x));
}

Value forward(Net& net, Value x) {
  GraphBuilder& b = net.builder();
  x = ops::relu(b, net.batch_norm(conv(net, x, "conv1", 64, 3, 1), "bn1"));
  for (int layer = 1; layer <= 4; ++layer) {
    const std::string name = "layer" + std::to_string(layer);
    const std::int64_t channels = 32 << layer;
    x = basic_block(net, x, name + ".0", channels, layer == 1 ? 1 : 2);
    x = basic_block(net, x, name + ".1", channels, 1);
  }
  return net.linear(ops::global_avg_pool(b, x), "fc", 10);
}

}  // namespace

Model resnet18_32() {
  return {.name = "resnet18-32",
          .summary = "ResNet-18 for 32x32 colour images, 10 classes",
          .item = {32, 32, 3},
          .outputs = 10,
          .forward = forward};
}

}  // namespace stoker::nn
