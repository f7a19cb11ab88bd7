// Five training steps against PyTorch's (tools/goldens/make_goldens.py): losses, first outputs, final weights and
// running statistics. PyTorch computed in double, so the tolerance is for our rounding alone.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "devices.h"
#include "formats/safetensors.h"
#include "golden_values.h"
#include "nn/model.h"
#include "run/session.h"
#include "test_models.h"

namespace stoker::test {
namespace {

nn::Model golden_mlp() {
  nn::Model model;
  model.name = "mlp";
  model.item = {784};
  model.outputs = 16;
  model.forward = [](nn::Net& net, Value x) {
    GraphBuilder& b = net.builder();
    x = ops::relu(b, net.linear(x, "fc1", 256));
    x = ops::relu(b, net.linear(x, "fc2", 128));
    return net.linear(x, "fc3", 16);
  };
  return model;
}

nn::Model golden_model(const std::string& net) {
  if (net == "mlp") return golden_mlp();
  return net == "residual" ? residual_net() : nn::find_model(net);
}

SessionOptions golden_options(const nlohmann::json& optimizer) {
  SessionOptions options;
  const std::string name = optimizer.at("name");
  options.optimizer.kind = name == "SGD"     ? nn::Optimizer::Kind::sgd
                           : name == "Adam"  ? nn::Optimizer::Kind::adam
                           : name == "AdamW" ? nn::Optimizer::Kind::adamw
                                             : nn::Optimizer::Kind::rmsprop;
  options.optimizer.momentum = optimizer.value("momentum", 0.0);
  options.optimizer.nesterov = optimizer.value("nesterov", false);
  options.optimizer.weight_decay = optimizer.value("weight_decay", 0.0);
  options.optimizer.alpha = optimizer.value("alpha", 0.99);
  options.optimizer.eps = optimizer.value("eps", 1e-8);
  options.schedule.rate = optimizer.at("lr");
  options.threads = 2;
  return options;
}

// Where element `i` of a tensor in PyTorch's layout stands in memory.
std::int64_t memory_index(const StateVar& state, std::int64_t i) {
  if (state.layout != FileLayout::conv_weight) return i;
  const Shape& s = state.spec.shape;  // [KH, KW, I, O]; files have [O, I, KH, KW]
  const std::int64_t kw = i % s[1];
  const std::int64_t kh = i / s[1] % s[0];
  const std::int64_t in = i / (s[1] * s[0]) % s[2];
  const std::int64_t out = i / (s[1] * s[0] * s[2]);
  return ((kh * s[1] + kw) * s[2] + in) * s[3] + out;
}

std::vector<float> read(const Session& session, const StateVar& state) {
  std::vector<float> memory(static_cast<std::size_t>(state.spec.shape.elements()));
  session.read_state(state.name, std::as_writable_bytes(std::span(memory)));
  std::vector<float> values(memory.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = memory[static_cast<std::size_t>(memory_index(state, static_cast<std::int64_t>(i)))];
  }
  return values;
}

// 1 / sqrt(fan-in) of the layer that a weight or bias belongs to.
float layer_bound(const Session& session, const std::string& name) {
  const std::string weight = name.substr(0, name.rfind('.')) + ".weight";
  for (const StateVar& state : session.states()) {
    if (state.name != weight) continue;
    const Shape& shape = state.spec.shape;
    const std::int64_t fan_in = state.layout == FileLayout::conv_weight ? shape.elements(0, 3) : shape[1];
    return static_cast<float>(1 / std::sqrt(static_cast<double>(fan_in)));
  }
  return 0;
}

bool is_norm(const Session& session, const std::string& name) {
  const std::string mean = name.substr(0, name.rfind('.')) + ".running_mean";
  for (const StateVar& state : session.states()) {
    if (state.name == mean) return true;
  }
  return false;
}

void initialise(Session& session) {
  for (const StateVar& state : session.states()) {
    if (state.role != StateRole::parameter) continue;
    const bool norm = is_norm(session, state.name);
    const std::int64_t count = state.spec.shape.elements();
    const std::vector<float> values = golden_values(state.name, count, norm ? 0.25F : layer_bound(session, state.name));
    std::vector<float> memory(values.size());
    for (std::int64_t i = 0; i < count; ++i) {
      memory[static_cast<std::size_t>(memory_index(state, i))] =
          values[static_cast<std::size_t>(i)] + (norm && state.name.ends_with("weight") ? 1.0F : 0.0F);
    }
    session.write_state(state.name, std::as_bytes(std::span(memory)));
  }
}

// The golden inputs are [5, N, C, H, W]; ours are [5, N, H, W, C].
std::vector<float> golden_inputs(const Shape& item, std::int64_t batch) {
  const std::vector<float> nchw = golden_values("input", 5 * batch * item.elements(), 1.0F);
  if (item.rank() != 3) return nchw;
  std::vector<float> nhwc(nchw.size());
  const std::int64_t pixels = item[0] * item[1];
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(nchw.size()); ++i) {
    const std::int64_t channel = i / pixels % item[2];
    const std::int64_t to = (i / item.elements() * pixels + i % pixels) * item[2] + channel;
    nhwc[static_cast<std::size_t>(to)] = nchw[static_cast<std::size_t>(i)];
  }
  return nhwc;
}

class Goldens : public ::testing::TestWithParam<std::tuple<const char*, std::string>> {};  // a run, a device
INSTANTIATE_TEST_SUITE_P(Runs, Goldens,
                         ::testing::Combine(::testing::Values("mlp_sgd", "lenet5_sgd", "residual_sgd",
                                                              "residual_nesterov", "residual_adam", "residual_adamw",
                                                              "residual_rmsprop"),
                                            ::testing::ValuesIn(testing::device_ids())));

TEST_P(Goldens, are_what_training_gives) {
  const auto file =
      SafetensorsFile::open(std::string(STOKER_TEST_DIR) + "/goldens/" + std::get<0>(GetParam()) + ".safetensors");
  const auto& metadata = file.metadata();
  const nn::Model model = golden_model(metadata.at("net"));
  SessionOptions options = golden_options(nlohmann::json::parse(metadata.at("optimizer")));
  options.device = std::get<1>(GetParam());
  options.self_test = false;
  Session session(model, options);
  initialise(session);
  for (const StateVar& state : session.states()) {
    if (state.role != StateRole::parameter) continue;
    const std::vector<float> first = file.read_f32("initial/" + state.name);
    const std::vector<float> ours = read(session, state);
    for (std::size_t i = 0; i < first.size(); ++i) ASSERT_EQ(first[i], ours[i]) << state.name;
  }

  const std::int64_t batch = std::stoll(metadata.at("batch"));
  const std::vector<float> inputs = golden_inputs(model.item, batch);
  const std::vector<std::int64_t> labels64 = file.read_i64("labels");
  const std::vector<std::int32_t> labels(labels64.begin(), labels64.end());
  const std::vector<float> losses = file.read_f32("losses");
  const auto items = static_cast<std::size_t>(batch * model.item.elements());
  for (std::size_t step = 0; step < losses.size(); ++step) {
    const StepResult result =
        session.train({batch, std::span(inputs).subspan(step * items, items),
                       std::as_bytes(std::span(labels).subspan(step * static_cast<std::size_t>(batch),
                                                               static_cast<std::size_t>(batch)))});
    EXPECT_NEAR(result.loss, losses[step], 1e-5 * std::abs(losses[step])) << "step " << step;
  }
  // PyTorch's own fp32 run deviates by this much; where a net amplifies rounding, so does ours.
  const double tolerance = std::max(2e-6, 20 * std::stod(metadata.at("float32_deviation")));
  const auto stride = static_cast<std::size_t>(std::stoll(metadata.at("stride")));
  for (const StateVar& state : session.states()) {
    if (state.role != StateRole::parameter && state.role != StateRole::statistic) continue;
    const std::vector<float> expected = file.read_f32("final/" + state.name);
    const std::vector<float> ours = read(session, state);
    ASSERT_EQ(expected.size(), (ours.size() + stride - 1) / stride) << state.name;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(expected[i], ours[i * stride], tolerance * std::max(1.0F, std::abs(expected[i])))
          << state.name << " " << i;
    }
  }
}

}  // namespace
}  // namespace stoker::test
