#include "backends/opencl/plan_work.h"

#include "backends/backend.h"
#include "backends/opencl/quirks.h"
#include "backends/opencl/ring.h"

namespace stoker::opencl {

std::vector<StepWork> plan_work(const Plan& plan, const Device& device, const Tuning& tuning) {
  std::vector<StepWork> all;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const Node& node = plan.graph.nodes[static_cast<std::size_t>(step.node)];
    const KernelContext context{.graph = plan.graph,
                                .node = node,
                                .inputs = step.inputs,
                                .outputs = step.outputs,
                                .scratch = step.scratch,
                                .device = device,
                                .tuning = tuning};
    std::vector<Place> writes = step.outputs;
    if (step.scratch.kind != Place::Kind::none) writes.push_back(step.scratch);
    for (Work& work : find_kernel(node)->prepare(context))
      all.push_back({static_cast<int>(i), std::move(work), step.inputs, writes});
  }
  return all;
}

std::vector<Place> scalar_results(const Plan& plan) {
  std::vector<Place> places;
  for (const std::size_t output : scalar_outputs(plan)) places.push_back(plan.outputs[output]);
  return places;
}

Device typical_gpu(Family family) {
  Device device{.id = "described", .name = to_string(family), .family = family};
  device.max_group = family == Family::mali ? 512 : 1024;
  device.max_item_sizes = {device.max_group, device.max_group, device.max_group};
  device.local_bytes = 32 << 10;
  device.local_is_real = family != Family::mali;
  device.global_bytes = std::int64_t{4} << 30;
  device.largest_buffer = std::int64_t{1} << 30;
  device.image_texels = 1 << 27;
  device.quirks = quirks_of(device);
  if (device.quirks.no_images) device.image_texels = 0;
  return device;
}

DescribedDevice::DescribedDevice(Device device)
    : device_(std::move(device)), tuning_(device_), target_(device_, tuning_, 0) {}

std::vector<MergedLaunch> DescribedDevice::launches(const Plan& plan, bool merge) const {
  std::vector<StepWork> work = plan_work(plan, device_, tuning_);
  const std::vector<Place> results = scalar_results(plan);
  if (!results.empty()) {
    const Place ring{.kind = Place::Kind::constant, .index = -1, .bytes = 4};
    work.push_back({static_cast<int>(plan.steps.size()) - 1, Ring::append_stage(ring, results), {}, {}});
  }
  // As Binder numbers them: State is one memory, each input one of its own.
  constexpr int kNext = 10000;
  const auto buffer_of = [&](const Place& place) {
    switch (place.kind) {
      case Place::Kind::arena: return static_cast<int>(place.offset / target_.largest_buffer());
      case Place::Kind::input: return kNext + place.index;
      case Place::Kind::state: return 3 * kNext;
      case Place::Kind::constant:
      case Place::Kind::none: break;
    }
    return 2 * kNext;
  };
  return merge_stages(std::move(work), device_, buffer_of, merge);
}

}  // namespace stoker::opencl
