// Model: a network by name: the shape of an item, the outputs, and the function that builds it. The zoo is a list of
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/shape.h"
#include "nn/net.h"

namespace stoker::nn {

struct Model {
  std::string name;
  std::string summary;   // one line for people
  Shape item;            // of one input item: [H, W, C] or [D]
  std::int64_t outputs;  // logits; at least as many as there are classes
  std::int64_t default_batch = 64;
  std::function<Value(Net& net, Value x)> forward;  // x is [N, item...]; returns [N, outputs]
};

[[nodiscard]] std::span<const Model> zoo();
// One of the zoo, or fully connected layers as in "mlp:784-256-128-16". An Error lists the names there are.
[[nodiscard]] Model find_model(std::string_view name);
// Fully connected layers of these sizes, ReLU between them: `--layers 784,256,128,16`.
[[nodiscard]] Model layers_model(std::span<const std::int64_t> sizes);
[[nodiscard]] std::int64_t parameter_count(const Model& model);

}  // namespace stoker::nn
