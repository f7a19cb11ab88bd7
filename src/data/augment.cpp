#include "data/augment.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/keyed_random.h"

namespace stoker {
namespace {

// out[y][x] = in[y + dy][x + dx], mirrored afterwards if `mirror`; zero where `in` has no such pixel.
struct Move {
  std::int64_t dy = 0;
  std::int64_t dx = 0;
  bool mirror = false;
};

Move draw_move(const Augment& augment, const AugmentKey& key) {
  Random random = keyed_random(key.seed, Purpose::augment, static_cast<std::uint64_t>(key.epoch),
                               static_cast<std::uint64_t>(key.sample));
  const auto draw_shift = [&] {
    return static_cast<std::int64_t>(random.below(2 * static_cast<std::uint64_t>(augment.shift) + 1)) - augment.shift;
  };
  Move move;
  // Always drawn in this order, so that switching one off leaves the others as they were.
  move.dy = draw_shift();
  move.dx = draw_shift();
  move.mirror = random.below(2) == 1 && augment.flip;
  return move;
}

void move_pixels(const Move& move, const Shape& shape, std::span<const float> in, std::span<float> out) {
  const std::int64_t height = shape[0];
  const std::int64_t width = shape[1];
  const std::int64_t channels = shape[2];
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      const std::int64_t from_y = y + move.dy;
      const std::int64_t from_x = (move.mirror ? width - 1 - x : x) + move.dx;
      const bool inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
      const auto to = out.begin() + (y * width + x) * channels;
      if (inside) {
        std::copy_n(in.begin() + (from_y * width + from_x) * channels, channels, to);
      } else {
        std::fill_n(to, channels, 0.0F);
      }
    }
  }
}

void normalise(const Augment& augment, std::span<float> item) {
  const std::size_t channels = augment.mean.size();
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t i = c; i < item.size(); i += channels) {
      item[i] = (item[i] - augment.mean[c]) / augment.deviation[c];
    }
  }
}

}  // namespace

void check_augment(const Augment& augment, const Shape& item_shape) {
  require(augment.shift >= 0, Code::bad_argument, "augment: a shift of ", augment.shift, " pixels");
  require((augment.shift == 0 && !augment.flip) || item_shape.rank() == 3, Code::bad_argument,
          "augment: shift and flip need items [H,W,C], these are ", item_shape);
  require(augment.shift == 0 || (augment.shift < item_shape[0] && augment.shift < item_shape[1]), Code::bad_argument,
          "augment: a shift of ", augment.shift, " pixels moves items of ", item_shape, " out of sight");
  const std::size_t count = augment.mean.size();
  require(count == augment.deviation.size(), Code::bad_argument, "augment: ", count, " means but ",
          augment.deviation.size(), " deviations");
  require(count <= 1 || static_cast<std::int64_t>(count) == item_shape[-1], Code::bad_argument, "augment: ", count,
          " means for items of ", item_shape);
  const auto usable = [](float d) { return std::isfinite(d) && d > 0; };
  require(std::ranges::all_of(augment.deviation, usable), Code::bad_argument, "augment: deviations must be above zero");
}

void apply(const Augment& augment, const Shape& item_shape, const AugmentKey& key, std::span<float> item,
           std::span<float> scratch) {
  if (augment.shift > 0 || augment.flip) {
    std::ranges::copy(item, scratch.begin());
    move_pixels(draw_move(augment, key), item_shape, scratch, item);
  }
  normalise(augment, item);
}

}  // namespace stoker
