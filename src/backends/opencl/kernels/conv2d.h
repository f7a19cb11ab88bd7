// What the convolution kernels share: the node's sizes, and how a result is cut into rows of channel sums. Images are
// NHWC, weights [KH, KW, Cin / groups, Cout].
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/opencl/kernel.h"
#include "backends/opencl/tuning.h"
#include "ops/window.h"

namespace stoker::opencl {

enum class ConvPart : std::uint8_t { forward, input_grad, weight_grad };  // of (x, w), (dy, w), (x, dy)

// The convolution y = x * w, whichever of the three the node computes. Geometry::C is Cin of all groups.
struct ConvSizes {
  ops::Geometry g;
  std::int64_t c_out = 0;  // of all groups
  std::int64_t groups = 1;

  [[nodiscard]] std::int64_t group_in() const { return g.C / groups; }
  [[nodiscard]] std::int64_t group_out() const { return c_out / groups; }
  // Whether it is a plain product in all three directions.
  [[nodiscard]] bool is_matmul() const;
};
[[nodiscard]] ConvSizes conv_sizes(const Graph& graph, const Node& node, ConvPart part);

// The result as a matrix [rows, channels].
struct ConvResult {
  std::int64_t rows = 0;
  std::int64_t channels = 0;
};
[[nodiscard]] ConvResult conv_result(const ConvSizes& sizes, ConvPart part);

// The sizes as arguments, in the order of the kernels' SIZE_PARAMS.
void append_sizes(std::vector<Arg>& args, const ConvSizes& sizes);
void append(std::vector<Arg>& args, const std::vector<Arg>& more);

// The kernel of conv2d_plain.cl: any shape.
[[nodiscard]] std::vector<Work> conv2d_plain(const KernelContext& context, ConvPart part);
[[nodiscard]] std::int64_t conv2d_plain_workspace(const KernelContext& context, ConvPart part);

// gemm_panel.cl on windows or patches of the image: devices that are CPUs, one group of channels.
[[nodiscard]] std::vector<Work> conv2d_panel(const KernelContext& context, ConvPart part, const Params& params);
[[nodiscard]] std::int64_t conv2d_panel_workspace(const KernelContext& context, ConvPart part, const Params& params);

// The kernels for GPUs: conv2d_tile.cl, and conv2d_weight_tile.cl for the weight gradient. Only where conv2d_tiles()
// says.
[[nodiscard]] bool conv2d_tiles(const ConvSizes& sizes, const Node& node, ConvPart part);
[[nodiscard]] std::vector<Work> conv2d_tile(const KernelContext& context, ConvPart part, const Params& params);
[[nodiscard]] std::int64_t conv2d_tile_workspace(const KernelContext& context, ConvPart part, const Params& params);
[[nodiscard]] std::vector<Work> conv2d_weight_tile(const KernelContext& context, const Params& params);
[[nodiscard]] std::int64_t conv2d_weight_tile_workspace(const KernelContext& context, const Params& params);
// Winograd's F(4x4, 3x3) (winograd.cl), where it fits the node and pays with the parameters of "winograd": VEC as
// there, LX as in winograd_shared.cl (0: without it), KB of transformed data at a time, INTENSITY: the floating-point
// operations that the device does while it moves a byte (0: it always pays).
[[nodiscard]] bool winograd_fits(const KernelContext& context, const ConvSizes& sizes, ConvPart part);
[[nodiscard]] bool winograd_pays(const KernelContext& context, const ConvSizes& sizes, ConvPart part,
                                 const Params& params);
[[nodiscard]] std::vector<Work> winograd(const KernelContext& context, ConvPart part, const Params& params);
[[nodiscard]] std::int64_t winograd_workspace(const KernelContext& context, ConvPart part, const Params& params);

// How many of a group's work-items stand side by side where a result is `columns` tiles wide.
[[nodiscard]] std::int64_t group_width(std::int64_t columns);

}  // namespace stoker::opencl
