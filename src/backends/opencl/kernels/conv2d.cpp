// conv2d, conv2d_input_grad and conv2d_weight_grad: chooses a kernel for each node.
#include "backends/opencl/kernels/conv2d.h"

#include <array>

#include "backends/opencl/kernels/gemm.h"
#include "base/error.h"

namespace stoker::opencl {

bool ConvSizes::is_matmul() const {
  return g.KH == 1 && g.KW == 1 && g.window.stride == std::array<std::int64_t, 2>{1, 1} &&
         g.window.pad == std::array<std::int64_t, 4>{} && groups == 1;
}

ConvSizes conv_sizes(const Graph& graph, const Node& node, ConvPart part) {
  const auto shape_attr = [&](const char* name) { return Shape(std::span(node.attrs.ints(name))); };
  const Shape x = part == ConvPart::input_grad ? shape_attr("input_shape") : operand_spec(graph, node, 0).shape;
  const Shape w = part == ConvPart::weight_grad ? shape_attr("weight_shape") : operand_spec(graph, node, 1).shape;
  return {.g = ops::geometry_of("conv2d", x, w[0], w[1], ops::window_of(node.attrs)),
          .c_out = w[3],
          .groups = node.attrs.integer("groups")};
}

ConvResult conv_result(const ConvSizes& s, ConvPart part) {
  switch (part) {
    case ConvPart::forward: return {.rows = s.g.N * s.g.OH * s.g.OW, .channels = s.c_out};
    case ConvPart::input_grad: return {.rows = s.g.N * s.g.H * s.g.W, .channels = s.g.C};
    case ConvPart::weight_grad: break;
  }
  return {.rows = s.g.KH * s.g.KW * s.group_in(), .channels = s.c_out};
}

void append_sizes(std::vector<Arg>& args, const ConvSizes& s) {
  const ops::Window& w = s.g.window;
  for (const std::int64_t size : {s.g.N, s.g.H, s.g.W, s.g.C, s.g.OH, s.g.OW, s.c_out, s.g.KH, s.g.KW, w.stride[0],
                                  w.stride[1], w.pad[0], w.pad[1], w.dilation[0], w.dilation[1], s.groups}) {
    args.push_back(Arg::integer(size));
  }
}

void append(std::vector<Arg>& args, const std::vector<Arg>& more) { args.insert(args.end(), more.begin(), more.end()); }

std::int64_t group_width(std::int64_t columns) {
  std::int64_t width = 1;
  while (width < 8 && width < columns) width *= 2;
  return width;
}

namespace {

// A convolution of 1 x 1 and stride 1 is a product of [pixels, channels] and the weights [Cin, Cout].
GemmProblem matmul_problem(const ConvSizes& s, ConvPart part) {
  const std::int64_t pixels = s.g.N * s.g.H * s.g.W;
  switch (part) {
    case ConvPart::forward: return {.m = pixels, .n = s.c_out, .k = s.g.C};
    case ConvPart::input_grad: return {.m = pixels, .n = s.g.C, .k = s.c_out, .transpose_b = true};
    case ConvPart::weight_grad: break;
  }
  return {.m = s.g.C, .n = s.c_out, .k = pixels, .transpose_a = true};
}

// "forward 3x3 s1 64-64 32x32": the key of tuned entries.
std::string problem_name(const ConvSizes& s, ConvPart part) {
  constexpr std::array kNames = {"forward ", "backward ", "weights "};
  return str(kNames.at(static_cast<std::size_t>(part)), s.g.KH, "x", s.g.KW, " s", s.g.window.stride[0], " ", s.g.C,
             "-", s.c_out, " ", s.g.OH, "x", s.g.OW);
}

const Params& params_of(const KernelContext& context, const ConvSizes& sizes, ConvPart part) {
  return context.tuning.params(part == ConvPart::weight_grad ? "conv2d_weight" : "conv2d", problem_name(sizes, part));
}

const Params& winograd_params(const KernelContext& context, const ConvSizes& sizes, ConvPart part) {
  return context.tuning.params("winograd", problem_name(sizes, part));
}

enum class Way : std::uint8_t { matmul, winograd, panel, tile, plain };

bool goes_by_winograd(const KernelContext& context, const ConvSizes& s, ConvPart part) {
  return winograd_fits(context, s, part) && winograd_pays(context, s, part, winograd_params(context, s, part));
}

// Parameters {PANEL, LOCAL} stand for gemm_panel.cl, whose own are those of "gemm"; others are a GPU's.
Way way_of(const KernelContext& context, const ConvSizes& s, ConvPart part) {
  if (s.is_matmul()) return Way::matmul;
  if (goes_by_winograd(context, s, part)) return Way::winograd;
  const Params& params = params_of(context, s, part);
  if (params.empty()) return Way::plain;
  if (params.front().first != "PANEL") return conv2d_tiles(s, context.node, part) ? Way::tile : Way::plain;
  return s.groups == 1 && context.device.is_cpu() && !context.tuning.params("gemm", "").empty() ? Way::panel
                                                                                                : Way::plain;
}

template <ConvPart kPart>
std::vector<Work> prepare(const KernelContext& context) {
  const ConvSizes s = conv_sizes(context.graph, context.node, kPart);
  const Params& params = params_of(context, s, kPart);
  switch (way_of(context, s, kPart)) {
    case Way::matmul: return gemm_work(context, matmul_problem(s, kPart));
    case Way::winograd: return winograd(context, kPart, winograd_params(context, s, kPart));
    case Way::panel: return conv2d_panel(context, kPart, params);
    case Way::tile:
      return kPart == ConvPart::weight_grad ? conv2d_weight_tile(context, params) : conv2d_tile(context, kPart, params);
    case Way::plain: break;
  }
  return conv2d_plain(context, kPart);
}

template <ConvPart kPart>
std::int64_t workspace(const KernelContext& context) {
  const ConvSizes s = conv_sizes(context.graph, context.node, kPart);
  const Params& params = params_of(context, s, kPart);
  switch (way_of(context, s, kPart)) {
    case Way::matmul: return gemm_workspace(context, matmul_problem(s, kPart));
    case Way::winograd: return winograd_workspace(context, kPart, winograd_params(context, s, kPart));
    case Way::panel: return conv2d_panel_workspace(context, kPart, params);
    case Way::tile:
      return kPart == ConvPart::weight_grad ? conv2d_weight_tile_workspace(context, params)
                                            : conv2d_tile_workspace(context, kPart, params);
    case Way::plain: break;
  }
  return conv2d_plain_workspace(context, kPart);
}

template <ConvPart kPart>
int prologue_tensors(const Graph& graph, const Node& node, int operand, const Device&) {
  if (operand == 1 && kPart != ConvPart::weight_grad) return 0;
  return conv_sizes(graph, node, kPart).is_matmul() ? 2 : 1;
}

bool takes_epilogue(const Graph&, const Node&, const Device&) { return true; }

template <ConvPart kPart>
constexpr KernelDef definition(const char* op) {
  return {.op = op,
          .prepare = prepare<kPart>,
          .workspace = workspace<kPart>,
          .prologue_tensors = prologue_tensors<kPart>,
          .takes_epilogue = takes_epilogue};
}

constexpr std::array kKernels = {definition<ConvPart::forward>("conv2d"),
                                 definition<ConvPart::input_grad>("conv2d_input_grad"),
                                 definition<ConvPart::weight_grad>("conv2d_weight_grad")};

}  // namespace

std::span<const KernelDef> conv2d_kernels() { return kKernels; }

}  // namespace stoker::opencl
