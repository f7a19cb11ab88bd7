#include "nn/model.h"

#include <array>
#include <charconv>

#include "base/error.h"
#include "nn/zoo.h"

namespace stoker::nn {
namespace {

Model mlp() {
  Model model = layers_model(std::array<std::int64_t, 4>{784, 256, 128, 16});
  model.name = "mlp";
  model.summary = "fully connected 784-256-128-16, ReLU between";
  return model;
}

constexpr std::string_view kLayers = "mlp:";

// "784-256-128-16".
std::vector<std::int64_t> parse_sizes(std::string_view text) {
  std::vector<std::int64_t> sizes;
  for (const char* at = text.data(); at != text.data() + text.size();) {
    if (!sizes.empty() && *at == '-') ++at;
    const auto [end, error] = std::from_chars(at, text.data() + text.size(), sizes.emplace_back());
    const bool separated = end == text.data() + text.size() || *end == '-';
    require(error == std::errc() && separated, Code::bad_argument, "model ", kLayers, text,
            ": write sizes with a dash between them, as in ", kLayers, "784-256-128-16");
    at = end;
  }
  return sizes;
}

}  // namespace

std::span<const Model> zoo() {
  static const std::vector<Model> models{mlp(), lenet5(), mobilenet_v2_32(), resnet18_32()};
  return models;
}

Model find_model(std::string_view name) {
  if (name.starts_with(kLayers)) {
    Model model = layers_model(parse_sizes(name.substr(kLayers.size())));
    model.name = name;
    return model;
  }
  std::string names;
  for (const Model& model : zoo()) {
    if (model.name == name) return model;
    names += (names.empty() ? "" : ", ") + model.name;
  }
  fail(Code::bad_argument, "there is no model named '", name, "'; there are ", names,
       ", and fully connected ones as in ", kLayers, "784-256-128-16");
}

Model layers_model(std::span<const std::int64_t> sizes) {
  require(sizes.size() >= 2, Code::bad_argument, "layers: at least two sizes are needed, the inputs and the outputs");
  Model model{.name = "layers"};
  for (const std::int64_t size : sizes) {
    require(size > 0, Code::bad_argument, "layers: every size must be at least 1, not ", size);
    model.name += (model.summary.empty() ? "-" : ",") + std::to_string(size);
    model.summary = "fully connected, ReLU between";
  }
  model.item = {sizes.front()};
  model.outputs = sizes.back();
  model.default_batch = 32;
  model.forward = [hidden = std::vector<std::int64_t>(sizes.begin() + 1, sizes.end())](Net& net, Value x) {
    // The numbers of torch.nn.Sequential(Linear, ReLU, Linear, ...).
    for (std::size_t i = 0; i < hidden.size(); ++i) {
      if (i > 0) x = ops::relu(net.builder(), x);
      x = net.linear(x, std::to_string(2 * i), hidden[i]);
    }
    return x;
  };
  return model;
}

std::int64_t parameter_count(const Model& model) {
  GraphBuilder builder;
  Net net(builder, false);
  Shape shape{1};
  for (const std::int64_t size : model.item.dims()) shape.push_back(size);
  model.forward(net, ops::input(builder, "x", {DType::f32, shape}));
  std::int64_t count = 0;
  for (const StateVar& state : builder.graph().states) {
    if (state.role == StateRole::parameter) count += state.spec.shape.elements();
  }
  return count;
}

}  // namespace stoker::nn
