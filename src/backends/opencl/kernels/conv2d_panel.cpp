// Convolution on devices that are CPUs: the product of gemm_panel.cl with windows into the image (conv2d_windows.cl) or
// patches of it (conv2d_patches.cl) as A; input gradients also tap by tap. The parameter LOCAL allows what keeps an
// image in local memory.
#include <algorithm>
#include <array>

#include "backends/opencl/kernels/conv2d.h"
#include "backends/opencl/kernels/gemm.h"
#include "backends/opencl/program.h"
#include "base/error.h"

namespace stoker::opencl {
namespace {

GemmProblem product_of(const ConvSizes& s, ConvPart part) {
  const std::int64_t pixels = s.g.N * s.g.OH * s.g.OW;
  const std::int64_t taps = s.g.KH * s.g.KW;
  switch (part) {
    case ConvPart::forward: return {.m = pixels, .n = s.c_out, .k = taps * s.g.C};
    case ConvPart::input_grad:
      return {.m = s.g.N * s.g.H * s.g.W, .n = s.g.C, .k = taps * s.c_out, .transpose_b = true};
    case ConvPart::weight_grad: break;
  }
  return {.m = taps * s.g.C, .n = s.c_out, .k = pixels, .transpose_a = true};
}

// Rows of pixels of a block: as many as divide an image's, up to about kBlockPixels.
std::int64_t block_rows(const ConvSizes& s) {
  constexpr std::int64_t kBlockPixels = 192;
  std::int64_t rows = std::clamp<std::int64_t>(kBlockPixels / s.g.OW, 1, s.g.OH);
  while (s.g.OH % rows != 0) --rows;
  return rows;
}

std::int64_t padded_width(const ConvSizes& s) {
  return std::max(s.g.window.pad[1] + s.g.W, (s.g.OW - 1) * s.g.window.stride[1] + s.g.KW);
}

GemmWindows windows_of(const ConvSizes& s, ConvPart part) {
  const ops::Window& w = s.g.window;
  const std::int64_t rows = block_rows(s);
  const std::int64_t image_rows = (rows - 1) * w.stride[0] + (s.g.KH - 1) * w.dilation[0] + 1;
  return {.rows = part == ConvPart::forward ? s.g.OW : s.g.KW * s.g.C,
          .block = rows * s.g.OW,
          .floats = image_rows * padded_width(s) * s.g.C};
}

// Where the result has few channels, so that gathering patches would take a good part of the time, the image's rows fit
// into the nearest cache, all that is wanted of local memory is there, and a tile of some height divides the rows.
bool goes_by_windows(const KernelContext& context, const ConvSizes& s, ConvPart part, bool local) {
  constexpr std::int64_t kMostChannels = 64, kMostFloats = 8192, kLowestTile = 4;
  if (!local || part == ConvPart::input_grad || s.g.window.dilation[1] > 1 || s.c_out > kMostChannels) return false;
  const GemmWindows windows = windows_of(s, part);
  const GemmProblem product = product_of(s, part);
  const Params& params = context.tuning.params("gemm", problem_name(product));
  const std::int64_t depth = part == ConvPart::forward ? product.k : windows.block;
  const std::int64_t needed =
      windows.floats + windows.block * kMostChannels + depth * param(params, "NV") * param(params, "V");
  return windows.floats <= kMostFloats && needed * 4 <= context.device.local_bytes &&
         whole_tile(windows.rows, param(params, "MR")) >= kLowestTile;
}

// Windows into operand 0, with the geometry in the order of the kernel's A_PARAMS.
Rendered windows(const KernelContext& context, const ConvSizes& s, int v) {
  const std::array widths = {1, v};
  Rendered a = render_operand(context, 0, "X", widths, false);
  a.text += embedded_source("conv2d_windows");
  const ops::Window& w = s.g.window;
  for (const std::int64_t number : {s.g.H, s.g.W, s.g.C, padded_width(s), s.g.OH, s.g.OW, s.g.KH, s.g.KW, w.stride[0],
                                    w.stride[1], w.pad[0], w.pad[1], w.dilation[0]})
    a.args.push_back(Arg::integer(number));
  return a;
}

GemmProblem problem_of(const KernelContext& context, const ConvSizes& s, ConvPart part, bool local) {
  GemmProblem problem = product_of(s, part);
  if (goes_by_windows(context, s, part, local)) problem.windows = windows_of(s, part);
  return problem;
}

// Patches of operand 0, with the geometry in the order of the kernel's A_PARAMS.
Rendered patches(const KernelContext& context, const ConvSizes& s, ConvPart part, int v) {
  const std::array widths = {1, v};
  Rendered a = render_operand(context, 0, "X", widths, false);
  a.text += embedded_source("conv2d_patches");
  const ops::Window& w = s.g.window;
  const bool gradient = part == ConvPart::input_grad;
  const std::int64_t size = operand_spec(context.graph, context.node, 0).shape.elements();
  const std::array<std::int64_t, 6> sizes = gradient ? std::array{s.g.OH, s.g.OW, s.c_out, s.g.H, s.g.W, s.g.KW}
                                                     : std::array{s.g.H, s.g.W, s.g.C, s.g.OH, s.g.OW, s.g.KW};
  const std::array<std::int64_t, 8> places =
      gradient ? std::array{std::int64_t{1}, std::int64_t{1}, w.pad[0],    w.pad[1],
                            -w.dilation[0],  -w.dilation[1],  w.stride[0], w.stride[1]}
               : std::array{w.stride[0],   w.stride[1],   -w.pad[0],       -w.pad[1],
                            w.dilation[0], w.dilation[1], std::int64_t{1}, std::int64_t{1}};
  a.args.push_back(Arg::integer(size));
  for (const std::int64_t number : sizes) a.args.push_back(Arg::integer(number));
  for (const std::int64_t number : places) a.args.push_back(Arg::integer(number));
  return a;
}

// The weights [taps, Cin, Cout] as the matrix [Cin, taps * Cout] that the input gradient multiplies with.
Rendered turned_weights(const KernelContext& context, const ConvSizes& s) {
  const std::array widths = {1, 4};
  Rendered b = render_operand(context, 1, "W", widths, false);
  const std::int64_t k = s.g.KH * s.g.KW * s.c_out;
  b.text += R"(#define B_PARAMS W_PARAMS, int q_K, int q_Cin, int q_Cout
#define B_PASS W_PASS, q_K, q_Cin, q_Cout
#define B_PLAIN 0
int turned(int i, int q_K, int q_Cin, int q_Cout) {
  const int n = i / q_K, k = i - n * q_K, tap = k / q_Cout;
  return (tap * q_Cin + n) * q_Cout + k - tap * q_Cout;
}
float B_1(int i, int c B_PARAMS) { return W_1(turned(i, q_K, q_Cin, q_Cout), 0 W_PASS); }
)";
  b.text += s.c_out % 4 == 0
                ? "float4 B_4(int i, int c B_PARAMS) { return W_4(turned(i, q_K, q_Cin, q_Cout), 0 W_PASS); }\n"
                : R"(float4 B_4(int i, int c B_PARAMS) {
  return (float4)(B_1(i, c B_PASS), B_1(i + 1, c B_PASS), B_1(i + 2, c B_PASS), B_1(i + 3, c B_PASS));
}
)";
  for (const std::int64_t number : {k, s.g.C, s.c_out}) b.args.push_back(Arg::integer(number));
  return b;
}

// An input gradient tap by tap: dy [pixels, Cout] times the weights [taps * Cin, Cout] as they stand, which
// conv2d_collect.cl then adds up. No product with a zero is made, where patches of dy have them beside the image and
// between the pixels of a stride; but the product is stored.
GemmProblem tap_problem(const ConvSizes& s) {
  return {.m = s.g.N * s.g.OH * s.g.OW, .n = s.g.KH * s.g.KW * s.g.C, .k = s.c_out, .transpose_b = true};
}

bool goes_by_taps(const ConvSizes& s, ConvPart part) {
  if (part != ConvPart::input_grad || s.c_out > 1024) return false;  // K would be cut
  const ops::Window& w = s.g.window;
  if ((w.stride[0] > 1 && w.dilation[0] > 1) || (w.stride[1] > 1 && w.dilation[1] > 1)) return false;
  constexpr std::int64_t kWidth = 32;  // about what a register tile has
  const GemmProblem patches = product_of(s, part);
  const GemmProblem taps = tap_problem(s);
  return patches.m * patches.k * round_up(patches.n, kWidth) > 2 * taps.m * taps.k * round_up(taps.n, kWidth);
}

// The same without storing the product, where an image of dx fits into local memory.
GemmScatter scatter_of(const ConvSizes& s) {
  const ops::Window& w = s.g.window;
  GemmScatter scatter{.items = s.g.N,
                      .pixels = s.g.OH * s.g.OW,
                      .image = s.g.H * s.g.W * s.g.C,
                      .channels = s.g.C,
                      .functions = {.text = std::string(embedded_source("conv2d_scatter")), .args = {}}};
  for (const std::int64_t number : {s.g.H, s.g.W, s.g.C, s.g.OW, s.g.KH, s.g.KW, w.stride[0], w.stride[1], w.pad[0],
                                    w.pad[1], w.dilation[0], w.dilation[1]})
    scatter.functions.args.push_back(Arg::integer(number));
  return scatter;
}

struct TapPieces {
  Place product, sums;
  std::int64_t rows_each = 64, chunks = 0;
  std::int64_t bytes = 0;
};

TapPieces tap_pieces(const KernelContext& context, const ConvSizes& s) {
  const GemmProblem problem = tap_problem(s);
  TapPieces pieces;
  pieces.chunks = ceil_div(s.g.N * s.g.H * s.g.W, pieces.rows_each);
  GemmScratch scratch(context.scratch);
  static_cast<void>(scratch.floats(ceil_div(gemm_workspace(context, problem), 4)));
  pieces.product = scratch.floats(problem.m * problem.n);
  const auto sums = static_cast<std::int64_t>(sum_outputs(context.node).size());
  pieces.sums = scratch.floats(pieces.chunks * sums * s.g.C);
  pieces.bytes = scratch.used();
  return pieces;
}

std::vector<Work> by_taps(const KernelContext& context, const ConvSizes& s) {
  const TapPieces pieces = tap_pieces(context, s);
  const Rendered product = as_it_stands(pieces.product);
  std::vector<Work> work = gemm_work(context, tap_problem(s), {.y = &product});
  const int width = s.g.C % 16 == 0 ? 16 : s.g.C % 4 == 0 ? 4 : 1;
  const std::array widths = {width};
  const Rendered y = render_epilogue(context, "Y", widths, true);
  Launch launch{.program = {"conv2d_collect", y.text, {{"VEC", width}}},
                .kernel = "conv2d_collect",
                .args = {Arg::integer(pieces.rows_each)}};
  append_sizes(launch.args, s);
  launch.args.push_back(Arg::tensor(pieces.product));
  append(launch.args, y.args);
  const bool sums = !sum_outputs(context.node).empty();
  if (sums) launch.args.push_back(Arg::tensor(pieces.sums));
  launch.global = {static_cast<std::size_t>(pieces.chunks), 1, 1};
  launch.cost.bytes = 4.0 * static_cast<double>(tap_problem(s).m * tap_problem(s).n + s.g.N * s.g.H * s.g.W * s.g.C);
  work.emplace_back(std::move(launch));
  if (sums) work.emplace_back(combine_sums(context, pieces.sums, pieces.chunks, s.g.C));
  return work;
}

bool scatters(const KernelContext& context, const ConvSizes& s, bool local) {
  return local && gemm_scatters(context, tap_problem(s), scatter_of(s));
}

}  // namespace

std::int64_t conv2d_panel_workspace(const KernelContext& context, ConvPart part, const Params& params) {
  const ConvSizes s = conv_sizes(context.graph, context.node, part);
  const bool local = param(params, "LOCAL") != 0;
  if (!goes_by_taps(s, part)) return gemm_workspace(context, problem_of(context, s, part, local));
  return scatters(context, s, local) ? gemm_scatter_workspace(context, tap_problem(s), scatter_of(s))
                                     : tap_pieces(context, s).bytes;
}

std::vector<Work> conv2d_panel(const KernelContext& context, ConvPart part, const Params& params) {
  const ConvSizes s = conv_sizes(context.graph, context.node, part);
  const bool local = param(params, "LOCAL") != 0;
  if (goes_by_taps(s, part)) {
    return scatters(context, s, local) ? gemm_scatter(context, tap_problem(s), scatter_of(s)) : by_taps(context, s);
  }
  const GemmProblem problem = problem_of(context, s, part, local);
  const int v = param(context.tuning.params("gemm", problem_name(problem)), "V");
  const Rendered a = problem.windows.block > 0 ? windows(context, s, v) : patches(context, s, part, v);
  if (part != ConvPart::input_grad) return gemm_work(context, problem, {.a = &a});
  const Rendered b = turned_weights(context, s);
  return gemm_work(context, problem, {.a = &a, .b = &b});
}

}  // namespace stoker::opencl
