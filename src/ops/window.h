// The geometry that convolutions and pooling share: which input positions an output position sees.
#pragma once

#include <cstdint>

#include "graph/attrs.h"
#include "graph/op_def.h"
#include "ops/ops.h"

namespace stoker::ops {

// Input [N, H, W, C], kernel KH x KW, output [N, OH, OW, ...].
struct Geometry {
  std::int64_t N, H, W, C, KH, KW, OH, OW;
  Window window;
};

void set_window(Attrs& attrs, const Window& window);
// An op without a dilation attribute has dilation 1.
[[nodiscard]] Window window_of(const Attrs& attrs);

// Checks the window against the input; an Error names `op`.
[[nodiscard]] Geometry geometry_of(const char* op, const Shape& x, std::int64_t kernel_h, std::int64_t kernel_w,
                                   const Window& window);

// Calls body(output, kh, kw, input) for each window position that lies on the input, row by row; `output` and `input`
// number pixels: (n * OH + oh) * OW + ow and (n * H + h) * W + w.
template <typename Body>
void for_each_tap(const Geometry& g, const Body& body) {
  for (std::int64_t output = 0; output < g.N * g.OH * g.OW; ++output) {
    const std::int64_t n = output / (g.OH * g.OW);
    const std::int64_t top = output / g.OW % g.OH * g.window.stride[0] - g.window.pad[0];
    const std::int64_t left = output % g.OW * g.window.stride[1] - g.window.pad[1];
    for (std::int64_t kh = 0; kh < g.KH; ++kh) {
      const std::int64_t h = top + kh * g.window.dilation[0];
      if (h < 0 || h >= g.H) continue;
      for (std::int64_t kw = 0; kw < g.KW; ++kw) {
        const std::int64_t w = left + kw * g.window.dilation[1];
        if (w >= 0 && w < g.W) body(output, kh, kw, (n * g.H + h) * g.W + w);
      }
    }
  }
}

}  // namespace stoker::ops
