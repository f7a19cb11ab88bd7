// A batch of random items and labels, for measurements.
#pragma once

#include "run/session.h"

namespace stoker {

class RandomBatch {
 public:
  RandomBatch(const nn::Model& model, const Spec& target, std::int64_t count);
  [[nodiscard]] BatchView view() const { return {count_, items_, targets_}; }

 private:
  std::int64_t count_;
  std::vector<float> items_;
  std::vector<std::byte> targets_;  // class numbers, or zeros where the targets are none
};

}  // namespace stoker
