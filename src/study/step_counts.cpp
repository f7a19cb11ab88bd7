#include "study/step_counts.h"

#include <algorithm>

#include "backends/backend.h"
#include "graph/op_def.h"
#include "passes/pass.h"
#include "run/step_graph.h"
#include "study/baseline.h"

namespace stoker {
namespace {

SessionOptions momentum() {
  SessionOptions options;
  options.optimizer = {.kind = nn::Optimizer::Kind::sgd, .momentum = 0.9};
  return options;
}

Plan plan_of(const nn::Model& model, std::int64_t batch, StepKind kind, const Target& target,
             const std::vector<std::string>& passes_off) {
  const StepGraph step = build_step(model, momentum(), kind, batch);
  return make_plan(run_passes(step.graph, target, {.off = passes_off, .observe = {}}), target);
}

const OpDef& op_of(const Plan& plan, int step) {
  return *plan.graph.nodes[static_cast<std::size_t>(plan.steps[static_cast<std::size_t>(step)].node)].op;
}

// Of the step that computes most: small work is merged with its neighbours'.
WorkKind heaviest_kind(const Plan& plan, const std::vector<int>& steps) {
  const auto flops = [&](int step) { return plan.steps[static_cast<std::size_t>(step)].cost.flops; };
  return kind_of(op_of(plan, *std::ranges::max_element(steps, {}, flops)).name);
}

std::vector<LaunchWork> launches_of(const Plan& plan, const opencl::DescribedDevice& device, bool merge) {
  std::vector<LaunchWork> list;
  for (const opencl::MergedLaunch& merged : device.launches(plan, merge)) {
    const auto& global = merged.launch.global;
    list.push_back(
        {.kind = heaviest_kind(plan, merged.steps),
         .flops = merged.launch.cost.flops,
         .bytes = merged.launch.cost.bytes,
         .items = static_cast<double>(global[0]) * static_cast<double>(global[1]) * static_cast<double>(global[2])});
  }
  return list;
}

Crossings inputs_of(const Plan& plan) {
  return {static_cast<std::int64_t>(plan.graph.inputs.size()), static_cast<double>(plan.input_bytes)};
}

}  // namespace

WorkKind kind_of(std::string_view op) {
  if (op == "matmul") return WorkKind::matmul;
  if (op == "conv2d_input_grad") return WorkKind::conv_input_grad;
  if (op == "conv2d_weight_grad") return WorkKind::conv_weight_grad;
  if (op.starts_with("conv2d")) return WorkKind::conv;
  if (op.starts_with("depthwise")) return WorkKind::depthwise;
  return WorkKind::stream;
}

const char* to_string(WorkKind kind) {
  switch (kind) {
    case WorkKind::matmul: return "matmul";
    case WorkKind::conv: return "conv2d";
    case WorkKind::conv_input_grad: return "conv2d_input_grad";
    case WorkKind::conv_weight_grad: return "conv2d_weight_grad";
    case WorkKind::depthwise: return "depthwise";
    case WorkKind::stream: return "everything else";
  }
  return "?";
}

double StepCounts::flops() const {
  double sum = 0;
  for (const LaunchWork& launch : launches) sum += launch.flops;
  return sum;
}

double StepCounts::bytes() const {
  double sum = 0;
  for (const LaunchWork& launch : launches) sum += launch.bytes;
  return sum;
}

StepCounts resident_counts(const nn::Model& model, std::int64_t batch, const opencl::DescribedDevice& device) {
  const Plan plan = plan_of(model, batch, StepKind::train, device.target(), {});
  StepCounts counts;
  counts.launches = launches_of(plan, device, true);
  counts.maps = inputs_of(plan);
  return counts;
}

StepCounts baseline_counts(const nn::Model& model, std::int64_t batch, const opencl::DescribedDevice& device) {
  const Plan plan = plan_of(model, batch, StepKind::gradients, device.target(), fusion_passes());
  StepCounts counts;
  counts.launches = launches_of(plan, device, false);
  counts.writes = inputs_of(plan);
  // The results: loss, correct answers, flag.
  counts.reads = {1, static_cast<double>(sizeof(float) * scalar_outputs(plan).size())};
  for (const StateVar& var : plan.graph.states) {
    if (!var.name.starts_with(gradient_state(""))) continue;
    const auto bytes = static_cast<double>(var.spec.bytes());
    const auto items = static_cast<double>(var.spec.shape.elements());
    for (Crossings* way : {&counts.reads, &counts.writes}) {
      ++way->calls;
      way->bytes += bytes;
      ++counts.copies.calls;
      counts.copies.bytes += bytes;
      ++counts.objects;
      counts.launches.push_back({.bytes = 2 * bytes, .items = items, .converts = true});
    }
    // Gradient, parameter and momentum are read, the latter two written.
    counts.host_bytes += 5 * bytes;
    ++counts.host_ops;
  }
  return counts;
}

StepCounts cpu_counts(const nn::Model& model, std::int64_t batch) {
  const auto backend = make_backend("cpu");
  const Plan plan = plan_of(model, batch, StepKind::train, backend->target(), {});
  StepCounts counts;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    counts.launches.push_back(
        {.kind = kind_of(op_of(plan, static_cast<int>(i)).name), .flops = step.cost.flops, .bytes = step.cost.bytes});
  }
  return counts;
}

}  // namespace stoker
