#include "profile/memory_profile.h"

#include <algorithm>

#include "graph/op_def.h"

namespace stoker {
namespace {

// For each step, the tensors alive in it. One that was written over by another in the same step counts once.
std::vector<std::vector<const ArenaTensor*>> alive_by_step(const Plan& plan) {
  std::vector<bool> overwritten(plan.tensors.size(), false);
  for (const ArenaTensor& tensor : plan.tensors) {
    if (tensor.in_place_of >= 0) overwritten[static_cast<std::size_t>(tensor.in_place_of)] = true;
  }
  const int steps = static_cast<int>(plan.steps.size());
  std::vector<std::vector<const ArenaTensor*>> alive(plan.steps.size());
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const ArenaTensor& tensor = plan.tensors[i];
    const int last = std::min(steps - 1, overwritten[i] ? tensor.last - 1 : tensor.last);
    for (int step = tensor.first; step <= last; ++step) alive[static_cast<std::size_t>(step)].push_back(&tensor);
  }
  return alive;
}

}  // namespace

MemoryProfile profile_memory(const Plan& plan) {
  MemoryProfile profile{.moments = {}, .arena_bytes = plan.arena_bytes, .peak_step = 0, .holders = {}};
  const auto alive = alive_by_step(plan);
  for (std::size_t step = 0; step < alive.size(); ++step) {
    const Node& node = plan.graph.nodes[static_cast<std::size_t>(plan.steps[step].node)];
    MemoryProfile::Moment moment{.op = node.op->name + (node.name.empty() ? "" : " " + node.name)};
    for (const ArenaTensor* tensor : alive[step]) {
      moment.alive += tensor->bytes;
      moment.extent = std::max(moment.extent, tensor->offset + tensor->bytes);
    }
    profile.moments.push_back(std::move(moment));
  }
  if (profile.moments.empty()) return profile;
  const auto peak = std::ranges::max_element(profile.moments, {}, &MemoryProfile::Moment::alive);
  profile.peak_step = static_cast<int>(peak - profile.moments.begin());
  for (const ArenaTensor* tensor : alive[static_cast<std::size_t>(profile.peak_step)])
    profile.holders.push_back({name_of(plan, *tensor), tensor->bytes, tensor->first, tensor->last});
  std::ranges::stable_sort(profile.holders, std::ranges::greater{}, &MemoryProfile::Holder::bytes);
  return profile;
}

}  // namespace stoker
