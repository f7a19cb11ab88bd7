#include "study/bound_plan.h"

#include <algorithm>

#include "base/error.h"
#include "passes/pass.h"

namespace stoker {

void StateMap::add(const StateMemory& memory) {
  for (std::size_t i = 0; i < memory.states().size(); ++i) places_.emplace(memory.states()[i].name, memory.ref(i));
}

MemoryRef StateMap::at(const std::string& name) const {
  const auto at = places_.find(name);
  DCHECK(at != places_.end());
  return at->second;
}

void initialise_states(Backend& backend, const StepGraph& step, const StateMap& states, std::uint64_t seed) {
  for (std::size_t i = 0; i < step.graph.states.size(); ++i) {
    const StateVar& var = step.graph.states[i];
    if (var.spec.dtype != DType::f32) continue;
    const std::vector<float> values = nn::initial_values(step.inits[i], var, seed);
    const MemoryRef ref = states.at(var.name);
    backend.upload(*ref.memory, ref.offset, std::as_bytes(std::span(values)));
  }
}

BoundPlan::BoundPlan(Backend& backend, const Graph& graph, const std::vector<std::string>& passes_off,
                     const StateMap& states, MemoryKind inputs)
    : backend_(backend), input_kind_(inputs) {
  const PassOptions passes{.off = passes_off};
  plan_ = std::make_unique<Plan>(
      make_plan(run_passes(graph, backend.target(), passes), backend.target(),
                {.in_place = passes.is_on(kInPlace), .early_update = passes.is_on(kEarlyUpdate)}));
  arena_ = backend.allocate(plan_->arena_bytes);
  Bindings bindings{.arena = arena_.get()};
  for (const StateVar& state : plan_->graph.states) bindings.states.push_back(states.at(state.name));
  std::vector<Memory*>& batch = bindings.batches.emplace_back();
  for (const NamedValue& input : plan_->graph.inputs) {
    std::unique_ptr<Memory>& memory = inputs_[input.name];
    memory = backend.allocate(plan_->graph.spec(input.value).bytes(), inputs);
    batch.push_back(memory.get());
  }
  executable_ = backend.compile(*plan_, bindings);
}

void BoundPlan::fill(const BatchView& batch) {
  for (auto& [name, memory] : inputs_) {
    const std::span<const std::byte> bytes = name == "items" ? std::as_bytes(batch.items) : batch.targets;
    if (input_kind_ == MemoryKind::batch) {
      std::ranges::copy(bytes, backend_.map(*memory).begin());
      backend_.unmap(*memory);
    } else {
      backend_.upload(*memory, 0, bytes);
    }
  }
}

std::map<std::string, float> BoundPlan::collect() {
  const std::vector<std::size_t> outputs = scalar_outputs(*plan_);
  std::vector<float> values(outputs.size());
  static_cast<void>(executable_->collect(values, true));
  std::map<std::string, float> named;
  for (std::size_t i = 0; i < outputs.size(); ++i) named[plan_->graph.outputs[outputs[i]].name] = values[i];
  return named;
}

}  // namespace stoker
