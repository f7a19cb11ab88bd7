// Merges small pieces of work into few launches. Stages that do not need each other run side by side, each in
// work-groups of its own; a chain of small ones that do runs in one work-group, with barriers between. A stage waits
// (the launches after it that do not need it go first) until some launch needs it, so that more of them meet.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "backends/opencl/kernel.h"

namespace stoker::opencl {

// Work of a plan's step. For a launch, what it reads and writes must be said: a stage's arguments say it themselves.
struct StepWork {
  int step = 0;  // in Plan::steps
  Work work;
  std::vector<Place> reads;   // of a launch: the step's inputs
  std::vector<Place> writes;  // of a launch: the step's outputs and its scratch
};

struct MergedLaunch {
  Launch launch;
  std::vector<int> steps;  // whose work it does, ascending, each once
};

// The launches of `work` in an order that keeps all dependences, found from the places' bytes. `buffer_of` numbers the
// buffers: places of equal numbers lie in one buffer. Merged launches are of kernels/stages.cl; their arguments are one
// table and up to kStageBuffers buffers. Without `merge` each stage is a launch.
[[nodiscard]] std::vector<MergedLaunch> merge_stages(std::vector<StepWork> work, const Device& device,
                                                     const std::function<int(const Place&)>& buffer_of,
                                                     bool merge = true);

inline constexpr int kStageBuffers = 8;

// The definitions of FOR_ITEMS (kernel.h) over ITEM and ITEMS, and of SYNC.
[[nodiscard]] std::string_view for_items(const Device& device);

// Whether the places share a byte.
[[nodiscard]] bool overlap(const Place& a, const Place& b);

}  // namespace stoker::opencl
