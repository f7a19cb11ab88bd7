// Runs any graph on a backend, from and to the doubles that the references use.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "backends/backend.h"
#include "graph/op_def.h"
#include "passes/pass.h"
#include "plan/plan.h"

namespace stoker::test {

template <typename T>
std::vector<std::byte> packed(const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

inline std::vector<std::byte> packed(DType dtype, const std::vector<double>& values) {
  switch (dtype) {
    case DType::i32: return packed<std::int32_t>(values);
    case DType::i64: return packed<std::int64_t>(values);
    case DType::u8:
    case DType::b8: return packed<std::uint8_t>(values);
    default: return packed<float>(values);
  }
}

template <typename T>
std::vector<double> unpacked(std::span<const std::byte> bytes) {
  std::vector<double> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value{};
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
  return values;
}

inline std::vector<double> unpacked(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case DType::i32: return unpacked<std::int32_t>(bytes);
    case DType::i64: return unpacked<std::int64_t>(bytes);
    case DType::u8:
    case DType::b8: return unpacked<std::uint8_t>(bytes);
    default: return unpacked<float>(bytes);
  }
}

// Runs the graph's passes, plans, compiles and runs it once. States are updated; returns the outputs.
inline std::vector<RefTensor> run_on(Backend& backend, const Graph& graph, std::span<const RefTensor> inputs,
                                     std::span<RefTensor> states, const PassOptions& passes = {}) {
  const Plan plan = make_plan(run_passes(graph, backend.target(), passes), backend.target(),
                              {.in_place = passes.is_on(kInPlace), .early_update = passes.is_on(kEarlyUpdate)});
  std::vector<std::unique_ptr<Memory>> memories;
  const auto allocate = [&](std::int64_t bytes, MemoryKind kind) {
    return memories.emplace_back(backend.allocate(bytes, kind)).get();
  };
  Bindings bindings{.arena = allocate(plan.arena_bytes, MemoryKind::plain)};
  // Whatever a step reads, a step before it must have written.
  const std::vector<std::byte> garbage(static_cast<std::size_t>(plan.arena_bytes), std::byte{0xFF});
  backend.upload(*bindings.arena, 0, garbage);
  const auto aligned = [&](std::int64_t bytes) {
    return (bytes + backend.target().alignment() - 1) / backend.target().alignment() * backend.target().alignment();
  };
  std::int64_t state_bytes = 0;
  for (const StateVar& state : plan.graph.states) {
    bindings.states.push_back({nullptr, state_bytes});
    state_bytes += aligned(state.spec.bytes());
  }
  Memory* state_memory = allocate(state_bytes, MemoryKind::plain);
  for (std::size_t i = 0; i < plan.graph.states.size(); ++i) {
    bindings.states[i].memory = state_memory;
    backend.upload(*state_memory, bindings.states[i].offset, packed(plan.graph.states[i].spec.dtype, states[i].data));
  }
  for (int slot = 0; slot < backend.batch_slots(); ++slot) {
    std::vector<Memory*>& batch = bindings.batches.emplace_back();
    for (std::size_t i = 0; i < plan.graph.inputs.size(); ++i) {
      const Spec& spec = plan.graph.spec(plan.graph.inputs[i].value);
      batch.push_back(allocate(spec.bytes(), MemoryKind::batch));
      std::ranges::copy(packed(spec.dtype, inputs[i].data), backend.map(*batch.back()).begin());
      backend.unmap(*batch.back());
    }
  }
  const std::unique_ptr<Executable> executable = backend.compile(plan, bindings);
  executable->run();

  const auto read = [&](const Memory& memory, std::int64_t offset, const Spec& spec) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(spec.bytes()));
    backend.download(memory, offset, bytes);
    return RefTensor{spec.shape, unpacked(spec.dtype, bytes)};
  };
  std::vector<RefTensor> outputs;
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    const Place& place = plan.outputs[i];
    const Spec& spec = plan.graph.spec(plan.graph.outputs[i].value);
    const auto index = static_cast<std::size_t>(place.index);
    if (place.kind == Place::Kind::constant) {
      const std::vector<float>& values = plan.graph.nodes[index].attrs.floats("values");
      outputs.push_back({spec.shape, {values.begin(), values.end()}});
      continue;
    }
    if (place.kind == Place::Kind::input) {
      outputs.push_back(inputs[index]);
      continue;
    }
    const bool in_arena = place.kind == Place::Kind::arena;
    const Memory& memory = in_arena ? *bindings.arena : *bindings.states[index].memory;
    outputs.push_back(read(memory, in_arena ? place.offset : bindings.states[index].offset, spec));
  }
  for (std::size_t i = 0; i < states.size(); ++i)
    states[i] = read(*state_memory, bindings.states[i].offset, plan.graph.states[i].spec);
  return outputs;
}

}  // namespace stoker::test
