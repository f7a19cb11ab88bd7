// The graphs of a session: a whole training step (forward, loss, backward, update), evaluation, prediction, and the two
// halves of a step with gradient accumulation.
#pragma once

#include <vector>

#include "nn/net.h"
#include "run/session.h"

namespace stoker {

enum class StepKind : std::uint8_t {
  train,       // a whole step
  accumulate,  // forward and backward; gradients are added up in State, weighted by their samples
  apply,       // the update from the gradients added up so far; no inputs
  evaluate,    // loss and correct answers
  predict,     // the model's output
};

// The state that keeps `bad` from step to step: NaN after a step that was not finite, until the host, which may hear of
// it some steps later, sets it to 0 again. Meanwhile no step changes State.
inline constexpr const char* kHalted = "guard.halted";

struct StepGraph {
  Graph graph;
  std::vector<nn::Init> inits;  // one for each state
};

// Named inputs: items, targets. Outputs: loss, correct, bad (0, or NaN if the step was not finite); output (predict).
[[nodiscard]] StepGraph build_step(const nn::Model& model, const SessionOptions& options, StepKind kind,
                                   std::int64_t batch);

}  // namespace stoker
