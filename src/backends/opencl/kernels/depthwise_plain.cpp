// Depthwise convolution in plain loops (depthwise_plain.cl), for any window: what the other kernels are checked
// against, and what takes their place where they do not fit or fail.
#include <algorithm>
#include <array>

#include "backends/opencl/kernels/depthwise.h"
#include "backends/opencl/render.h"

namespace stoker::opencl {
namespace {

constexpr std::int64_t kBlocks = 64;  // of pixels, each with its own partial sums

struct Cut {
  ops::Geometry g;
  std::int64_t pixels = 0;
  std::int64_t block = 1;     // pixels of a work-item
  std::int64_t group = 64;    // work-items
  std::int64_t partials = 0;  // floats of a block

  [[nodiscard]] std::int64_t blocks() const { return ceil_div(pixels, block); }
};

Cut make_cut(const KernelContext& context, ConvPart part) {
  Cut cut{.g = depthwise_sizes(context.graph, context.node, part)};
  const ops::Geometry& g = cut.g;
  cut.pixels = part == ConvPart::input_grad ? g.N * g.H * g.W : g.N * g.OH * g.OW;
  const auto rows =
      part == ConvPart::weight_grad ? g.KH * g.KW : static_cast<std::int64_t>(sum_outputs(context.node).size());
  cut.partials = rows * g.C;
  cut.group = std::min(cut.group, static_cast<std::int64_t>(context.device.max_group));
  if (rows > 0) cut.block = ceil_div(cut.pixels, kBlocks);
  return cut;
}

void append_sizes(std::vector<Arg>& args, const Cut& cut, bool transposed) {
  const ops::Geometry& g = cut.g;
  const ops::Window& w = g.window;
  const auto [H, W, OH, OW] = transposed ? std::array{g.OH, g.OW, g.H, g.W} : std::array{g.H, g.W, g.OH, g.OW};
  for (const std::int64_t size : {H, W, g.C, OH, OW, g.KH, g.KW, w.stride[0], w.stride[1], w.pad[0], w.pad[1],
                                  w.dilation[0], w.dilation[1], cut.pixels, cut.block}) {
    args.push_back(Arg::integer(size));
  }
}

std::vector<Work> weight_grad(const KernelContext& context, const Cut& cut) {
  constexpr std::array widths = {1};
  const Rendered x = render_operand(context, 0, "X", widths, true);
  const Rendered dy = render_operand(context, 1, "DY", widths, true);
  Launch launch{.program = {"depthwise_plain", x.text + dy.text, {}}, .kernel = "depthwise_weight_grad_plain"};
  launch.args = {Arg::tensor(context.scratch)};
  append_sizes(launch.args, cut, false);
  append(launch.args, x.args);
  append(launch.args, dy.args);
  launch.global = {static_cast<std::size_t>(round_up(cut.g.C, cut.group)),
                   static_cast<std::size_t>(cut.g.KH * cut.g.KW), static_cast<std::size_t>(cut.blocks())};
  launch.local = {static_cast<std::size_t>(cut.group), 1, 1};
  launch.cost = cost_of(context.graph, context.node);
  return {std::move(launch), add_rows(context.scratch, cut.blocks(), cut.partials, context.outputs[0])};
}

}  // namespace

std::int64_t depthwise_plain_workspace(const KernelContext& context, ConvPart part) {
  const Cut cut = make_cut(context, part);
  return cut.partials * cut.blocks() * static_cast<std::int64_t>(sizeof(float));
}

std::vector<Work> depthwise_plain(const KernelContext& context, ConvPart part) {
  constexpr std::array widths = {1};
  const Cut cut = make_cut(context, part);
  if (part == ConvPart::weight_grad) return weight_grad(context, cut);
  const bool transposed = part == ConvPart::input_grad;
  const Rendered x = render_operand(context, 0, "X", widths, true);
  const Rendered y = render_epilogue(context, "Y", widths, true);
  Launch launch{.program = {"depthwise_plain", x.text + y.text, {{"TRANSPOSED", transposed ? 1 : 0}}},
                .kernel = "depthwise_plain"};
  launch.args = {Arg::tensor(depthwise_filter(context))};
  append_sizes(launch.args, cut, transposed);
  if (cut.partials > 0) launch.args.push_back(Arg::tensor(context.scratch));
  append(launch.args, x.args);
  append(launch.args, y.args);
  launch.global = {static_cast<std::size_t>(round_up(cut.g.C, cut.group)), static_cast<std::size_t>(cut.blocks()), 1};
  launch.local = {static_cast<std::size_t>(cut.group), 1, 1};
  launch.cost = cost_of(context.graph, context.node);
  if (cut.partials == 0) return {std::move(launch)};
  return {std::move(launch), combine_sums(context, context.scratch, cut.blocks(), cut.g.C)};
}

}  // namespace stoker::opencl
