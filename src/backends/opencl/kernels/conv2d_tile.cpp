// conv2d_tile.cl: how a convolution and its input gradient are cut into tiles and phases on a GPU.
#include <algorithm>
#include <array>

#include "backends/opencl/kernels/conv2d.h"
#include "backends/opencl/kernels/gemm.h"

namespace stoker::opencl {
namespace {

int to_int(std::int64_t value) { return static_cast<int>(value); }

// The columns phase, phase + step, ... of a result, and the taps that they see.
struct Phase {
  std::int64_t phase = 0;
  std::int64_t w_first = 0;  // the image's column that the first pixel's spot 0 sees
  std::int64_t first_tap = 0;
  bool unrolled = true;
  std::int64_t taps = 0;      // unrolled ones
  std::int64_t passes = 0;    // over one tap each, if they are not unrolled
  std::int64_t tap_step = 1;  // kernel columns from one tap to the next
  std::int64_t pass_w = 0;    // image columns from one pass to the next
};

// A convolution as conv2d_tile.cl sees it: a result [images, rh, rw, n], an image [images, h, w, k].
struct TileCut {
  std::int64_t rh = 0, rw = 0, n = 0, h = 0, w = 0, k = 0;
  std::int64_t step_rw = 1, step_w = 1;  // of the result's columns; image columns from one pixel to the next
  std::int64_t tm = 0, tn = 0, lx = 1, ly = 1;
  bool image = false;
  std::vector<Phase> phases;

  [[nodiscard]] std::int64_t tiles(std::int64_t images, const Phase& phase) const {
    return images * rh * ceil_div(ceil_div(rw - phase.phase, step_rw), tm);
  }
  [[nodiscard]] std::int64_t groups(std::int64_t images, const Phase& phase) const {
    return ceil_div(tiles(images, phase), ly);
  }
};

bool unrolls(std::int64_t taps, std::int64_t dilation, const Params& params) {
  return taps == 1 || (taps > 1 && dilation == 1 && taps <= param(params, "TAPS"));
}

Phase forward_phase(const ConvSizes& s, const Params& params) {
  const ops::Window& window = s.g.window;
  Phase phase{.w_first = -window.pad[1], .taps = s.g.KW};
  if (!unrolls(s.g.KW, window.dilation[1], params)) {
    phase.unrolled = false;
    phase.taps = 1;
    phase.passes = s.g.KW;
    phase.pass_w = window.dilation[1];
  }
  return phase;
}

// Column `p` + i * stride of dx sees kernel columns kw of dy where p + pad - kw * dilation is a multiple of the stride.
Phase gradient_phase(const ConvSizes& s, std::int64_t p, const Params& params) {
  const ops::Window& window = s.g.window;
  const std::int64_t stride = window.stride[1];
  Phase phase{.phase = p, .first_tap = (p + window.pad[1]) % stride, .tap_step = stride};
  phase.taps = std::max<std::int64_t>(ceil_div(s.g.KW - phase.first_tap, stride), 0);
  phase.w_first = (p + window.pad[1] - phase.first_tap) / stride;
  if (unrolls(phase.taps, window.dilation[1], params)) {
    phase.w_first -= phase.taps - 1;
  } else {
    phase.unrolled = false;
    phase.passes = phase.taps;
    phase.taps = 1;
    phase.pass_w = -window.dilation[1];
  }
  return phase;
}

TileCut make_cut(const KernelContext& context, ConvPart part, const Params& params) {
  const ConvSizes s = conv_sizes(context.graph, context.node, part);
  const bool forward = part == ConvPart::forward;
  TileCut cut{.tm = param(params, "TM"), .tn = param(params, "TN")};
  if (forward) {
    cut.rh = s.g.OH, cut.rw = s.g.OW, cut.n = s.c_out;
    cut.h = s.g.H, cut.w = s.g.W, cut.k = s.g.C;
    cut.step_w = s.g.window.stride[1];
    cut.phases.push_back(forward_phase(s, params));
  } else {
    cut.rh = s.g.H, cut.rw = s.g.W, cut.n = s.g.C;
    cut.h = s.g.OH, cut.w = s.g.OW, cut.k = s.c_out;
    cut.step_rw = s.g.window.stride[1];
    for (std::int64_t p = 0; p < std::min(cut.step_rw, cut.rw); ++p) cut.phases.push_back(gradient_phase(s, p, params));
  }
  cut.lx = group_width(ceil_div(cut.n, cut.tn));
  cut.ly = param(params, "GROUP") / cut.lx;
  const std::int64_t texels = s.g.KH * s.g.KW * s.g.C * s.c_out / 4;
  // A first layer's input gradient (N = 3) goes without: Intel's compiler crashes on it, and no net asks for it.
  const bool fits = s.c_out % 4 == 0 && cut.n % 4 == 0 && texels <= context.device.image_texels;
  cut.image = param(params, "IMAGE") != 0 && fits;
  return cut;
}

std::int64_t sum_rows(const TileCut& cut, std::int64_t images) {
  std::int64_t rows = 0;
  for (const Phase& phase : cut.phases) rows += cut.groups(images, phase);
  return rows;
}

Program tile_program(const TileCut& cut, const Phase& phase, ConvPart part, const Params& params, std::string header) {
  return {"conv2d_tile",
          std::move(header),
          {{"PART", to_int(static_cast<std::int64_t>(part))},
           {"TM", to_int(cut.tm)},
           {"TN", to_int(cut.tn)},
           {"LX", to_int(cut.lx)},
           {"LY", to_int(cut.ly)},
           {"TAPS", to_int(phase.taps)},
           {"PASSES", phase.unrolled ? 0 : 1},
           {"STEP", to_int(cut.step_w)},
           {"VEC_K", cut.k % 4 == 0 ? 1 : 0},
           {"VEC_N", cut.n % 4 == 0 ? 1 : 0},
           {"IMAGE", cut.image ? 1 : 0},
           {"POINTERS", param(params, "POINTERS")}}};
}

std::vector<Arg> tile_args(const ConvSizes& s, const TileCut& cut, const Phase& phase, ConvPart part) {
  const ops::Window& window = s.g.window;
  const std::int64_t unit = (part == ConvPart::forward ? cut.n : cut.k) % 4 == 0 ? 4 : 1;  // W_UNIT
  const std::int64_t tap = cut.n * cut.k / unit;
  std::vector<Arg> args;
  for (const std::int64_t number : {cut.tiles(s.g.N, phase),
                                    cut.n,
                                    cut.k,
                                    cut.rh,
                                    cut.rw,
                                    cut.h,
                                    cut.w,
                                    s.g.KH,
                                    window.stride[0],
                                    window.pad[0],
                                    window.dilation[0],
                                    phase.phase,
                                    cut.step_rw,
                                    phase.w_first,
                                    phase.first_tap * tap,
                                    phase.tap_step * tap,
                                    s.g.KW * tap,
                                    phase.passes,
                                    phase.pass_w,
                                    phase.tap_step * tap}) {
    args.push_back(Arg::integer(number));
  }
  return args;
}

}  // namespace

bool conv2d_tiles(const ConvSizes& s, const Node& node, ConvPart part) {
  if (s.groups != 1) return false;
  if (part == ConvPart::weight_grad) return true;
  const ops::Window& window = s.g.window;
  const bool phased = part == ConvPart::forward || ((window.stride[0] == 1 || window.dilation[0] == 1) &&
                                                    (window.stride[1] == 1 || window.dilation[1] == 1));
  return phased && plain_input(node, 1) >= 0;
}

std::int64_t conv2d_tile_workspace(const KernelContext& context, ConvPart part, const Params& params) {
  const TileCut cut = make_cut(context, part, params);
  const auto sums = static_cast<std::int64_t>(sum_outputs(context.node).size());
  GemmScratch scratch({});
  const ConvSizes s = conv_sizes(context.graph, context.node, part);
  static_cast<void>(scratch.floats(sums * sum_rows(cut, s.g.N) * cut.n));
  return scratch.used();
}

std::vector<Work> conv2d_tile(const KernelContext& context, ConvPart part, const Params& params) {
  const ConvSizes s = conv_sizes(context.graph, context.node, part);
  const TileCut cut = make_cut(context, part, params);
  const std::array depths = {cut.k % 4 == 0 ? 4 : 1};
  const Rendered a = render_operand(context, 0, "A", depths, true);
  const std::array widths = {cut.n % 4 == 0 ? 4 : 1};
  const Rendered y = render_epilogue(context, "Y", widths, true);
  const Place weights = context.inputs[static_cast<std::size_t>(plain_input(context.node, 1))];
  const bool sums = !sum_outputs(context.node).empty();
  Cost cost = cost_of(context.graph, context.node);
  cost.flops /= static_cast<double>(cut.phases.size());
  cost.bytes /= static_cast<double>(cut.phases.size());
  std::int64_t sum_row = 0;
  std::vector<Work> work;
  for (const Phase& phase : cut.phases) {
    Launch launch{.program = tile_program(cut, phase, part, params, a.text + y.text),
                  .kernel = "conv2d_tile",
                  .args = tile_args(s, cut, phase, part),
                  .cost = cost};
    append(launch.args, a.args);
    launch.args.push_back(cut.image ? Arg::image(weights) : Arg::tensor(weights));
    append(launch.args, y.args);
    if (sums) {
      launch.args.push_back(Arg::integer(sum_row));
      launch.args.push_back(Arg::tensor(context.scratch));
    }
    const std::int64_t groups = cut.groups(s.g.N, phase);
    launch.global = {static_cast<std::size_t>(round_up(ceil_div(cut.n, cut.tn), cut.lx)),
                     static_cast<std::size_t>(groups * cut.ly), 1};
    launch.local = {static_cast<std::size_t>(cut.lx), static_cast<std::size_t>(cut.ly), 1};
    sum_row += groups;
    work.emplace_back(std::move(launch));
  }
  if (sums) work.emplace_back(combine_sums(context, context.scratch, sum_row, cut.n));
  return work;
}

}  // namespace stoker::opencl
