// The states of a session in one memory of the device. No state lies across a cut of a device whose memory comes in
// pieces (Target::largest_buffer).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "graph/graph.h"

namespace stoker {

class StateMemory {
 public:
  // All zeros at first.
  StateMemory(Backend& backend, std::vector<StateVar> states);

  [[nodiscard]] const std::vector<StateVar>& states() const { return states_; }
  // An Error names a state that is not there.
  [[nodiscard]] std::size_t find(std::string_view name) const;
  [[nodiscard]] MemoryRef ref(std::size_t state) const { return {memory_.get(), offsets_[state]}; }
  [[nodiscard]] std::int64_t bytes() const { return memory_->bytes(); }

  // Both wait for the steps under way. An Error says so if the size is not the state's.
  void read(std::size_t state, std::span<std::byte> bytes) const;
  void write(std::size_t state, std::span<const std::byte> bytes);

 private:
  void require_size(std::size_t state, std::size_t bytes) const;

  Backend& backend_;
  std::vector<StateVar> states_;
  std::vector<std::int64_t> offsets_;  // one for each state
  std::unique_ptr<Memory> memory_;
};

}  // namespace stoker
