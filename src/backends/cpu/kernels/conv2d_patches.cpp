// Convolution sizes, and gathering blocks of the patch matrix straight from an NHWC image.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/conv2d.h"
#include "base/error.h"

namespace stoker::cpu {
namespace {

void copy_floats(const float* from, std::int64_t count, float* to) {
  if (count >= 32) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
  }
}

}  // namespace

ConvSizes conv_sizes(const Graph& graph, const Node& node, ConvPart part) {
  const auto shape_attr = [&](const char* name) { return Shape(std::span(node.attrs.ints(name))); };
  const Shape x = part == ConvPart::input_grad ? shape_attr("input_shape") : operand_shape(graph, node, 0);
  const Shape w = part == ConvPart::weight_grad ? shape_attr("weight_shape") : operand_shape(graph, node, 1);
  require(x.rank() == 4 && w.rank() == 4, Code::bad_argument, "conv2d: four dimensions wanted: ", x, " and ", w);
  const Ints& stride = node.attrs.ints("stride");
  const Ints& pad = node.attrs.ints("pad");
  const Ints& dilation = node.attrs.ints("dilation");
  ConvSizes s{.n = x[0], .h = x[1], .w = x[2], .c_in = x[3], .c_out = w[3], .kh = w[0], .kw = w[1]};
  s.stride_h = stride[0];
  s.stride_w = stride[1];
  s.pad_top = pad[0];
  s.pad_left = pad[1];
  s.dilation_h = dilation[0];
  s.dilation_w = dilation[1];
  s.groups = node.attrs.integer("groups");
  s.oh = (s.h + pad[0] + pad[2] - (s.kh - 1) * s.dilation_h - 1) / s.stride_h + 1;
  s.ow = (s.w + pad[1] + pad[3] - (s.kw - 1) * s.dilation_w - 1) / s.stride_w + 1;
  require(s.c_in == w[2] * s.groups && s.c_out % s.groups == 0, Code::bad_argument, "conv2d: channels do not fit: ", x,
          " and ", w, " in ", s.groups, " groups");
  return s;
}

PatchMatrix::PatchMatrix(const Grid& grid, std::int64_t h, std::int64_t w, std::int64_t channels, std::int64_t groups,
                         const std::vector<Tap>& taps)
    : grid_(grid), h_(h), w_(w), channels_(channels), group_channels_(channels / groups) {
  for (const Tap& tap : taps) {
    min_h_ = columns_ == 0 ? tap.h : std::min(min_h_, tap.h);
    max_h_ = columns_ == 0 ? tap.h : std::max(max_h_, tap.h);
    if (groups == 1 && !runs_.empty() && runs_.back().h == tap.h && runs_.back().w + runs_.back().taps == tap.w) {
      ++runs_.back().taps;
    } else {
      runs_.push_back({.h = tap.h, .w = tap.w, .column = columns_, .taps = 1});
    }
    columns_ += group_channels_;
  }
  strided_ = taps.size() == 1 && taps[0].h >= 0 && taps[0].w >= 0 && taps[0].h + (grid.h - 1) * grid.step_h < h &&
             taps[0].w + (grid.w - 1) * grid.step_w < w;
}

PatchMatrix forward_patches(const ConvSizes& s) {
  std::vector<PatchMatrix::Tap> taps;
  for (std::int64_t i = 0; i < s.kh * s.kw; ++i) {
    taps.push_back({.h = i / s.kw * s.dilation_h - s.pad_top, .w = i % s.kw * s.dilation_w - s.pad_left});
  }
  return {{s.n, s.oh, s.ow, s.stride_h, s.stride_w}, s.h, s.w, s.c_in, s.groups, taps};
}

PatchMatrix::Place PatchMatrix::place(std::int64_t grid_row) const {
  return {.image = grid_row / grid_.h, .h = grid_row % grid_.h * grid_.step_h};
}

PatchMatrix::Window PatchMatrix::window(const GemmOperand& image, std::int64_t row, std::int64_t count,
                                        float* buffer) const {
  if (image.stands()) return {.data = image.data()};
  const Place top = place(row / grid_.w);
  const Place bottom = place((row + count - 1) / grid_.w);
  return {.data = buffer,
          .first = top.image * h_ + std::clamp<std::int64_t>(top.h + min_h_, 0, h_ - 1),
          .last = bottom.image * h_ + std::clamp<std::int64_t>(bottom.h + max_h_, 0, h_ - 1)};
}

void PatchMatrix::compute_window(const GemmOperand& image, const Window& window, float* buffer,
                                 std::byte* tiles) const {
  if (image.stands()) return;
  image.load({window.first * w_, (window.last - window.first + 1) * w_, 1, 0, channels_}, buffer, channels_, tiles);
}

std::int64_t PatchMatrix::window_floats(std::int64_t count) const {
  const std::int64_t all = grid_.n * grid_.h;
  const std::int64_t spanned = ceil_div(count, grid_.w) + 1;  // grid rows
  std::int64_t rows = 0;
  for (std::int64_t first = 0; first < all; ++first) {
    const Place top = place(first);
    const Place bottom = place(std::min(first + spanned, all) - 1);
    const std::int64_t from = top.image * h_ + std::clamp<std::int64_t>(top.h + min_h_, 0, h_ - 1);
    rows = std::max(rows, bottom.image * h_ + std::clamp<std::int64_t>(bottom.h + max_h_, 0, h_ - 1) - from + 1);
  }
  return rows * w_ * channels_;
}

void PatchMatrix::gather_pixel(const float* data, std::int64_t image_row, std::int64_t h, std::int64_t w,
                               const Block& block, float* dst) const {
  const std::int64_t channel0 = block.group * group_channels_;
  const std::int64_t inside = channel0 + w_ * channels_;
  for (const Run& run : runs_) {
    const std::int64_t begin = std::max(block.column, run.column);
    const std::int64_t end = std::min(block.column + block.columns, run.column + run.taps * group_channels_);
    if (begin >= end) continue;
    float* to = dst + (begin - block.column);
    const std::int64_t ih = h + run.h;
    // Column c of the run is float offset + c of its image row; [low, high) of them are inside the image.
    const std::int64_t offset = (w + run.w) * channels_ + channel0 - run.column;
    const std::int64_t low = std::clamp(offset + begin, channel0, inside) - offset;
    const std::int64_t high = std::clamp(offset + end, channel0, inside) - offset;
    if (ih < 0 || ih >= h_ || low >= high) {
      std::fill(to, to + (end - begin), 0.0F);
      continue;
    }
    std::fill(to, to + (low - begin), 0.0F);
    copy_floats(data + (image_row + ih) * w_ * channels_ + offset + low, high - low, to + (low - begin));
    std::fill(to + (high - begin), to + (end - begin), 0.0F);
  }
}

void PatchMatrix::gather(const Window& window, const Block& block, float* dst, std::int64_t stride) const {
  std::int64_t grid_row = block.row / grid_.w;
  std::int64_t grid_column = block.row % grid_.w;
  Place at = place(grid_row);
  for (std::int64_t r = 0; r < block.rows; ++r) {
    gather_pixel(window.data, at.image * h_ - window.first, at.h, grid_column * grid_.step_w, block, dst + r * stride);
    if (++grid_column == grid_.w) {
      grid_column = 0;
      at = place(++grid_row);
    }
  }
}

void PatchMatrix::strided(const GemmOperand& image, const Block& block, float* dst, std::int64_t stride,
                          std::byte* tiles) const {
  for (std::int64_t r = 0; r < block.rows;) {
    const std::int64_t grid_column = (block.row + r) % grid_.w;
    const std::int64_t count = std::min(block.rows - r, grid_.w - grid_column);
    const Place at = place((block.row + r) / grid_.w);
    const std::int64_t pixel = (at.image * h_ + at.h + runs_[0].h) * w_ + grid_column * grid_.step_w + runs_[0].w;
    image.load({pixel, count, grid_.step_w, block.group * group_channels_ + block.column, block.columns},
               dst + r * stride, stride, tiles);
    r += count;
  }
}

}  // namespace stoker::cpu
