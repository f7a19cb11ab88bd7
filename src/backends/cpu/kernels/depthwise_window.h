// Which source pixels each output pixel of a windowed op reads, and rows of a source after its prologue.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/cpu/kernels/tile.h"
#include "graph/attrs.h"

namespace stoker::cpu {

struct Tap {
  std::int64_t source = 0;  // position along the axis
  int k = 0;                // position in the window
};

// The taps of every output position along one axis; those that fall into the padding are left out.
class AxisTaps {
 public:
  AxisTaps() = default;
  // source = output * stride - pad + k * dilation.
  static AxisTaps forward(std::int64_t source, std::int64_t output, std::int64_t window, std::int64_t stride,
                          std::int64_t pad, std::int64_t dilation);
  // The transposed relation: output = source * stride - pad + k * dilation.
  static AxisTaps transposed(std::int64_t source, std::int64_t output, std::int64_t window, std::int64_t stride,
                             std::int64_t pad, std::int64_t dilation);

  [[nodiscard]] std::span<const Tap> at(std::int64_t output) const {
    const auto first = static_cast<std::size_t>(begin_[static_cast<std::size_t>(output)]);
    const auto last = static_cast<std::size_t>(begin_[static_cast<std::size_t>(output) + 1]);
    return std::span(taps_).subspan(first, last - first);
  }
  [[nodiscard]] std::int64_t outputs() const { return static_cast<std::int64_t>(begin_.size()) - 1; }

 private:
  std::vector<Tap> taps_;
  std::vector<int> begin_ = {0};
};

// Neighbouring outputs first, first + step, ... (`count` of them) with the same window positions, whose sources move
// by source_step.
struct TapRun {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t step = 1;
  std::int64_t source_step = 0;
  std::span<const Tap> taps;  // of the first
};

// Cuts an axis into runs: outputs of each residue modulo `phases` apart (a transposed axis has its stride of them).
[[nodiscard]] std::vector<TapRun> make_runs(const AxisTaps& axis, std::int64_t phases, std::int64_t source_step);

// Rows [W * C] of images [N, H, W, C] after a prologue; a plain tensor is read where it stands. One for each task.
class RowSource {
 public:
  // `buffer` holds `capacity` rows, for a prologue.
  RowSource(const TileExpr& expr, std::int64_t height, std::int64_t width, float* buffer, std::int64_t capacity,
            std::byte* tiles)
      : expr_(expr), height_(height), width_(width), buffer_(buffer), capacity_(capacity), tiles_(tiles) {}

  // Makes rows [low, high] of the image ready (at most `capacity` of them); rows up to `limit` will be asked for next.
  void prepare(std::int64_t image, std::int64_t low, std::int64_t high, std::int64_t limit);
  [[nodiscard]] const float* row(std::int64_t y) const {
    const std::int64_t floats = width_ * expr_.tensor_channels();
    return expr_.is_plain() ? expr_.plain_data() + (image_ * height_ + y) * floats : buffer_ + y % capacity_ * floats;
  }

 private:
  const TileExpr& expr_;
  std::int64_t height_;
  std::int64_t width_;
  float* buffer_;
  std::int64_t capacity_;
  std::byte* tiles_;
  std::int64_t image_ = -1;
  std::int64_t next_ = 0;  // the first row not yet there
};

// Rows that a ring should hold, for a window that spans `span` rows: several at once, as small rectangles cost more.
[[nodiscard]] std::int64_t ring_rows(std::int64_t height, std::int64_t row_floats, std::int64_t span);

}  // namespace stoker::cpu
