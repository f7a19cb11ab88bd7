#include "data/glyphs.h"

#include <algorithm>
#include <iterator>

namespace stoker {
namespace {

template <typename... Points>
constexpr PenStroke stroke(Points... points) {
  return {sizeof...(Points), {points...}};
}

using P = PenPoint;

// Sorted by digit.
constexpr Glyph kGlyphs[] = {
    {0,
     1,
     {stroke(P{.55F, .00F}, P{.22F, .12F}, P{.04F, .48F}, P{.17F, .86F}, P{.48F, 1.0F}, P{.80F, .87F}, P{.96F, .50F},
             P{.84F, .13F}, P{.50F, .00F})}},
    {0,
     1,
     {stroke(P{.66F, .08F}, P{.36F, .02F}, P{.08F, .30F}, P{.05F, .70F}, P{.35F, .99F}, P{.74F, .90F}, P{.95F, .58F},
             P{.90F, .22F}, P{.60F, .01F}, P{.40F, .10F})}},
    {1, 1, {stroke(P{.52F, .00F}, P{.50F, .50F}, P{.48F, 1.0F})}},
    {1, 1, {stroke(P{.26F, .24F}, P{.56F, .00F}, P{.56F, .00F}, P{.55F, .50F}, P{.54F, 1.0F})}},
    {1, 2, {stroke(P{.26F, .22F}, P{.54F, .00F}, P{.54F, .00F}, P{.53F, 1.0F}), stroke(P{.22F, 1.0F}, P{.86F, .99F})}},
    {2,
     1,
     {stroke(P{.08F, .26F}, P{.24F, .05F}, P{.56F, .00F}, P{.86F, .15F}, P{.86F, .40F}, P{.62F, .64F}, P{.34F, .82F},
             P{.05F, 1.0F}, P{.05F, 1.0F}, P{.52F, .97F}, P{1.0F, .99F})}},
    {2,
     1,
     {stroke(P{.10F, .22F}, P{.40F, .00F}, P{.80F, .10F}, P{.82F, .38F}, P{.52F, .70F}, P{.22F, .96F}, P{.05F, .92F},
             P{.12F, .78F}, P{.38F, .86F}, P{.68F, 1.0F}, P{1.0F, .90F})}},
    {3,
     1,
     {stroke(P{.08F, .13F}, P{.40F, .00F}, P{.80F, .09F}, P{.82F, .31F}, P{.60F, .45F}, P{.36F, .48F}, P{.36F, .48F},
             P{.68F, .53F}, P{.93F, .71F}, P{.82F, .93F}, P{.44F, 1.0F}, P{.05F, .88F})}},
    {3,
     1,
     {stroke(P{.10F, .03F}, P{.88F, .02F}, P{.88F, .02F}, P{.44F, .40F}, P{.44F, .40F}, P{.78F, .47F}, P{.94F, .70F},
             P{.78F, .95F}, P{.40F, 1.0F}, P{.05F, .88F})}},
    {4,
     2,
     {stroke(P{.22F, .00F}, P{.12F, .30F}, P{.06F, .56F}, P{.06F, .56F}, P{.50F, .57F}, P{.96F, .53F}),
      stroke(P{.76F, .04F}, P{.72F, .50F}, P{.67F, 1.0F})}},
    {4,
     2,
     {stroke(P{.68F, .00F}, P{.05F, .66F}, P{.05F, .66F}, P{.98F, .65F}),
      stroke(P{.68F, .00F}, P{.69F, .50F}, P{.69F, 1.0F})}},
    {5,
     2,
     {stroke(P{.21F, .02F}, P{.15F, .43F}, P{.15F, .43F}, P{.46F, .36F}, P{.84F, .46F}, P{.92F, .70F}, P{.76F, .94F},
             P{.40F, 1.0F}, P{.05F, .90F}),
      stroke(P{.21F, .02F}, P{.92F, .00F})}},
    {5,
     1,
     {stroke(P{.88F, .02F}, P{.26F, .03F}, P{.26F, .03F}, P{.14F, .46F}, P{.14F, .46F}, P{.50F, .38F}, P{.88F, .53F},
             P{.88F, .82F}, P{.50F, 1.0F}, P{.05F, .90F})}},
    {6,
     1,
     {stroke(P{.76F, .00F}, P{.40F, .20F}, P{.12F, .55F}, P{.15F, .88F}, P{.50F, 1.0F}, P{.86F, .86F}, P{.82F, .61F},
             P{.50F, .52F}, P{.17F, .70F})}},
    {6,
     1,
     {stroke(P{.86F, .10F}, P{.60F, .00F}, P{.28F, .16F}, P{.07F, .50F}, P{.12F, .85F}, P{.46F, 1.0F}, P{.86F, .88F},
             P{.88F, .65F}, P{.55F, .53F}, P{.14F, .72F})}},
    {7, 1, {stroke(P{.05F, .05F}, P{.50F, .04F}, P{.95F, .02F}, P{.95F, .02F}, P{.62F, .45F}, P{.38F, 1.0F})}},
    {7,
     2,
     {stroke(P{.05F, .05F}, P{.50F, .04F}, P{.95F, .02F}, P{.95F, .02F}, P{.62F, .45F}, P{.40F, 1.0F}),
      stroke(P{.24F, .50F}, P{.86F, .47F})}},
    {7,
     1,
     {stroke(P{.06F, .20F}, P{.09F, .04F}, P{.09F, .04F}, P{.92F, .04F}, P{.92F, .04F}, P{.70F, .50F}, P{.58F, 1.0F})}},
    {8,
     1,
     {stroke(P{.86F, .14F}, P{.50F, .00F}, P{.14F, .14F}, P{.20F, .36F}, P{.55F, .51F}, P{.90F, .73F}, P{.76F, .95F},
             P{.40F, 1.0F}, P{.08F, .83F}, P{.20F, .62F}, P{.55F, .46F}, P{.84F, .30F}, P{.86F, .12F})}},
    {8,
     2,
     {stroke(P{.50F, .46F}, P{.18F, .34F}, P{.20F, .10F}, P{.50F, .00F}, P{.80F, .10F}, P{.82F, .34F}, P{.50F, .46F}),
      stroke(P{.50F, .46F}, P{.10F, .60F}, P{.10F, .88F}, P{.50F, 1.0F}, P{.90F, .88F}, P{.90F, .60F}, P{.50F, .46F})}},
    {9,
     1,
     {stroke(P{.86F, .18F}, P{.55F, .00F}, P{.16F, .11F}, P{.08F, .36F}, P{.36F, .52F}, P{.70F, .42F}, P{.88F, .14F},
             P{.88F, .14F}, P{.85F, .55F}, P{.78F, 1.0F})}},
    {9,
     1,
     {stroke(P{.86F, .20F}, P{.55F, .00F}, P{.16F, .10F}, P{.10F, .36F}, P{.40F, .52F}, P{.76F, .40F}, P{.90F, .16F},
             P{.93F, .52F}, P{.80F, .90F}, P{.44F, 1.0F}, P{.12F, .88F})}},
};

}  // namespace

std::span<const Glyph> glyphs_of(int digit) {
  const auto is_before = [](const Glyph& glyph, int wanted) { return glyph.digit < wanted; };
  const Glyph* first = std::lower_bound(std::begin(kGlyphs), std::end(kGlyphs), digit, is_before);
  return {first, std::lower_bound(first, std::end(kGlyphs), digit + 1, is_before)};
}

}  // namespace stoker
