// max_pool, avg_pool and their gradients (pooling.cl): a row of pixels for each second index, vectors of channels along
// it.
#include <algorithm>
#include <array>

#include "backends/opencl/kernel.h"
#include "backends/opencl/kernels/depthwise.h"
#include "backends/opencl/tuning.h"
#include "graph/op_def.h"
#include "ops/window.h"

namespace stoker::opencl {
namespace {

constexpr std::int64_t kPlainGroup = 64;

struct Vectors {
  int width = 1;
  bool overlap = false;  // the last one of a pixel ends with C
  std::int64_t group = kPlainGroup;
};

Vectors vectors_of(const KernelContext& context, std::int64_t channels) {
  const Params& params = context.tuning.params("pooling", "");
  const auto most = static_cast<std::int64_t>(context.device.max_group);
  if (params.empty()) return {.group = std::min(kPlainGroup, most)};
  Vectors v{.group = std::min<std::int64_t>(param(params, "GROUP"), most)};
  if (param(params, "OVERLAP") == 0) {
    v.width = vector_width(channels, param(params, "VEC"));
    return v;
  }
  while (v.width * 2 <= std::min<std::int64_t>(param(params, "VEC"), channels)) v.width *= 2;
  v.overlap = channels % v.width != 0;
  return v;
}

// On a CPU, whose work-items go through whole rows, a gradient may go by pooled pixels where these share out the image.
bool is_apart(const ops::Geometry& g, const Vectors& v) {
  const ops::Window& w = g.window;
  return v.group == 1 && w.stride == std::array{g.KH, g.KW} && w.dilation == std::array<std::int64_t, 2>{1, 1} &&
         w.pad == std::array<std::int64_t, 4>{} && g.OH * g.KH == g.H && g.OW * g.KW == g.W;
}

// `x` has the images' shape; `transposed`: a gradient, which computes rows of images.
Launch launch_of(const KernelContext& context, const Shape& x, bool transposed, std::vector<Arg> tensors) {
  const Attrs& attrs = context.node.attrs;
  const Ints& kernel = attrs.ints("kernel");
  const std::string& op = context.node.op->name;
  const ops::Geometry g = ops::geometry_of(op.c_str(), x, kernel[0], kernel[1], ops::window_of(attrs));
  const ops::Window& w = g.window;
  const Vectors v = vectors_of(context, g.C);
  const bool apart = op == "max_pool_grad" && is_apart(g, v);
  const std::int64_t rows = g.N * (transposed && !apart ? g.H : g.OH);
  std::vector<std::pair<std::string, int>> defines{{"VEC", v.width}, {"OVERLAP", v.overlap ? 1 : 0}};
  if (apart) defines.emplace_back("APART", 1);
  Launch launch{.program = {"pooling", "", std::move(defines)}, .kernel = op, .args = std::move(tensors)};
  for (const std::int64_t size : {rows, g.H, g.W, g.C, g.OH, g.OW, g.KH, g.KW, w.stride[0], w.stride[1], w.pad[0],
                                  w.pad[1], w.dilation[0], w.dilation[1]}) {
    launch.args.push_back(Arg::integer(size));
  }
  if (attrs.has("count_include_pad")) launch.args.push_back(Arg::integer(attrs.integer("count_include_pad")));
  // On a CPU a group is one work-item, which goes through its whole row.
  const std::int64_t items = v.group == 1 ? 1 : round_up((transposed ? g.W : g.OW) * ceil_div(g.C, v.width), v.group);
  launch.global = {static_cast<std::size_t>(items), static_cast<std::size_t>(rows), 1};
  launch.local = {static_cast<std::size_t>(v.group), 1, 1};
  launch.cost = cost_of(context.graph, context.node);
  return launch;
}

Shape input_shape(const KernelContext& context) { return Shape(std::span(context.node.attrs.ints("input_shape"))); }

std::vector<Work> prepare_max_pool(const KernelContext& context) {
  return {
      launch_of(context, context.input_spec(0).shape, false,
                {Arg::tensor(context.inputs[0]), Arg::tensor(context.outputs[0]), Arg::tensor(context.outputs[1], 1)})};
}

std::vector<Work> prepare_max_pool_grad(const KernelContext& context) {
  return {
      launch_of(context, input_shape(context), true,
                {Arg::tensor(context.inputs[0], 1), Arg::tensor(context.inputs[1]), Arg::tensor(context.outputs[0])})};
}

std::vector<Work> prepare_avg_pool(const KernelContext& context) {
  return {launch_of(context, context.input_spec(0).shape, false,
                    {Arg::tensor(context.inputs[0]), Arg::tensor(context.outputs[0])})};
}

std::vector<Work> prepare_avg_pool_grad(const KernelContext& context) {
  return {launch_of(context, input_shape(context), true,
                    {Arg::tensor(context.inputs[0]), Arg::tensor(context.outputs[0])})};
}

}  // namespace

std::span<const KernelDef> pooling_kernels() {
  static constexpr std::array kKernels = {
      KernelDef{.op = "max_pool", .prepare = prepare_max_pool},
      KernelDef{.op = "max_pool_grad", .prepare = prepare_max_pool_grad},
      KernelDef{.op = "avg_pool", .prepare = prepare_avg_pool},
      KernelDef{.op = "avg_pool_grad", .prepare = prepare_avg_pool_grad},
  };
  return kKernels;
}

}  // namespace stoker::opencl
