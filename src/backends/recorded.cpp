#include "backends/recorded.h"

#include "graph/op_def.h"

namespace stoker {

std::vector<RecordedStep> recorded_steps(const Plan& plan) {
  std::vector<RecordedStep> steps;
  for (const Step& step : plan.steps) {
    const Node& node = plan.graph.nodes[static_cast<std::size_t>(step.node)];
    steps.push_back({.name = node.name.empty() ? node.op->name : node.op->name + " " + node.name,
                     .phase = to_string(step.phase),
                     .flops = step.cost.flops,
                     .bytes = step.cost.bytes});
  }
  return steps;
}

}  // namespace stoker
