#include "ops/window.h"

#include <algorithm>

#include "base/error.h"

namespace stoker::ops {
namespace {

template <std::size_t size>
std::array<std::int64_t, size> array_of(const Attrs& attrs, const char* name) {
  const Ints& list = attrs.ints(name);
  require(list.size() == size, Code::bad_argument, name, ": expected ", size, " values, got ", list.size());
  std::array<std::int64_t, size> result{};
  std::ranges::copy(list, result.begin());
  return result;
}

std::int64_t output_size(const char* op, std::int64_t size, std::int64_t kernel, std::int64_t padding,
                         std::int64_t stride, std::int64_t dilation) {
  const std::int64_t extent = (kernel - 1) * dilation + 1;
  require(extent <= size + padding, Code::bad_argument, op, ": a kernel that spans ", extent,
          " is larger than the padded input of ", size + padding);
  return (size + padding - extent) / stride + 1;
}

}  // namespace

void set_window(Attrs& attrs, const Window& window) {
  attrs.set("stride", Ints(window.stride.begin(), window.stride.end()));
  attrs.set("pad", Ints(window.pad.begin(), window.pad.end()));
  attrs.set("dilation", Ints(window.dilation.begin(), window.dilation.end()));
}

Window window_of(const Attrs& attrs) {
  Window window{.stride = array_of<2>(attrs, "stride"), .pad = array_of<4>(attrs, "pad")};
  if (attrs.has("dilation")) window.dilation = array_of<2>(attrs, "dilation");
  return window;
}

Geometry geometry_of(const char* op, const Shape& x, std::int64_t kernel_h, std::int64_t kernel_w,
                     const Window& window) {
  require(x.rank() == 4, Code::bad_argument, op, ": expected images [N, H, W, C], got ", x);
  const auto& [stride, pad, dilation] = window;
  require(kernel_h > 0 && kernel_w > 0, Code::bad_argument, op, ": the kernel is ", kernel_h, " x ", kernel_w);
  require(stride[0] > 0 && stride[1] > 0, Code::bad_argument, op, ": strides must be at least 1, got ", stride[0],
          " and ", stride[1]);
  require(dilation[0] > 0 && dilation[1] > 0, Code::bad_argument, op, ": dilations must be at least 1, got ",
          dilation[0], " and ", dilation[1]);
  require(std::ranges::all_of(pad, [](std::int64_t p) { return p >= 0; }), Code::bad_argument, op,
          ": padding cannot be negative");
  Geometry g{.N = x[0], .H = x[1], .W = x[2], .C = x[3], .KH = kernel_h, .KW = kernel_w, .window = window};
  g.OH = output_size(op, g.H, g.KH, pad[0] + pad[2], stride[0], dilation[0]);
  g.OW = output_size(op, g.W, g.KW, pad[1] + pad[3], stride[1], dilation[1]);
  return g;
}

std::array<std::int64_t, 4> same_padding(const Shape& x, std::array<std::int64_t, 2> kernel, const Window& window) {
  require(x.rank() == 4, Code::bad_argument, "same_padding: expected images [N, H, W, C], got ", x);
  std::array<std::int64_t, 4> pad{};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t size = x[static_cast<int>(i) + 1];
    const std::int64_t stride = window.stride[i];
    require(stride > 0, Code::bad_argument, "same_padding: strides must be at least 1, got ", stride);
    const std::int64_t outputs = (size + stride - 1) / stride;
    const std::int64_t extent = (kernel[i] - 1) * window.dilation[i] + 1;
    const std::int64_t total = std::max<std::int64_t>((outputs - 1) * stride + extent - size, 0);
    pad[i] = total / 2;
    pad[i + 2] = total - total / 2;
  }
  return pad;
}

}  // namespace stoker::ops
