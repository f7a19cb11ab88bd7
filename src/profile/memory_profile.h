// MemoryProfile: what lives in a plan's arena at each of its steps, the peak, and the tensors that make it. It follows
// from the plan alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace stoker {

struct MemoryProfile {
  struct Moment {
    std::string op;
    std::int64_t alive = 0;   // bytes of the tensors that are made, read or kept here
    std::int64_t extent = 0;  // up to where they lie: alive, and the gaps between them
  };
  struct Holder {
    std::string name;
    std::int64_t bytes = 0;
    int first = 0;  // steps, both included
    int last = 0;
  };
  std::vector<Moment> moments;   // one a step
  std::int64_t arena_bytes = 0;  // Plan::arena_bytes: the largest extent
  int peak_step = 0;             // where most bytes are alive
  std::vector<Holder> holders;   // the tensors alive there, the largest first
};

[[nodiscard]] MemoryProfile profile_memory(const Plan& plan);

}  // namespace stoker
