// The ways to write each digit that `digits` knows, as pen strokes through points.
#pragma once

#include <array>
#include <span>

namespace stoker {

struct PenPoint {
  float x = 0;  // 0 left .. 1 right
  float y = 0;  // 0 top .. 1 bottom
};

struct PenStroke {
  static constexpr int kMostPoints = 13;
  int count = 0;
  std::array<PenPoint, kMostPoints> points{};  // a smooth curve passes through them; a point given twice is a corner
};

struct Glyph {
  static constexpr int kMostStrokes = 2;
  int digit = 0;
  int count = 0;
  std::array<PenStroke, kMostStrokes> strokes{};
};

// All glyphs of a digit (0 to 9).
[[nodiscard]] std::span<const Glyph> glyphs_of(int digit);

}  // namespace stoker
