// digits: drawings of 0 to 9 as a pen would make them, varied in style, slant, size, place, thickness and noise.
// Built in, so that the first training needs no download. Every item follows from (seed, split, index) alone.
#pragma once

#include <cstdint>
#include <span>

#include "data/dataset.h"

namespace stoker {

constexpr int kDigitSide = 28;
constexpr int kDigitPixels = kDigitSide * kDigitSide;

enum class Split : std::uint32_t { train = 0, test = 1 };

// Classes are balanced: each ten items from a multiple of ten on hold every digit once.
[[nodiscard]] int digit_label(std::uint64_t seed, Split split, std::int64_t index);

// Draws item `index`, light on dark, row by row; `pixels` has kDigitPixels.
void draw_digit(std::uint64_t seed, Split split, std::int64_t index, std::span<std::byte> pixels);

// `size` items of shape [28, 28, 1], drawn now and kept as bytes.
[[nodiscard]] DatasetPtr make_digits(std::int64_t size, Split split, std::uint64_t seed);

}  // namespace stoker
