// conv2d_weight_tile.cl: how a weight gradient is cut into tiles, and the images into parts, on a GPU.
#include <algorithm>
#include <array>

#include "backends/opencl/kernels/conv2d.h"
#include "backends/opencl/kernels/gemm.h"

namespace stoker::opencl {
namespace {

constexpr std::int64_t kItems = 16384;         // work-items that keep a phone's GPU busy
constexpr std::int64_t kPartFloats = 1 << 22;  // of all parts together, unless one alone is larger

struct WeightCut {
  GemmProblem problem;  // rows and columns of dw, for the reduction
  std::int64_t tm = 1, tn = 4, lx = 1, ly = 1;
  std::int64_t tile_rows = 0;  // of a tap
  std::int64_t images = 1, parts = 1;
  int image = 0;

  [[nodiscard]] std::int64_t columns() const { return ceil_div(problem.n, tn); }
};

WeightCut make_cut(const KernelContext& context, const ConvSizes& s, const Params& params) {
  WeightCut cut{.problem = {.m = s.g.KH * s.g.KW * s.g.C, .n = s.c_out, .k = s.g.N * s.g.OH * s.g.OW}};
  const bool vector = s.c_out % 4 == 0;
  cut.tm = s.g.C % param(params, "TM") == 0 ? param(params, "TM") : s.g.C % 4 == 0 ? 4 : 1;
  cut.tn = !vector || s.c_out % param(params, "TN") == 0 ? param(params, "TN") : 4;
  cut.tile_rows = ceil_div(s.g.C, cut.tm);
  cut.lx = group_width(cut.columns());
  cut.ly = param(params, "GROUP") / cut.lx;
  const std::int64_t items = cut.columns() * cut.tile_rows * s.g.KH * s.g.KW;
  cut.parts = std::min(
      {s.g.N, ceil_div(kItems, items), std::max(kPartFloats / (cut.problem.m * cut.problem.n), std::int64_t{1})});
  cut.images = ceil_div(s.g.N, cut.parts);
  cut.parts = ceil_div(s.g.N, cut.images);
  const auto fits = [&](std::int64_t elements) { return elements / 4 <= context.device.image_texels; };
  if (vector && plain_input(context.node, 1) >= 0 && fits(cut.problem.k * s.c_out)) {
    const bool both = cut.tm > 1 && plain_input(context.node, 0) >= 0 && fits(s.g.N * s.g.H * s.g.W * s.g.C);
    cut.image = std::min(param(params, "IMAGE"), both ? 2 : 1);
  }
  return cut;
}

struct Pieces {
  Place parts, sums;
  std::int64_t bytes = 0;
};

Pieces place_pieces(const KernelContext& context, const WeightCut& cut) {
  GemmScratch scratch(context.scratch);
  Pieces pieces;
  pieces.parts = scratch.floats(cut.parts * cut.problem.m * cut.problem.n);
  pieces.sums = scratch.floats(reduce_sums(context, cut.problem));
  pieces.bytes = scratch.used();
  return pieces;
}

// The operand as the kernel's parameters have it: an image, or what is rendered.
void append_operand(Launch& launch, const KernelContext& context, int operand, const char* name, bool image,
                    bool vector) {
  if (image) {
    launch.args.push_back(Arg::image(context.inputs[static_cast<std::size_t>(plain_input(context.node, operand))]));
    return;
  }
  const std::array widths = {vector ? 4 : 1};
  const Rendered rendered = render_operand(context, operand, name, widths, true);
  launch.program.header += rendered.text;
  append(launch.args, rendered.args);
}

}  // namespace

std::int64_t conv2d_weight_tile_workspace(const KernelContext& context, const Params& params) {
  const ConvSizes s = conv_sizes(context.graph, context.node, ConvPart::weight_grad);
  return place_pieces(context, make_cut(context, s, params)).bytes;
}

std::vector<Work> conv2d_weight_tile(const KernelContext& context, const Params& params) {
  const ConvSizes s = conv_sizes(context.graph, context.node, ConvPart::weight_grad);
  const WeightCut cut = make_cut(context, s, params);
  const Pieces pieces = place_pieces(context, cut);
  const auto number = [](std::int64_t value) { return static_cast<int>(value); };
  Launch launch{.program = {"conv2d_weight_tile",
                            "",
                            {{"TM", number(cut.tm)},
                             {"TN", number(cut.tn)},
                             {"LX", number(cut.lx)},
                             {"LY", number(cut.ly)},
                             {"VEC_M", cut.tm > 1 ? 1 : 0},
                             {"VEC_N", s.c_out % 4 == 0 ? 1 : 0},
                             {"PIXELS", param(params, "PIXELS")},
                             {"POINTERS", param(params, "POINTERS")},
                             {"IMAGE", cut.image}}},
                .kernel = "conv2d_weight_tile",
                .args = {Arg::integer(cut.images), Arg::integer(cut.tile_rows)},
                .cost = cost_of(context.graph, context.node)};
  append_sizes(launch.args, s);
  launch.args.pop_back();  // groups: one
  launch.args.push_back(Arg::tensor(pieces.parts));
  append_operand(launch, context, 0, "A", cut.image == 2, cut.tm > 1);
  append_operand(launch, context, 1, "B", cut.image > 0, s.c_out % 4 == 0);
  const std::int64_t tile_rows = cut.tile_rows * s.g.KH * s.g.KW;
  launch.global = {static_cast<std::size_t>(round_up(cut.columns(), cut.lx)),
                   static_cast<std::size_t>(round_up(tile_rows, cut.ly)), static_cast<std::size_t>(cut.parts)};
  launch.local = {static_cast<std::size_t>(cut.lx), static_cast<std::size_t>(cut.ly), 1};
  std::vector<Work> work{std::move(launch)};
  append_reduce(work, context, cut.problem, cut.parts, pieces.parts, pieces.sums);
  return work;
}

}  // namespace stoker::opencl
