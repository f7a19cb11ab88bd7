// When Winograd is used, and how tiles lie in images.
#include <algorithm>

#include "backends/cpu/kernels/winograd.h"

namespace stoker::cpu {

std::int64_t winograd_size(const ConvSizes& s, const Node& node, ConvPart) {
  const bool fits = s.kh == 3 && s.kw == 3 && s.stride_h == 1 && s.stride_w == 1 && s.dilation_h == 1 &&
                    s.dilation_w == 1 && s.groups == 1 && s.pad_top <= 2 && s.pad_left <= 2 && s.c_in % 16 == 0 &&
                    s.c_out % 16 == 0 && s.oh > 0 && s.ow > 0;
  if (!fits) return 0;
  if (node.attrs.has("winograd")) return 2 * std::clamp<std::int64_t>(node.attrs.integer("winograd"), 0, 2);
  if (std::min(s.c_in, s.c_out) < 32) return 0;
  // Products a channel pair, weighed by the measured cost of one (an AVX-512 Xeon, 64 to 512 channels): transforms make
  // them dearer. F(4x4) errs by up to 1e-5 of the largest result, F(2x2) no more than the plain kernel.
  const auto tiles = [&s](std::int64_t m) { return ceil_div(s.oh, m) * ceil_div(s.ow, m); };
  const std::int64_t plain = 9 * s.oh * s.ow * 10;
  const std::int64_t two = 16 * tiles(2) * 14;
  const std::int64_t four = 36 * tiles(4) * 17;
  if (plain <= std::min(two, four)) return 0;
  return two <= four ? 2 : 4;
}

std::int64_t WinogradTiles::block_rows(std::int64_t tiles) const {
  return std::clamp<std::int64_t>((tiles + columns() / 2) / columns(), 1, rows());
}

WinogradTiles::Span WinogradTiles::result_rows(std::int64_t row, std::int64_t count) const {
  const auto start = [this](std::int64_t r) { return r / rows_per_image() * h + r % rows_per_image() * m; };
  const std::int64_t last = row + count - 1;
  const std::int64_t end = std::min(start(last) + m, (last / rows_per_image() + 1) * h);
  return {.first = start(row), .count = end - start(row)};
}

WinogradTiles::Span WinogradTiles::source_rows(std::int64_t row, std::int64_t count, std::int64_t source_h) const {
  const auto at = [&](std::int64_t r, std::int64_t offset) {
    const std::int64_t inside = std::clamp<std::int64_t>(r % rows_per_image() * m - pad_top + offset, 0, source_h - 1);
    return r / rows_per_image() * source_h + inside;
  };
  const std::int64_t first = at(row, 0);
  return {.first = first, .count = at(row + count - 1, m + 1) - first + 1};
}

WinogradTiles::Rows WinogradTiles::most_rows(std::int64_t count, std::int64_t source_h) const {
  Rows most;
  for (std::int64_t row = 0; row < rows(); ++row) {
    const std::int64_t some = std::min(count, rows() - row);
    most.source = std::max(most.source, source_rows(row, some, source_h).count);
    most.result = std::max(most.result, result_rows(row, some).count);
  }
  return most;
}

void WinogradTiles::source_table(const WinogradImage& image, std::int64_t row, std::int64_t column,
                                 std::int64_t channel, const float* zeros, const float** table) const {
  const std::int64_t h0 = row % rows_per_image() * m - pad_top;
  const std::int64_t w0 = column * m - pad_left;
  const std::int64_t image_row = row / rows_per_image() * image.h - image.first;
  for (std::int64_t i = 0; i < a(); ++i) {
    const bool row_inside = h0 + i >= 0 && h0 + i < image.h;
    for (std::int64_t j = 0; j < a(); ++j) {
      const bool inside = row_inside && w0 + j >= 0 && w0 + j < image.w;
      table[i * a() + j] =
          inside ? image.data + ((image_row + h0 + i) * image.w + w0 + j) * image.stride + channel : zeros;
    }
  }
}

WinogradImage winograd_source(const GemmOperand& operand, const WinogradTiles& tiles, std::int64_t row,
                              std::int64_t count, const WinogradPart& part, float* buffer, std::byte* scratch) {
  WinogradImage image{.h = part.h, .w = part.w};
  if (operand.stands()) {
    image.data = operand.data() + part.channel;
    image.stride = operand.channels();
    return image;
  }
  const WinogradTiles::Span span = tiles.source_rows(row, count, part.h);
  operand.load({span.first * part.w, span.count * part.w, 1, part.channel, part.channels}, buffer, part.channels,
               scratch);
  image.data = buffer;
  image.first = span.first;
  image.stride = part.channels;
  return image;
}

void winograd_transform_source(const WinogradTiles& tiles, const WinogradImage& image, std::int64_t row,
                               std::int64_t count, std::int64_t channel, std::int64_t channels, const float* zeros,
                               float* dst, std::int64_t plane, std::int64_t stride) {
  const float* from[kWinogradMaxSquare];
  float* to[kWinogradMaxSquare];
  for (std::int64_t t = 0; t < count * tiles.columns(); ++t) {
    tiles.source_table(image, row + t / tiles.columns(), t % tiles.columns(), channel, zeros, from);
    for (std::int64_t e = 0; e < tiles.square(); ++e) to[e] = dst + e * plane + t * stride;
    winograd_transform(WinogradTransform::input, tiles.m, from, to, channels);
  }
}

}  // namespace stoker::cpu
