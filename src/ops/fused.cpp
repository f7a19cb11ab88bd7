// `pointwise`: what pointwise fusion makes of several pointwise nodes. All it does stands in Node::fusion.
#include <limits>
#include <stdexcept>

#include "ops/common.h"
#include "ops/registry.h"

namespace stoker::ops {
namespace {

std::vector<Spec> infer(std::span<const Spec>, const Attrs&) {
  throw std::logic_error("pointwise: a fused node's outputs are set by the pass that makes it");
}

void reference(std::span<const RefTensor>, std::span<RefTensor>, const Attrs&) {
  throw std::logic_error("pointwise: a fused node is evaluated from its expression");
}

}  // namespace

void register_fused(std::vector<OpDef>& table) {
  // The expression's instructions are added by cost_of().
  table.push_back({.name = "pointwise",
                   .min_inputs = 0,
                   .max_inputs = std::numeric_limits<int>::max(),
                   .infer = infer,
                   .no_grad = true,
                   .cost = streaming_cost(0),
                   .reference = reference});
}

}  // namespace stoker::ops
