#include "backends/cpu/kernels/depthwise_window.h"

#include <algorithm>

namespace stoker::cpu {

AxisTaps AxisTaps::forward(std::int64_t source, std::int64_t output, std::int64_t window, std::int64_t stride,
                           std::int64_t pad, std::int64_t dilation) {
  AxisTaps taps;
  for (std::int64_t i = 0; i < output; ++i) {
    for (std::int64_t k = 0; k < window; ++k) {
      const std::int64_t position = i * stride - pad + k * dilation;
      if (position >= 0 && position < source) taps.taps_.push_back({.source = position, .k = static_cast<int>(k)});
    }
    taps.begin_.push_back(static_cast<int>(taps.taps_.size()));
  }
  return taps;
}

AxisTaps AxisTaps::transposed(std::int64_t source, std::int64_t output, std::int64_t window, std::int64_t stride,
                              std::int64_t pad, std::int64_t dilation) {
  AxisTaps taps;
  for (std::int64_t i = 0; i < output; ++i) {
    for (std::int64_t k = window - 1; k >= 0; --k) {
      const std::int64_t scaled = i + pad - k * dilation;
      if (scaled >= 0 && scaled % stride == 0 && scaled / stride < source)
        taps.taps_.push_back({.source = scaled / stride, .k = static_cast<int>(k)});
    }
    taps.begin_.push_back(static_cast<int>(taps.taps_.size()));
  }
  return taps;
}

std::vector<TapRun> make_runs(const AxisTaps& axis, std::int64_t phases, std::int64_t source_step) {
  std::vector<TapRun> runs;
  const auto same_window = [](const Tap& a, const Tap& b) { return a.k == b.k; };
  for (std::int64_t phase = 0; phase < phases; ++phase) {
    bool open = false;
    for (std::int64_t i = phase; i < axis.outputs(); i += phases) {
      const std::span<const Tap> taps = axis.at(i);
      if (open && std::ranges::equal(taps, runs.back().taps, same_window)) {
        ++runs.back().count;
        continue;
      }
      runs.push_back({.first = i, .count = 1, .step = phases, .source_step = source_step, .taps = taps});
      open = true;
    }
  }
  return runs;
}

void RowSource::prepare(std::int64_t image, std::int64_t low, std::int64_t high, std::int64_t limit) {
  if (image != image_) next_ = low;
  image_ = image;
  next_ = std::max(next_, low);
  if (expr_.is_plain() || high < next_) return;
  const std::int64_t end = std::min(limit + 1, low + capacity_);
  const std::int64_t channels = expr_.tensor_channels();
  while (next_ < end) {
    const std::int64_t rows = std::min(end - next_, capacity_ - next_ % capacity_);  // up to where the ring turns
    evaluate_rect(expr_, {.row = (image * height_ + next_) * width_, .rows = rows * width_, .channels = channels},
                  buffer_ + next_ % capacity_ * width_ * channels, channels, tiles_);
    next_ += rows;
  }
}

std::int64_t ring_rows(std::int64_t height, std::int64_t row_floats, std::int64_t span) {
  constexpr std::int64_t kRingFloats = 32 * 1024;
  return std::clamp(kRingFloats / std::max<std::int64_t>(row_floats, 1), span + 1, std::max(height, span + 1));
}

}  // namespace stoker::cpu
