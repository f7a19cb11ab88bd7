// Simple augmentation: shift, horizontal flip, normalise. Keyed by (seed, epoch, sample), so that a sample looks the
// same whatever thread prepares it and in whatever order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/shape.h"

namespace stoker {

struct Augment {
  int shift = 0;            // pad with zeros and crop: up to this many pixels in each direction
  bool flip = false;        // left and right, every second time
  std::vector<float> mean;  // (x - mean) / deviation, after the others: one value, or one a channel; empty: none
  std::vector<float> deviation;

  [[nodiscard]] bool any() const { return shift > 0 || flip || !mean.empty(); }
  // For evaluation: what changes the values but not the picture.
  [[nodiscard]] Augment without_chance() const { return {.mean = mean, .deviation = deviation}; }
};

struct AugmentKey {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t sample = 0;
};

// An Error if `augment` cannot be done to such items.
void check_augment(const Augment& augment, const Shape& item_shape);

// Changes `item` in place. Assumes check_augment(); `scratch` has the same size.
void apply(const Augment& augment, const Shape& item_shape, const AugmentKey& key, std::span<float> item,
           std::span<float> scratch);

}  // namespace stoker
