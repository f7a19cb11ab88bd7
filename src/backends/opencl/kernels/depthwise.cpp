// depthwise, depthwise_input_grad and depthwise_weight_grad: chooses a kernel for each node.
#include "backends/opencl/kernels/depthwise.h"

#include <array>

namespace stoker::opencl {

ops::Geometry depthwise_sizes(const Graph& graph, const Node& node, ConvPart part) {
  const auto shape_attr = [&](const char* name) { return Shape(std::span(node.attrs.ints(name))); };
  const Shape x = part == ConvPart::input_grad ? shape_attr("input_shape") : operand_spec(graph, node, 0).shape;
  const Shape w = part == ConvPart::weight_grad ? shape_attr("weight_shape") : operand_spec(graph, node, 1).shape;
  return ops::geometry_of("depthwise", x, w[0], w[1], ops::window_of(node.attrs));
}

const Place& depthwise_filter(const KernelContext& context) {
  const Fusion* fusion = context.node.fusion.get();
  return context.inputs[fusion == nullptr ? 1 : static_cast<std::size_t>(fusion->operands[1].args[0].input)];
}

int vector_width(std::int64_t channels, int limit) {
  int width = 1;
  while (width * 2 <= limit && channels % (width * 2) == 0) width *= 2;
  return width;
}

Stage add_rows(const Place& partials, std::int64_t rows, std::int64_t floats, const Place& result) {
  Stage stage{.args = {Arg::tensor(partials), Arg::integer(rows), Arg::integer(floats), Arg::tensor(result)},
              .written = {false, false, false, true},
              .items = floats};
  // Four rows at a time, so that loads overlap.
  stage.code = R"(  const int R = INT(1), n = INT(2);
  for (int i = ITEM; i < n; i += ITEMS) {
    global const float* p = F32(0) + i;
    float sum = 0.0f;
    int r = 0;
    for (; r + 4 <= R; r += 4) sum += (p[r * n] + p[(r + 1) * n]) + (p[(r + 2) * n] + p[(r + 3) * n]);
    for (; r < R; ++r) sum += p[r * n];
    F32(3)[i] = sum;
  }
)";
  stage.cost = {.flops = static_cast<double>(rows * floats), .bytes = 4.0 * static_cast<double>((rows + 1) * floats)};
  return stage;
}

namespace {

template <ConvPart kPart>
std::vector<Work> prepare(const KernelContext& context) {
  return fits_depthwise_rows(context, kPart) ? depthwise_rows(context, kPart) : depthwise_plain(context, kPart);
}

template <ConvPart kPart>
std::int64_t workspace(const KernelContext& context) {
  return fits_depthwise_rows(context, kPart) ? depthwise_rows_workspace(context, kPart)
                                             : depthwise_plain_workspace(context, kPart);
}

int source_tensors(const Graph&, const Node&, int operand, const Device&) { return operand == 0 ? 2 : 0; }
int both_tensors(const Graph&, const Node&, int, const Device&) { return 2; }
bool takes_any(const Graph&, const Node&, const Device&) { return true; }

}  // namespace

std::span<const KernelDef> depthwise_kernels() {
  static constexpr std::array kKernels = {
      KernelDef{.op = "depthwise",
                .prepare = prepare<ConvPart::forward>,
                .workspace = workspace<ConvPart::forward>,
                .prologue_tensors = source_tensors,
                .takes_epilogue = takes_any},
      KernelDef{.op = "depthwise_input_grad",
                .prepare = prepare<ConvPart::input_grad>,
                .workspace = workspace<ConvPart::input_grad>,
                .prologue_tensors = source_tensors,
                .takes_epilogue = takes_any},
      KernelDef{.op = "depthwise_weight_grad",
                .prepare = prepare<ConvPart::weight_grad>,
                .workspace = workspace<ConvPart::weight_grad>,
                .prologue_tensors = both_tensors},
  };
  return kKernels;
}

}  // namespace stoker::opencl
