// conv2d_weight_grad: dw = patches(x)^T dy. K runs over the pixels of dy and is split into parts where dw is small.
#include <algorithm>
#include <memory>

#include "backends/cpu/kernels/conv2d.h"
#include "backends/cpu/kernels/conv2d_slide.h"
#include "backends/cpu/kernels/matmul.h"
#include "backends/cpu/kernels/winograd.h"

namespace stoker::cpu {
namespace {

struct WeightGradient {
  ConvSizes sizes;
  GemmOperand x, dy;
  PatchMatrix patches;
  TileEpilogue epilogue;
  float* sums = nullptr;
  GemmPlan plan;
};

GemmOperandA load_x(const WeightGradient& g, const GemmRange& r, const GemmWorker& own) {
  const std::int64_t stride = padded_stride(g.plan.m_step);
  const PatchMatrix::Block block{.group = r.batch, .row = r.k0, .rows = r.k, .column = r.m0, .columns = r.m};
  if (g.patches.is_strided()) {
    g.patches.strided(g.x, block, own.a, stride, own.tiles);
  } else if (r.k > 0) {
    const PatchMatrix::Window window = g.patches.window(g.x, r.k0, r.k, own.spare);
    if (r.m0 % g.plan.m_block == 0) g.patches.compute_window(g.x, window, own.spare, own.tiles);
    g.patches.gather(window, block, own.a, stride);
  }
  return {.data = own.a, .row = 1, .k = stride};
}

GemmOperandB load_dy(const WeightGradient& g, const GemmRange& r, const GemmWorker& own) {
  const Rect rect{r.k0, r.k, 1, r.batch * g.sizes.group_out() + r.n0, r.n};
  const RectView view = g.dy.view(rect, false, own.b, own.tiles);
  return {.data = view.data, .panel = gemm_tile().columns, .k = view.stride};
}

void make_plan(WeightGradient& g, Scratch& scratch, int threads) {
  const ConvSizes& s = g.sizes;
  GemmPlan& plan = g.plan;
  plan.batch = s.groups;
  plan.m = g.patches.columns();
  plan.n = s.group_out();
  plan.k = g.patches.rows();
  plan.cut(true, true);
  g.x.place(scratch, ceil_div(plan.m, plan.m_block) * ceil_div(plan.n, plan.n_block));
  g.dy.place(scratch, ceil_div(plan.m, plan.m_block));
  plan.buffers = {.a = plan.k_block * padded_stride(plan.m_step) + PatchMatrix::kSlack,
                  .b = plan.k_block * padded_stride(round_up(std::min(plan.n, plan.n_block), gemm_tile().columns)),
                  .spare = g.x.stands() || g.patches.is_strided() ? 0 : g.patches.window_floats(plan.k_block),
                  .tiles = g.x.needs_tiles() || g.dy.needs_tiles() || !g.epilogue.is_plain()};
  plan.before = [&g](ThreadPool& pool) {
    g.x.compute_whole(pool, g.plan);
    g.dy.compute_whole(pool, g.plan);
  };
  plan.load_a = [&g](const GemmRange& r, const GemmWorker& own) { return load_x(g, r, own); };
  plan.load_b = [&g](const GemmRange& r, const GemmWorker& own) { return load_dy(g, r, own); };
  if (g.epilogue.is_plain()) {
    plan.c = g.epilogue.plain_data();
    plan.c_row = s.c_out;
    plan.c_batch = s.group_out();
  }
  plan.store = [&g](const GemmRange& r, const float* block, std::int64_t stride, const GemmWorker& own) {
    const Rect rect{r.m0, r.m, 1, r.batch * g.sizes.group_out() + r.n0, r.n};
    const std::int64_t chunk = r.m0 / g.plan.chunk_rows();
    float* sums = g.sums + chunk * g.epilogue.sums() * g.sizes.c_out;
    g.epilogue.apply(rect, block, stride, sums, false, own.tiles);
  };
  plan.place(scratch, threads);
}

std::shared_ptr<WeightGradient> make(const KernelContext& context, Scratch& scratch) {
  auto g = std::make_shared<WeightGradient>();
  const ConvSizes s = conv_sizes(context.graph, context.node, ConvPart::weight_grad);
  g->sizes = s;
  g->x = GemmOperand(bind_operand(context, 0), s.n * s.h * s.w, s.c_in);
  g->dy = GemmOperand(bind_operand(context, 1), s.n * s.oh * s.ow, s.c_out);
  g->patches = forward_patches(s);
  g->epilogue = TileEpilogue(context, g->patches.columns(), s.c_out);
  make_plan(*g, scratch, context.threads);
  if (g->epilogue.sums() > 0) {
    const std::int64_t chunks = ceil_div(g->plan.m, g->plan.chunk_rows());
    g->sums = scratch.floats(chunks * g->epilogue.sums() * s.c_out);
    g->plan.after = [gradient = g.get(), chunks] { gradient->epilogue.finish_sums(gradient->sums, chunks); };
  }
  return g;
}

MatMulSizes matmul_sizes(const ConvSizes& s) {
  return {.m = s.c_in, .n = s.c_out, .k = s.n * s.h * s.w, .transpose_x = true};
}

}  // namespace

Kernel prepare_conv2d_weight_grad(const KernelContext& context) {
  const ConvSizes s = conv_sizes(context.graph, context.node, ConvPart::weight_grad);
  if (s.is_matmul()) return prepare_matmul(context, matmul_sizes(s));
  if (const std::int64_t m = winograd_size(s, context.node, ConvPart::weight_grad)) {
    return prepare_winograd_weight_grad(context, m);
  }
  if (slides_weight_grad(s)) return prepare_slide_weight_grad(context);
  Scratch scratch(context.scratch);
  return [g = make(context, scratch)](ThreadPool& pool) { g->plan.run(pool); };
}

std::int64_t conv2d_weight_grad_workspace(const Graph& graph, const Node& node, int threads) {
  const ConvSizes s = conv_sizes(graph, node, ConvPart::weight_grad);
  if (s.is_matmul()) return matmul_workspace(graph, node, matmul_sizes(s), threads);
  if (const std::int64_t m = winograd_size(s, node, ConvPart::weight_grad)) {
    return winograd_weight_grad_workspace(graph, node, m, threads);
  }
  if (slides_weight_grad(s)) return slide_weight_grad_workspace(graph, node, threads);
  Scratch scratch(nullptr);
  static_cast<void>(make(counting_context(graph, node, threads), scratch));
  return scratch.used();
}

int conv2d_weight_grad_prologue_tensors(const Graph& graph, const Node& node, int) {
  return conv_sizes(graph, node, ConvPart::weight_grad).is_matmul() ? 2 : 1;
}

}  // namespace stoker::cpu
