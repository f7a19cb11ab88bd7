// What the convolution kernels share: the node's sizes, and the view of a convolution as a product. Images are NHWC,
// weights [KH, KW, Cin / groups, Cout].
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/gemm_plan.h"
#include "backends/cpu/kernels/tile.h"

namespace stoker::cpu {

// A convolution y = x * w whichever of the three the node computes.
struct ConvSizes {
  std::int64_t n = 0, h = 0, w = 0, c_in = 0;  // x
  std::int64_t oh = 0, ow = 0, c_out = 0;      // y
  std::int64_t kh = 0, kw = 0;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t pad_top = 0, pad_left = 0;
  std::int64_t dilation_h = 1, dilation_w = 1;
  std::int64_t groups = 1;

  [[nodiscard]] std::int64_t group_in() const { return c_in / groups; }
  [[nodiscard]] std::int64_t group_out() const { return c_out / groups; }
  // Whether it is a plain product in all three directions.
  [[nodiscard]] bool is_matmul() const {
    return kh == 1 && kw == 1 && stride_h == 1 && stride_w == 1 && oh == h && ow == w && pad_top == 0 &&
           pad_left == 0 && groups == 1;
  }
};

enum class ConvPart : std::uint8_t { forward, input_grad, weight_grad };
[[nodiscard]] ConvSizes conv_sizes(const Graph& graph, const Node& node, ConvPart part);

// A matrix whose rows are the pixels of a grid [n, gh, gw] and whose columns are (tap, channel): what each tap sees of
// the image [n, h, w, channels], zero outside of it. It is never stored; blocks of it are gathered.
class PatchMatrix {
 public:
  struct Tap {
    std::int64_t h = 0, w = 0;  // of the image, seen from grid pixel (0, 0)
  };
  struct Grid {
    std::int64_t n = 0, h = 0, w = 0;
    std::int64_t step_h = 1, step_w = 1;  // image pixels from one grid pixel to the next
  };

  PatchMatrix() = default;
  // Each group of channels has a matrix of its own.
  PatchMatrix(const Grid& grid, std::int64_t h, std::int64_t w, std::int64_t channels, std::int64_t groups,
              const std::vector<Tap>& taps);

  [[nodiscard]] std::int64_t rows() const { return grid_.n * grid_.h * grid_.w; }
  [[nodiscard]] std::int64_t columns() const { return columns_; }

  // The image's part that rows [row, row + count) see: in place, or for an operand that does not stand in memory in
  // `buffer`, window_floats(count) long, where compute_window() puts it.
  struct Window {
    const float* data = nullptr;
    std::int64_t first = 0, last = 0;  // image rows, counted over all images
  };
  // gather() may write this many floats beyond the end of its block.
  static constexpr std::int64_t kSlack = 16;
  [[nodiscard]] Window window(const GemmOperand& image, std::int64_t row, std::int64_t count, float* buffer) const;
  void compute_window(const GemmOperand& image, const Window& window, float* buffer, std::byte* tiles) const;
  [[nodiscard]] std::int64_t window_floats(std::int64_t count) const;

  // A block of a group's matrix.
  struct Block {
    std::int64_t group = 0;
    std::int64_t row = 0, rows = 0;
    std::int64_t column = 0, columns = 0;
  };
  void gather(const Window& window, const Block& block, float* dst, std::int64_t stride) const;

  // True if rows are pixels of the image as they stand: one tap that never leaves it. Then blocks are loaded from the
  // operand by strided(), prologue and all, without a window.
  [[nodiscard]] bool is_strided() const { return strided_; }
  void strided(const GemmOperand& image, const Block& block, float* dst, std::int64_t stride, std::byte* tiles) const;

 private:
  // Taps that are neighbours in memory: `taps` of them from (h, w), starting at `column`.
  struct Run {
    std::int64_t h = 0, w = 0;
    std::int64_t column = 0;
    std::int64_t taps = 0;
  };
  struct Place {  // of a grid row: its image, and the image row that tap (0, 0) sees
    std::int64_t image = 0, h = 0;
  };
  [[nodiscard]] Place place(std::int64_t grid_row) const;
  // The parts of a block's row that lie together in the image: `from` is relative to the pixel that tap (0, 0) sees.
  struct Piece {
    std::int64_t from = 0, to = 0, count = 0;
  };
  static constexpr int kMaxPieces = 32;
  // Fills `pieces` and returns their number, 0 if there are too many.
  int find_pieces(const Block& block, Piece* pieces) const;
  [[nodiscard]] bool is_inside(std::int64_t h, std::int64_t w) const {
    return h + min_h_ >= 0 && h + max_h_ < h_ && w + min_w_ >= 0 && w + max_w_ < w_;
  }
  // One pixel's part of a block, at the image's edge. `image_row` is row 0 of its image in `data`; tap (0, 0) sees
  // pixel (h, w).
  void gather_pixel(const float* data, std::int64_t image_row, std::int64_t h, std::int64_t w, const Block& block,
                    float* dst) const;

  Grid grid_;
  std::int64_t h_ = 0, w_ = 0, channels_ = 0, group_channels_ = 0, columns_ = 0;
  std::int64_t min_h_ = 0, max_h_ = 0, min_w_ = 0, max_w_ = 0;  // of the taps
  std::vector<Run> runs_;
  bool strided_ = false;
};

// What each output pixel of the convolution sees of x.
[[nodiscard]] PatchMatrix forward_patches(const ConvSizes& sizes);

// conv2d_weight_grad's KernelDef.
[[nodiscard]] Kernel prepare_conv2d_weight_grad(const KernelContext& context);
[[nodiscard]] std::int64_t conv2d_weight_grad_workspace(const Graph& graph, const Node& node, int threads);
[[nodiscard]] int conv2d_weight_grad_prologue_tensors(const Graph& graph, const Node& node, int operand);

}  // namespace stoker::cpu
