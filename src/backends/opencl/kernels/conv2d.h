// What the convolution kernels share: the node's sizes, and how a result is cut into rows of channel sums. Images are
// NHWC, weights [KH, KW, Cin / groups, Cout].
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/opencl/kernel.h"
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

// Takes pieces out of a workspace; without a place it only counts them.
class ConvScratch {
 public:
  explicit ConvScratch(const Place& place) : place_(place) {}
  [[nodiscard]] Place floats(std::int64_t count);
  [[nodiscard]] std::int64_t used() const { return used_; }

 private:
  Place place_;
  std::int64_t used_ = 0;
};

// The kernel of conv2d_plain.cl: any shape.
[[nodiscard]] std::vector<Work> conv2d_plain(const KernelContext& context, ConvPart part);
[[nodiscard]] std::int64_t conv2d_plain_workspace(const KernelContext& context, ConvPart part);

}  // namespace stoker::opencl
