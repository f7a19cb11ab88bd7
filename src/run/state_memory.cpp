#include "run/state_memory.h"

#include <algorithm>

#include "base/error.h"

namespace stoker {
namespace {

// A cache line of the devices that we know, and what image views of buffers ask for.
constexpr std::int64_t kAlignment = 128;

std::int64_t rounded_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

StateMemory::StateMemory(Backend& backend, std::vector<StateVar> states)
    : backend_(backend), states_(std::move(states)) {
  const std::int64_t piece = backend.target().largest_buffer();
  const std::int64_t alignment = std::max(kAlignment, backend.target().alignment());
  std::int64_t end = 0;
  for (const StateVar& state : states_) {
    const std::int64_t bytes = state.spec.bytes();
    require(bytes <= piece, Code::no_memory, "state ", state.name, " takes ", bytes,
            " bytes, more than the device holds in one piece, ", piece);
    std::int64_t offset = rounded_up(end, alignment);
    if (bytes > 0 && offset / piece != (offset + bytes - 1) / piece) offset = rounded_up(offset, piece);
    offsets_.push_back(offset);
    end = offset + bytes;
  }
  memory_ = backend.allocate(end);
}

std::size_t StateMemory::find(std::string_view name) const {
  const auto at = std::ranges::find(states_, name, &StateVar::name);
  require(at != states_.end(), Code::bad_argument, "there is no state named '", name, "'");
  return static_cast<std::size_t>(at - states_.begin());
}

void StateMemory::read(std::size_t state, std::span<std::byte> bytes) const {
  require_size(state, bytes.size());
  backend_.download(*memory_, offsets_[state], bytes);
}

void StateMemory::write(std::size_t state, std::span<const std::byte> bytes) {
  require_size(state, bytes.size());
  backend_.upload(*memory_, offsets_[state], bytes);
}

void StateMemory::require_size(std::size_t state, std::size_t bytes) const {
  const StateVar& var = states_[state];
  require(static_cast<std::int64_t>(bytes) == var.spec.bytes(), Code::bad_argument, "state ", var.name, " is ",
          var.spec, ", ", var.spec.bytes(), " bytes, not ", bytes);
}

}  // namespace stoker
