// The graphs of a session: a whole training step (forward, loss, backward, update), evaluation, prediction, the two
// halves of a step with gradient accumulation, and those of a step whose update is made elsewhere.
#pragma once

#include <string>
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
  gradients,   // forward and backward; each gradient is left in a state of its own
  update,      // the update from those; no inputs
};

// The state that keeps `bad` from step to step: NaN after a step that was not finite, until the host, which may hear of
// it some steps later, sets it to 0 again. Meanwhile no step changes State.
inline constexpr const char* kHalted = "guard.halted";

// Where StepKind::gradients leaves the gradient of a parameter and StepKind::update takes it from.
[[nodiscard]] inline std::string gradient_state(const std::string& parameter) { return "gradient." + parameter; }

struct StepGraph {
  Graph graph;
  std::vector<nn::Init> inits;  // one for each state
};

// Named inputs: items, targets. Outputs: loss, correct, bad (0, or NaN if the step was not finite); output (predict).
[[nodiscard]] StepGraph build_step(const nn::Model& model, const SessionOptions& options, StepKind kind,
                                   std::int64_t batch);

}  // namespace stoker
