// Convolution in plain loops (conv2d_plain.cl), for any shape: what the other kernels are checked against, and what
// takes their place on a device where they fail.
#include <algorithm>
#include <array>

#include "backends/opencl/kernels/conv2d.h"
#include "backends/opencl/kernels/gemm.h"

namespace stoker::opencl {
namespace {

constexpr std::int64_t kGroup = 64;
constexpr std::int64_t kChunks = 64;  // rows of channel sums

struct Cut {
  ConvResult result;
  std::int64_t sums = 0;
  std::int64_t rows_each = 1;  // rows of a work-item

  [[nodiscard]] std::int64_t chunks() const { return ceil_div(result.rows, rows_each); }
};

Cut cut(const KernelContext& context, ConvPart part) {
  Cut cut{.result = conv_result(conv_sizes(context.graph, context.node, part), part)};
  cut.sums = static_cast<std::int64_t>(sum_outputs(context.node).size());
  if (cut.sums > 0) cut.rows_each = ceil_div(cut.result.rows, kChunks);
  return cut;
}

}  // namespace

std::int64_t conv2d_plain_workspace(const KernelContext& context, ConvPart part) {
  const Cut c = cut(context, part);
  GemmScratch scratch({});
  static_cast<void>(scratch.floats(c.sums > 0 ? c.chunks() * c.sums * c.result.channels : 0));
  return scratch.used();
}

std::vector<Work> conv2d_plain(const KernelContext& context, ConvPart part) {
  constexpr std::array widths = {1};
  const Cut c = cut(context, part);
  const Rendered a = render_operand(context, 0, "A", widths, false);
  const Rendered b = render_operand(context, 1, "B", widths, false);
  const Rendered y = render_epilogue(context, "Y", widths, false);
  Launch launch{.program = {"conv2d_plain", a.text + b.text + y.text, {{"PART", static_cast<int>(part)}}},
                .kernel = "conv2d_plain",
                .cost = cost_of(context.graph, context.node)};
  launch.args = {Arg::integer(c.result.rows), Arg::integer(c.result.channels), Arg::integer(c.rows_each)};
  append_sizes(launch.args, conv_sizes(context.graph, context.node, part));
  for (const Rendered* rendered : {&a, &b, &y}) append(launch.args, rendered->args);
  const auto items = static_cast<std::size_t>(round_up(c.chunks() * c.result.channels, kGroup));
  launch.global = {items, 1, 1};
  launch.local = {static_cast<std::size_t>(kGroup), 1, 1};
  if (c.sums == 0) return {std::move(launch)};
  GemmScratch scratch(context.scratch);
  const Place partials = scratch.floats(c.chunks() * c.sums * c.result.channels);
  launch.args.push_back(Arg::tensor(partials));
  return {std::move(launch), combine_sums(context, partials, c.chunks(), c.result.channels)};
}

}  // namespace stoker::opencl
