#include "data/digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "data/glyphs.h"
#include "data/keyed_random.h"

namespace stoker {
namespace {

constexpr int kDigits = 10;
constexpr int kStepsPerCurve = 6;  // straight pieces between two points of a stroke
constexpr float kPi = std::numbers::pi_v<float>;

// How one drawing differs from the glyph: drawn once an item.
struct Hand {
  // pixel = centre + matrix * (glyph point - 0.5)
  float xx, xy, yx, yy;
  float centre_x, centre_y;
  // A slow wave bends the strokes: amplitudes in glyph units, phases and directions.
  float wave_x, wave_y, phase_x, phase_y, turn_x, turn_y;
  float half_width;  // of the pen, pixels
  float pressure;    // how much it changes along a stroke
  float softness;    // width of the edge, pixels
  float ink;         // brightness of the stroke
  float grain;       // noise of every pixel
};

Hand draw_hand(Random& random) {
  const float height = random.uniform(16.5F, 21.5F);
  const float width = height * random.uniform(0.50F, 0.82F);
  const float slant = random.uniform(-0.12F, 0.42F);  // most people lean to the right
  const float angle = random.uniform(-0.17F, 0.17F);
  const float c = std::cos(angle);
  const float s = std::sin(angle);
  Hand hand{};
  hand.xx = c * width;
  hand.xy = -(c * slant + s) * height;
  hand.yx = s * width;
  hand.yy = (c - s * slant) * height;
  const float middle = (kDigitSide - 1) / 2.0F;
  hand.centre_x = middle + random.uniform(-2.5F, 2.5F);
  hand.centre_y = middle + random.uniform(-2.5F, 2.5F);
  hand.wave_x = random.uniform(0.0F, 0.085F);
  hand.wave_y = random.uniform(0.0F, 0.060F);
  hand.phase_x = random.uniform(0.0F, 2 * kPi);
  hand.phase_y = random.uniform(0.0F, 2 * kPi);
  hand.turn_x = random.uniform(-1.0F, 1.0F);
  hand.turn_y = random.uniform(-1.0F, 1.0F);
  hand.half_width = random.uniform(0.65F, 1.75F);
  hand.pressure = random.uniform(-0.3F, 0.3F);
  hand.softness = random.uniform(0.9F, 1.6F);
  hand.ink = random.uniform(0.70F, 1.0F);
  hand.grain = random.uniform(0.0F, 0.10F);
  return hand;
}

PenPoint place(const Hand& hand, PenPoint p) {
  const float x = p.x - 0.5F + hand.wave_x * std::sin(kPi * (1.6F * p.y + hand.turn_x * p.x) + hand.phase_x);
  const float y = p.y - 0.5F + hand.wave_y * std::sin(kPi * (1.6F * p.x + hand.turn_y * p.y) + hand.phase_y);
  return {hand.centre_x + hand.xx * x + hand.xy * y, hand.centre_y + hand.yx * x + hand.yy * y};
}

// Catmull-Rom: the curve from b to c, with a and d as their neighbours.
PenPoint on_curve(PenPoint a, PenPoint b, PenPoint c, PenPoint d, float t) {
  const auto blend = [t](float p, float q, float r, float s) {
    return q + 0.5F * t * (r - p + t * (2 * p - 5 * q + 4 * r - s + t * (3 * (q - r) + s - p)));
  };
  return {blend(a.x, b.x, c.x, d.x), blend(a.y, b.y, c.y, d.y)};
}

float distance_to_segment(PenPoint p, PenPoint a, PenPoint b) {
  const float dx = b.x - a.x;
  const float dy = b.y - a.y;
  const float length2 = dx * dx + dy * dy;
  const float along = length2 > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length2, 0.0F, 1.0F) : 0.0F;
  const float x = p.x - a.x - along * dx;
  const float y = p.y - a.y - along * dy;
  return std::sqrt(x * x + y * y);
}

class Canvas {
 public:
  // A straight piece of the stroke, with soft edges; where pieces meet the darker one wins, so that joints do not show.
  void draw(PenPoint a, PenPoint b, float half_width, float softness) {
    const float reach = half_width + softness;
    const auto [first_x, last_x] = pixels_between(std::min(a.x, b.x) - reach, std::max(a.x, b.x) + reach);
    const auto [first_y, last_y] = pixels_between(std::min(a.y, b.y) - reach, std::max(a.y, b.y) + reach);
    for (int y = first_y; y <= last_y; ++y) {
      for (int x = first_x; x <= last_x; ++x) {
        const PenPoint pixel{static_cast<float>(x), static_cast<float>(y)};
        const float inside = (half_width - distance_to_segment(pixel, a, b)) / softness + 0.5F;
        float& value = values_[static_cast<std::size_t>(y * kDigitSide + x)];
        value = std::max(value, std::min(inside, 1.0F));
      }
    }
  }

  void develop(const Hand& hand, Random& random, std::span<std::byte> pixels) const {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const std::uint32_t word = random.bits();
      // The sum of two uniform numbers: near enough to a bell, without a logarithm a pixel.
      const float noise = static_cast<float>((word & 0xFFFFU) + (word >> 16)) * 0x1p-16F - 1.0F;
      const float value = std::clamp(hand.ink * values_[i] + hand.grain * 2 * noise, 0.0F, 1.0F);
      pixels[i] = static_cast<std::byte>(static_cast<int>(value * 255.0F + 0.5F));
    }
  }

 private:
  static std::pair<int, int> pixels_between(float low, float high) {
    return {std::max(0, static_cast<int>(std::ceil(low))), std::min(kDigitSide - 1, static_cast<int>(high))};
  }

  std::array<float, kDigitPixels> values_{};
};

void draw_stroke(Canvas& canvas, const PenStroke& stroke, const Hand& hand) {
  const auto point = [&](int i) { return stroke.points[static_cast<std::size_t>(std::clamp(i, 0, stroke.count - 1))]; };
  const int pieces = (stroke.count - 1) * kStepsPerCurve;
  PenPoint from = place(hand, point(0));
  for (int piece = 1; piece <= pieces; ++piece) {
    const int i = (piece - 1) / kStepsPerCurve;
    const float t = static_cast<float>(piece - i * kStepsPerCurve) / kStepsPerCurve;
    const PenPoint to = place(hand, on_curve(point(i - 1), point(i), point(i + 1), point(i + 2), t));
    const float progress = static_cast<float>(piece) / static_cast<float>(pieces);
    canvas.draw(from, to, hand.half_width * (1 + hand.pressure * (2 * progress - 1)), hand.softness);
    from = to;
  }
}

// Splits never share a stream, so that no test item is a training item.
std::uint64_t stream_of(Split split, std::int64_t index) {
  return static_cast<std::uint64_t>(index) << 1 | static_cast<std::uint64_t>(split);
}

}  // namespace

int digit_label(std::uint64_t seed, Split split, std::int64_t index) {
  std::array<int, kDigits> order{};
  std::iota(order.begin(), order.end(), 0);
  Random random = keyed_random(seed, Purpose::digit_labels, stream_of(split, index / kDigits), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order[static_cast<std::size_t>(index % kDigits)];
}

void draw_digit(std::uint64_t seed, Split split, std::int64_t index, std::span<std::byte> pixels) {
  require(index >= 0 && pixels.size() == kDigitPixels, Code::bad_argument, "digits: item ", index, " into ",
          pixels.size(), " pixels");
  Random random = keyed_random(seed, Purpose::digit_item, stream_of(split, index), 0);
  const auto glyphs = glyphs_of(digit_label(seed, split, index));
  const Glyph& glyph = glyphs[static_cast<std::size_t>(random.below(glyphs.size()))];
  const Hand hand = draw_hand(random);
  Canvas canvas;
  for (int i = 0; i < glyph.count; ++i) draw_stroke(canvas, glyph.strokes[static_cast<std::size_t>(i)], hand);
  canvas.develop(hand, random, pixels);
}

DatasetPtr make_digits(std::int64_t size, Split split, std::uint64_t seed) {
  require(size > 0, Code::bad_argument, "digits: a data set of ", size, " items");
  const auto pixels = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(size) * kDigitPixels);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    draw_digit(seed, split, i, std::span(*pixels).subspan(at * kDigitPixels, kDigitPixels));
    labels[at] = digit_label(seed, split, i);
  }
  return make_pixels(pixels, *pixels, std::move(labels), {kDigitSide, kDigitSide, 1}, kDigits, "digits");
}

}  // namespace stoker
