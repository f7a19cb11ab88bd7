#include "nn/net.h"

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/random.h"

namespace stoker::nn {
namespace {

// kaiming_uniform(a = sqrt 5), PyTorch's default, comes out as this; so does its default for biases.
Init uniform_fan_in(std::int64_t fan_in) {
  const auto bound = static_cast<float>(1.0 / std::sqrt(static_cast<double>(fan_in)));
  return {Init::Kind::uniform, -bound, bound};
}

Init kaiming_normal_fan_out(std::int64_t fan_out) {
  return {Init::Kind::normal, 0, static_cast<float>(std::sqrt(2.0 / static_cast<double>(fan_out)))};
}

Init constant_init(float value) { return {Init::Kind::constant, value, 0}; }

// FNV-1a.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325U;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return value;
}

// Two standard normals from two words (Box-Muller).
std::array<float, 2> normal_pair(std::uint32_t first, std::uint32_t second) {
  const float radius = std::sqrt(-2.0F * std::log(1.0F - to_unit(first)));
  const float angle = 2.0F * std::numbers::pi_v<float> * to_unit(second);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace

Net::Net(GraphBuilder& builder, bool training) : builder_(builder), training_(training) {}

int Net::declare(StateVar state, Init init) {
  require(builder_.graph().states.size() == inits_.size(), Code::bad_argument, "net: state ", state.name,
          " follows one that was not declared through the net");
  inits_.push_back(init);
  return builder_.declare_state(std::move(state));
}

Value Net::parameter(const std::string& name, const Shape& shape, Init init, FileLayout layout) {
  for (const std::int64_t size : shape.dims()) {
    require(size > 0, Code::bad_argument, "parameter ", name, ": every size must be at least 1, not ", shape);
  }
  return ops::state(builder_, declare({name, {DType::f32, shape}, StateRole::parameter, layout}, init));
}

Value Net::statistic(const std::string& name, const Spec& spec, Init init) {
  return ops::state(builder_, declare({name, spec, StateRole::statistic}, init));
}

Value Net::counter(const std::string& name, std::int64_t start) {
  const int state = declare({name, {DType::i32, {}}, StateRole::counter}, constant_init(static_cast<float>(start)));
  const Value value = ops::state(builder_, state);
  if (training_) {
    const Value next = ops::add(builder_, ops::cast(builder_, value, DType::f32), 1.0F);
    statistic_writes_.push_back({state, ops::cast(builder_, next, DType::i32)});
  }
  return value;
}

Value Net::linear(Value x, const std::string& name, std::int64_t outputs, const LinearOptions& options) {
  builder_.set_name(name);
  const Shape shape = builder_.shape(x);
  require(shape.rank() >= 2, Code::bad_argument, "linear ", name, ": the input must be [N, ..., features], not ",
          shape);
  const std::int64_t inputs = shape[-1];
  const Value weight =
      parameter(name + ".weight", {outputs, inputs}, options.weight_init.value_or(uniform_fan_in(inputs)));
  const Value y = ops::matmul(builder_, x, weight, false, true);
  if (!options.bias) return y;
  return ops::add(builder_, y,
                  parameter(name + ".bias", {outputs}, options.bias_init.value_or(uniform_fan_in(inputs))));
}

Value Net::conv2d(Value x, const std::string& name, std::int64_t outputs, const ConvOptions& options) {
  builder_.set_name(name);
  const Shape shape = builder_.shape(x);
  require(shape.rank() == 4, Code::bad_argument, "conv2d ", name, ": the input must be [N, H, W, C], not ", shape);
  const std::int64_t groups = options.groups;
  require(groups > 0 && shape[3] % groups == 0 && outputs % groups == 0, Code::bad_argument, "conv2d ", name, ": ",
          groups, " groups do not divide ", shape[3], " channels in and ", outputs, " out");
  const std::int64_t k = options.kernel;
  const std::int64_t fan_in = k * k * (shape[3] / groups);
  const Value weight =
      parameter(name + ".weight", {k, k, shape[3] / groups, outputs},
                options.kaiming_normal ? kaiming_normal_fan_out(k * k * outputs) : uniform_fan_in(fan_in),
                FileLayout::conv_weight);
  const ops::Window window{.stride = {options.stride, options.stride},
                           .pad = {options.pad, options.pad, options.pad, options.pad},
                           .dilation = {options.dilation, options.dilation}};
  const Value y = ops::conv2d(builder_, x, weight, window, groups);
  if (!options.bias) return y;
  return ops::add(builder_, y, parameter(name + ".bias", {outputs}, uniform_fan_in(fan_in)));
}

Value Net::batch_norm(Value x, const std::string& name, double momentum, double eps) {
  builder_.set_name(name);
  const Shape shape = builder_.shape(x);
  const std::int64_t channels = shape[-1];
  const Spec spec{DType::f32, {channels}};
  const Value gamma = parameter(name + ".weight", {channels}, constant_init(1));
  const Value beta = parameter(name + ".bias", {channels}, constant_init(0));
  const int first = static_cast<int>(inits_.size());
  const Value mean = statistic(name + ".running_mean", spec, constant_init(0));
  const Value variance = statistic(name + ".running_var", spec, constant_init(1));
  counter(name + ".num_batches_tracked");
  if (!training_) return ops::batch_norm_inference(builder_, x, gamma, beta, mean, variance, eps);

  const Value shift = ops::stop_gradient(builder_, mean);
  const ops::BatchNorm norm = ops::batch_norm_train(builder_, x, gamma, beta, shift, eps);
  const std::int64_t count = shape.elements() / channels;
  statistic_writes_.push_back({first, ops::running_mean(builder_, mean, norm.mean, momentum)});
  statistic_writes_.push_back({first + 1, ops::running_variance(builder_, variance, norm.variance, count, momentum)});
  return norm.y;
}

Value Net::layer_norm(Value x, const std::string& name, double eps) {
  builder_.set_name(name);
  const Shape shape{builder_.shape(x)[-1]};
  const Value gamma = parameter(name + ".weight", shape, constant_init(1));
  const Value beta = parameter(name + ".bias", shape, constant_init(0));
  return ops::layer_norm(builder_, x, gamma, beta, eps);
}

Value Net::embedding(Value indices, const std::string& name, std::int64_t rows, std::int64_t width) {
  builder_.set_name(name);
  return ops::embedding(builder_, parameter(name + ".weight", {rows, width}, {Init::Kind::normal, 0, 1}), indices);
}

Value Net::dropout(Value x, double p) {
  require(p >= 0 && p < 1, Code::bad_argument, "dropout: the probability must be in [0, 1), not ", p);
  builder_.set_name("dropout");
  if (random_seed_.is_none()) {
    // 24 bits: the init's float holds them exactly.
    const Init seed{Init::Kind::uniform, 0, 0x1p24F};
    random_seed_ = ops::state(builder_, declare({"random.seed", {DType::i32, {}}, StateRole::counter}, seed));
    random_step_ = counter("random.step");
  }
  const std::int64_t id = dropouts_++;
  return training_ ? ops::dropout(builder_, x, p, random_seed_, random_step_, id) : x;
}

std::vector<float> initial_values(const Init& init, const StateVar& state, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(state.spec.shape.elements()), init.a);
  if (init.kind == Init::Kind::constant) return values;
  const std::uint64_t stream = hash(state.name);
  const PhiloxKey key{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  for (std::size_t i = 0; i < values.size(); i += 4) {
    const std::uint64_t block = i / 4;
    const auto words = philox4x32(key, {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                                        static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)});
    std::array<float, 4> four{};
    if (init.kind == Init::Kind::uniform) {
      for (std::size_t j = 0; j < 4; ++j) four[j] = init.a + (init.b - init.a) * to_unit(words[j]);
    } else {
      const auto low = normal_pair(words[0], words[1]);
      const auto high = normal_pair(words[2], words[3]);
      four = {low[0], low[1], high[0], high[1]};
      for (float& value : four) value = init.a + init.b * value;
    }
    for (std::size_t j = i; j < std::min(i + 4, values.size()); ++j) values[j] = four[j - i];
  }
  return values;
}

}  // namespace stoker::nn
