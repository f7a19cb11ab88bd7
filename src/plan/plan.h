// Plan: a training or inference step ready to run: ordered Steps whose tensors have fixed places. Plain data,
// printable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/target.h"
#include "ops/cost.h"

namespace stoker {

// Where a tensor lives.
struct Place {
  enum class Kind : std::uint8_t { none, arena, state, input, constant };
  Kind kind = Kind::none;
  int index = 0;            // of the state, the graph input or the constant's node
  std::int64_t offset = 0;  // bytes into the arena
  std::int64_t bytes = 0;

  friend bool operator==(const Place&, const Place&) = default;
};

struct Step {
  int node = 0;  // in Plan::graph
  std::vector<Place> inputs;
  std::vector<Place> outputs;
  Place scratch;
  Phase phase = Phase::forward;
  Cost cost;
};

// A tensor of the arena: alive from the step that makes it through its last reader; an output outlives the last step.
struct ArenaTensor {
  Value value;  // none: scratch of step `first`
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  int first = 0;  // steps, both included
  int last = 0;
  int in_place_of = -1;  // the tensor whose place it took: that one's last reader wrote this one over it
};

struct Plan {
  Graph graph;  // after the passes
  std::vector<Step> steps;
  std::vector<ArenaTensor> tensors;
  std::int64_t arena_bytes = 0;  // the peak: exactly what a backend allocates
  std::int64_t state_bytes = 0;
  std::int64_t input_bytes = 0;
  std::vector<Place> outputs;  // of graph.outputs
};

struct PlanOptions {
  bool in_place = true;      // an output may take the place of an input that dies with it
  bool early_update = true;  // a state is written as soon as its last reader is done, not at the end of the step
};

[[nodiscard]] Plan make_plan(Graph graph, const Target& target, const PlanOptions& options = {});

// "conv2d conv1 f32[64,24,24,20]", or "scratch".
[[nodiscard]] std::string name_of(const Plan& plan, const ArenaTensor& tensor);
// The table of `stoker plan`: steps, offsets, lifetimes, peak.
[[nodiscard]] std::string to_string(const Plan& plan);
// The arena over time: a rectangle a tensor, steps to the right, addresses upwards.
[[nodiscard]] std::string to_svg(const Plan& plan);

}  // namespace stoker
