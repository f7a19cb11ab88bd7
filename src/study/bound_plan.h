// BoundPlan: one graph of a step, planned and compiled over states that may lie in several memories. The study's pieces
// (forward alone, gradients alone, conversions) are such plans; Session, which trains, has its own.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "run/session.h"
#include "run/state_memory.h"
#include "run/step_graph.h"

namespace stoker {

// Finds a state's place by name, in whichever memory has it.
class StateMap {
 public:
  void add(const StateMemory& memory);
  [[nodiscard]] MemoryRef at(const std::string& name) const;

 private:
  std::map<std::string, MemoryRef> places_;
};

// As Session does: by each state's rule; counters begin at 0, as all memory does.
void initialise_states(Backend& backend, const StepGraph& step, const StateMap& states, std::uint64_t seed);

class BoundPlan {
 public:
  // `inputs`: of which kind the memories of the graph's inputs are.
  BoundPlan(Backend& backend, const Graph& graph, const std::vector<std::string>& passes_off, const StateMap& states,
            MemoryKind inputs = MemoryKind::batch);

  // Blocking writes (plain memory), or in place (batch memory).
  void fill(const BatchView& batch);
  void run() { executable_->run(0); }
  // The named scalar outputs of the oldest run that was not collected; waits for it.
  [[nodiscard]] std::map<std::string, float> collect();

  [[nodiscard]] const Plan& plan() const { return *plan_; }
  [[nodiscard]] Executable& executable() { return *executable_; }

 private:
  Backend& backend_;
  MemoryKind input_kind_;
  std::unique_ptr<Plan> plan_;  // on the heap: the executable refers to it
  std::unique_ptr<Memory> arena_;
  std::map<std::string, std::unique_ptr<Memory>> inputs_;
  std::unique_ptr<Executable> executable_;
};

}  // namespace stoker
