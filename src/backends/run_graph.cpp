#include "backends/run_graph.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace stoker {
namespace {

template <typename T>
std::vector<float> as_floats(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value{};
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<float>(value);
  }
  return values;
}

std::vector<float> as_floats(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case DType::f32: return as_floats<float>(bytes);
    case DType::i32: return as_floats<std::int32_t>(bytes);
    case DType::i64: return as_floats<std::int64_t>(bytes);
    default: return as_floats<std::uint8_t>(bytes);
  }
}

}  // namespace

GraphRun::GraphRun(Backend& backend, Plan plan, std::span<const Bytes> inputs)
    : backend_(backend), plan_(std::move(plan)) {
  DCHECK(plan_.graph.states.empty() && inputs.size() == plan_.graph.inputs.size());
  const auto allocate = [&](std::int64_t bytes, MemoryKind kind) {
    return memories_.emplace_back(backend.allocate(bytes, kind)).get();
  };
  arena_ = allocate(std::max<std::int64_t>(plan_.arena_bytes, 1), MemoryKind::plain);
  Bindings bindings{.arena = arena_};
  std::vector<Memory*> batch;
  for (const Bytes& input : inputs) {
    batch.push_back(allocate(static_cast<std::int64_t>(input.size()), MemoryKind::batch));
    std::ranges::copy(input, backend.map(*batch.back()).begin());
    backend.unmap(*batch.back());
  }
  bindings.batches.assign(static_cast<std::size_t>(backend.batch_slots()), batch);  // only the first slot is run
  executable_ = backend.compile(plan_, bindings);
}

void GraphRun::wait() {
  std::byte any{};
  backend_.download(*arena_, 0, std::span(&any, 1));
}

std::vector<float> GraphRun::output(std::size_t i) const {
  const Place& place = plan_.outputs[i];
  DCHECK(place.kind == Place::Kind::arena);
  Bytes bytes(static_cast<std::size_t>(place.bytes));
  backend_.download(*arena_, place.offset, bytes);
  return as_floats(plan_.graph.spec(plan_.graph.outputs[i].value).dtype, bytes);
}

}  // namespace stoker
