// Net: layers that add their ops to a graph and declare their parameters under PyTorch's names.
// A model is a function over a Net; running it again for another batch size or for inference declares the same states.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "ops/ops.h"

namespace stoker::nn {

// How a state starts. Values come from (seed, name): the same on every device, whatever else is in the net.
struct Init {
  enum class Kind : std::uint8_t { constant, uniform, normal };
  Kind kind = Kind::constant;
  float a = 0;  // the constant; the lower bound; the mean
  float b = 0;  // the upper bound; the standard deviation
};

// Where an init is left out, PyTorch's own is taken: uniform in +-1/sqrt(fan in), for weights and biases.
struct LinearOptions {
  bool bias = true;
  std::optional<Init> weight_init;
  std::optional<Init> bias_init;
};

struct ConvOptions {
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t pad = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  bool kaiming_normal = false;  // the weight: normal with deviation sqrt(2 / fan out), as torchvision's nets have it
};

class Net {
 public:
  Net(GraphBuilder& builder, bool training);

  [[nodiscard]] GraphBuilder& builder() { return builder_; }
  [[nodiscard]] bool training() const { return training_; }

  Value parameter(const std::string& name, const Shape& shape, Init init, FileLayout layout = FileLayout::plain);
  Value statistic(const std::string& name, const Spec& spec, Init init);
  // A scalar i32 state, one more after each training step that was finite.
  Value counter(const std::string& name, std::int64_t start = 0);

  // Layers. `name` is the prefix of the parameters' names: "conv1" declares conv1.weight and conv1.bias.
  Value linear(Value x, const std::string& name, std::int64_t outputs, const LinearOptions& options = {});
  Value conv2d(Value x, const std::string& name, std::int64_t outputs, const ConvOptions& options);
  Value batch_norm(Value x, const std::string& name, double momentum = 0.1, double eps = 1e-5);
  Value layer_norm(Value x, const std::string& name, double eps = 1e-5);
  Value embedding(Value indices, const std::string& name, std::int64_t rows, std::int64_t width);
  // The net's dropouts share the counters random.seed and random.step.
  Value dropout(Value x, double p);

  // What the training step must still do: new values of statistics, written only if the step is finite.
  [[nodiscard]] const std::vector<StateWrite>& statistic_writes() const { return statistic_writes_; }
  [[nodiscard]] const std::vector<Init>& inits() const { return inits_; }  // one for each state of the graph so far

 private:
  int declare(StateVar state, Init init);

  GraphBuilder& builder_;
  bool training_;
  std::vector<StateWrite> statistic_writes_;
  std::vector<Init> inits_;
  std::int64_t dropouts_ = 0;
  Value random_seed_;  // none until the first dropout
  Value random_step_;
};

// The values that `init` gives for a state of that name, in memory order. Element i is word i % 4 of Philox block
// (i / 4, hash of the name) under the seed, so values depend on nothing but seed, name and position.
[[nodiscard]] std::vector<float> initial_values(const Init& init, const StateVar& state, std::uint64_t seed);

}  // namespace stoker::nn
