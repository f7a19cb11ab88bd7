// MobileNetV2 (width 1.0) for 32x32 images: torchvision's names and initialisation, stride 1 in the stem and in the
// 24-channel stage, no dropout.
#include <array>

#include "nn/zoo.h"

namespace stoker::nn {
namespace {

struct Stage {
  std::int64_t expansion;
  std::int64_t channels;
  std::int64_t blocks;
  std::int64_t stride;
};

constexpr std::array<Stage, 7> kStages{
    {{1, 16, 1, 1}, {6, 24, 2, 1}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}}};

Value conv_bn(Net& net, Value x, const std::string& conv, const std::string& norm, std::int64_t outputs,
              ConvOptions options) {
  options.bias = false;
  options.kaiming_normal = true;
  options.pad = options.kernel / 2;
  return net.batch_norm(net.conv2d(x, conv, outputs, options), norm);
}

Value conv_bn_relu6(Net& net, Value x, const std::string& name, std::int64_t outputs, const ConvOptions& options) {
  return ops::relu6(net.builder(), conv_bn(net, x, name + ".0", name + ".1", outputs, options));
}

Value inverted_residual(Net& net, Value x, const std::string& name, const Stage& stage, std::int64_t stride) {
  const std::int64_t inputs = net.builder().shape(x)[-1];
  const std::int64_t hidden = inputs * stage.expansion;
  int part = 0;
  const auto next = [&] { return name + ".conv." + std::to_string(part++); };
  Value y = x;
  if (stage.expansion != 1) y = conv_bn_relu6(net, y, next(), hidden, {.kernel = 1});
  y = conv_bn_relu6(net, y, next(), hidden, {.kernel = 3, .stride = stride, .groups = hidden});
  const std::string conv = next();
  y = conv_bn(net, y, conv, next(), stage.channels, {.kernel = 1});
  return stride == 1 && inputs == stage.channels ? ops::add(net.builder(), x, y) : y;
}

Value forward(Net& net, Value x) {
  int feature = 0;
  const auto next = [&] { return "features." + std::to_string(feature++); };
  x = conv_bn_relu6(net, x, next(), 32, {.kernel = 3});
  for (const Stage& stage : kStages) {
    for (std::int64_t block = 0; block < stage.blocks; ++block) {
      x = inverted_residual(net, x, next(), stage, block == 0 ? stage.stride : 1);
    }
  }
  x = conv_bn_relu6(net, x, next(), 1280, {.kernel = 1});
  x = ops::global_avg_pool(net.builder(), x);
  return net.linear(x, "classifier.1", 10,
                    {.weight_init = Init{Init::Kind::normal, 0, 0.01F}, .bias_init = Init{Init::Kind::constant, 0}});
}

}  // namespace

Model mobilenet_v2_32() {
  return {.name = "mobilenetv2-32",
          .summary = "MobileNetV2 for 32x32 colour images, 10 classes",
          .item = {32, 32, 3},
          .outputs = 10,
          .forward = forward};
}

}  // namespace stoker::nn
