#include "run/random_batch.h"

#include <cstring>

#include "base/random.h"

namespace stoker {

RandomBatch::RandomBatch(const nn::Model& model, const Spec& target, std::int64_t count)
    : count_(count),
      items_(static_cast<std::size_t>(count * model.item.elements())),
      targets_(static_cast<std::size_t>(count * target.bytes())) {
  Random random(1);
  for (float& item : items_) item = random.uniform();
  if (target.dtype != DType::i32) return;
  for (std::size_t at = 0; at < targets_.size(); at += sizeof(std::int32_t)) {
    const auto label = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(model.outputs)));
    std::memcpy(targets_.data() + at, &label, sizeof label);
  }
}

}  // namespace stoker
