// Winograd's convolution for 3x3 kernels of stride 1: tiles of m x m results cost (m + 2)^2 products a channel pair
// instead of 9 m^2. Both directions share this cut of images into tiles.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/conv2d.h"
#include "backends/cpu/kernels/gemm_plan.h"
#include "backends/cpu/kernels/winograd_transform.h"

namespace stoker::cpu {

// The m to use for this node: 0 (none), 2 or 4. Attribute `winograd` = 0, 1 or 2 asks for one of them.
[[nodiscard]] std::int64_t winograd_size(const ConvSizes& sizes, const Node& node, ConvPart part);

[[nodiscard]] Kernel prepare_winograd(const KernelContext& context, ConvPart part, std::int64_t m);
[[nodiscard]] std::int64_t winograd_workspace(const Graph& graph, const Node& node, ConvPart part, std::int64_t m,
                                              int threads);

// Images [n, h, w] of channels, or the part of it that a worker has computed.
struct WinogradImage {
  const float* data = nullptr;  // of image row `first`, counted over all images
  std::int64_t first = 0;
  std::int64_t h = 0, w = 0;
  std::int64_t stride = 0;  // floats from a pixel to the next
};

inline constexpr std::int64_t kWinogradMaxSquare = 36;

// Results [n, h, w] cut into m x m tiles; tile rows are counted over all images. A block is some whole tile rows.
struct WinogradTiles {
  std::int64_t m = 0;
  std::int64_t n = 0, h = 0, w = 0;
  std::int64_t pad_top = 0, pad_left = 0;  // of the source image

  [[nodiscard]] std::int64_t a() const { return m + 2; }
  [[nodiscard]] std::int64_t square() const { return a() * a(); }
  [[nodiscard]] std::int64_t rows_per_image() const { return ceil_div(h, m); }
  [[nodiscard]] std::int64_t rows() const { return n * rows_per_image(); }
  [[nodiscard]] std::int64_t columns() const { return ceil_div(w, m); }
  // How many tile rows make a block of about `tiles` tiles.
  [[nodiscard]] std::int64_t block_rows(std::int64_t tiles) const;

  // Rows of the results, or of the source image (of source_h rows), that tile rows [row, row + count) cover.
  struct Span {
    std::int64_t first = 0, count = 0;  // counted over all images
  };
  [[nodiscard]] Span result_rows(std::int64_t row, std::int64_t count) const;
  [[nodiscard]] Span source_rows(std::int64_t row, std::int64_t count, std::int64_t source_h) const;

  // The most rows of either that a block of `count` tile rows covers.
  struct Rows {
    std::int64_t source = 0, result = 0;
  };
  [[nodiscard]] Rows most_rows(std::int64_t count, std::int64_t source_h) const;

  // Points `table` to the a x a source pixels of a tile, from `channel` on; to `zeros` outside of the image.
  void source_table(const WinogradImage& image, std::int64_t row, std::int64_t column, std::int64_t channel,
                    const float* zeros, const float** table) const;
  // Points `table` to the m x m result pixels, `outside` beyond the edge. Pixel (i, w) of image row i, counted over all
  // images, is at data + ((i - first) * w + column) * stride.
  template <typename T>
  void result_table(T* data, std::int64_t first, std::int64_t stride, std::int64_t row, std::int64_t column, T* outside,
                    T** table) const {
    const std::int64_t h0 = row % rows_per_image() * m;
    const std::int64_t image_row = row / rows_per_image() * h + h0 - first;
    for (std::int64_t i = 0; i < m * m; ++i) {
      const std::int64_t w1 = column * m + i % m;
      const bool inside = h0 + i / m < h && w1 < w;
      table[i] = inside ? data + ((image_row + i / m) * w + w1) * stride : outside;
    }
  }
};

// Channels [channel, channel + channels) of an image of h rows of w pixels.
struct WinogradPart {
  std::int64_t h = 0, w = 0;
  std::int64_t channel = 0, channels = 0;
};
// That part of the source image of a block: in place, or computed into `buffer`.
[[nodiscard]] WinogradImage winograd_source(const GemmOperand& operand, const WinogradTiles& tiles, std::int64_t row,
                                            std::int64_t count, const WinogradPart& part, float* buffer,
                                            std::byte* scratch);
// Transforms a block's tiles, `channels` from `channel` on: element e of tile t goes to dst + e * plane + t * stride.
void winograd_transform_source(const WinogradTiles& tiles, const WinogradImage& image, std::int64_t row,
                               std::int64_t count, std::int64_t channel, std::int64_t channels, const float* zeros,
                               float* dst, std::int64_t plane, std::int64_t stride);

[[nodiscard]] Kernel prepare_winograd_weight_grad(const KernelContext& context, std::int64_t m);
[[nodiscard]] std::int64_t winograd_weight_grad_workspace(const Graph& graph, const Node& node, std::int64_t m,
                                                          int threads);

}  // namespace stoker::cpu
