// 3x3 depthwise convolution by bands of rows (depthwise_rows.cl): cut into blocks of bands, each with its own partial
// sums or partial weight gradient.
#include <algorithm>
#include <array>

#include "backends/opencl/kernels/depthwise.h"
#include "backends/opencl/render.h"
#include "base/error.h"

namespace stoker::opencl {
namespace {

constexpr std::int64_t kCpuBlocks = 64;      // many more than cores, few enough to add up
constexpr std::int64_t kGpuItems = 1 << 14;  // enough to fill a phone's GPU

// H W of the source, OH OW of what is cut into bands (y, dx; dy for the weight gradient).
struct Cut {
  std::int64_t h = 0, w = 0, c = 0, oh = 0, ow = 0;
  std::int64_t pad_top = 0, pad_left = 0;
  int stride = 1;
  int vec = 1;
  int rows = 1;
  std::int64_t group = 1;
  std::int64_t total = 0;     // bands
  std::int64_t bands = 1;     // of a block
  std::int64_t partials = 0;  // floats of a block

  [[nodiscard]] std::int64_t blocks() const { return ceil_div(total, bands); }
};

std::string problem(const ops::Geometry& g, ConvPart part) {
  constexpr std::array kNames = {"forward", "input_grad", "weight_grad"};
  return str(kNames[static_cast<std::size_t>(part)], " ", g.OH, "x", g.OW, "x", g.C, " stride ", g.window.stride[0]);
}

const Params& params_of(const KernelContext& context, ConvPart part) {
  return context.tuning.params("depthwise", problem(depthwise_sizes(context.graph, context.node, part), part));
}

Cut make_cut(const KernelContext& context, ConvPart part) {
  const ops::Geometry g = depthwise_sizes(context.graph, context.node, part);
  const Params& params = params_of(context, part);
  const bool transposed = part == ConvPart::input_grad;
  Cut cut{
      .h = g.H, .w = g.W, .c = g.C, .oh = g.OH, .ow = g.OW, .pad_top = g.window.pad[0], .pad_left = g.window.pad[1]};
  cut.stride = static_cast<int>(g.window.stride[0]);
  if (transposed) {
    std::swap(cut.h, cut.oh);
    std::swap(cut.w, cut.ow);
    if (cut.stride == 1) {  // a convolution with the filter turned round
      cut.pad_top = 2 - cut.pad_top;
      cut.pad_left = 2 - cut.pad_left;
    }
  }
  cut.vec = vector_width(cut.c, param(params, "VEC"));
  cut.rows = param(params, "ROWS");
  if (transposed && cut.stride == 2) cut.rows = std::max(cut.rows, 2);
  cut.group = std::min<std::int64_t>(param(params, "GROUP"), static_cast<std::int64_t>(context.device.max_group));
  if (!transposed && cut.stride == 2 && cut.group > 1) cut.rows = 1;  // twice the source rows: GPUs' registers are few
  cut.total = g.N * ceil_div(cut.oh, cut.rows);
  const std::int64_t blocks = cut.group == 1 ? kCpuBlocks : std::max(kGpuItems * cut.vec / cut.c, kCpuBlocks);
  cut.bands = ceil_div(cut.total, std::min(blocks, cut.total));
  cut.partials =
      cut.c * (part == ConvPart::weight_grad ? 9 : static_cast<std::int64_t>(sum_outputs(context.node).size()));
  return cut;
}

// As many channels side by side in a group as leave few work-items idle.
std::int64_t group_channels(const Cut& cut) {
  const std::int64_t vectors = cut.c / cut.vec;
  std::int64_t width = cut.group;
  while (width > 1 && (round_up(vectors, width) - vectors) * 8 > vectors) width /= 2;
  return width;
}

Launch launch_of(const KernelContext& context, const Cut& cut, const char* kernel, std::string header, ConvPart part) {
  const bool transposed = part == ConvPart::input_grad;
  Launch launch{.program = {"depthwise_rows",
                            std::move(header),
                            {{"VEC", cut.vec},
                             {"ROWS", cut.rows},
                             {"STRIDE", cut.stride},
                             {"TRANSPOSED", transposed ? 1 : 0},
                             {"PHASE", static_cast<int>(cut.pad_top & 1)}}},
                .kernel = kernel};
  launch.args.push_back(Arg::tensor(part == ConvPart::weight_grad ? context.scratch : depthwise_filter(context)));
  for (const std::int64_t size :
       {cut.h, cut.w, cut.c, cut.oh, cut.ow, cut.pad_top, cut.pad_left, cut.total, cut.bands}) {
    launch.args.push_back(Arg::integer(size));
  }
  const std::int64_t channels = group_channels(cut);
  launch.local = {static_cast<std::size_t>(channels), static_cast<std::size_t>(cut.group / channels), 1};
  // On a CPU one work-item has all channels of its bands.
  launch.global = {static_cast<std::size_t>(cut.group == 1 ? 1 : round_up(cut.c / cut.vec, channels)),
                   static_cast<std::size_t>(round_up(cut.blocks(), cut.group / channels)), 1};
  launch.cost = cost_of(context.graph, context.node);
  return launch;
}

}  // namespace

bool fits_depthwise_rows(const KernelContext& context, ConvPart part) {
  const ops::Geometry g = depthwise_sizes(context.graph, context.node, part);
  const ops::Window& w = g.window;
  return !params_of(context, part).empty() && g.KH == 3 && g.KW == 3 && w.stride[0] == w.stride[1] &&
         w.stride[0] <= 2 && w.dilation == std::array<std::int64_t, 2>{1, 1};
}

std::int64_t depthwise_rows_workspace(const KernelContext& context, ConvPart part) {
  const Cut cut = make_cut(context, part);
  return cut.partials * cut.blocks() * static_cast<std::int64_t>(sizeof(float));
}

std::vector<Work> depthwise_rows(const KernelContext& context, ConvPart part) {
  const Cut cut = make_cut(context, part);
  const std::array widths = {cut.vec};
  const Rendered x = render_operand(context, 0, "X", widths, true);
  if (part == ConvPart::weight_grad) {
    const Rendered dy = render_operand(context, 1, "DY", widths, true);
    Launch launch = launch_of(context, cut, "depthwise_weight_grad_rows", x.text + dy.text, part);
    append(launch.args, x.args);
    append(launch.args, dy.args);
    return {std::move(launch), add_rows(context.scratch, cut.blocks(), cut.partials, context.outputs[0])};
  }
  const Rendered y = render_epilogue(context, "Y", widths, true);
  Launch launch = launch_of(context, cut, "depthwise_rows", x.text + y.text, part);
  if (cut.partials > 0) launch.args.push_back(Arg::tensor(context.scratch));
  append(launch.args, x.args);
  append(launch.args, y.args);
  if (cut.partials == 0) return {std::move(launch)};
  return {std::move(launch), combine_sums(context, context.scratch, cut.blocks(), cut.c)};
}

}  // namespace stoker::opencl
