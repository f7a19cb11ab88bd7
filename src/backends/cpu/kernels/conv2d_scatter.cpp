#include "backends/cpu/kernels/conv2d_scatter.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace stoker::cpu {
namespace {

constexpr std::int64_t kBlockFloats = 48 * 1024;  // of shares: well inside L2, beside the image
constexpr std::int64_t kImageFloats = 96 * 1024;
constexpr std::int64_t kFewestImages = 8;
constexpr std::int64_t kDepth = 512;  // of K at a time

// Kernel rows whose shares are computed together: columns [kh][kw][c_in], packed in panels.
struct RowGroup {
  std::int64_t kh0 = 0, kernel_rows = 0;
  std::int64_t columns = 0;
  float* packed = nullptr;
};

struct ScatterGradient {
  ConvSizes sizes;
  GemmOperand dy;
  const float* weights = nullptr;
  TileEpilogue epilogue;
  float* sums = nullptr;
  std::vector<RowGroup> groups;
  std::int64_t pixels_at_once = 0;
  std::int64_t stride = 0;  // of a block of shares
  GemmWorkers workers;

  [[nodiscard]] std::int64_t image_floats() const { return sizes.h * sizes.w * sizes.c_in; }
};

// Rows (kh, kw, c_in) of the weights, c_out long, become columns.
void pack(const ScatterGradient& g, ThreadPool& pool) {
  const std::int64_t width = gemm_tile().columns;
  const std::int64_t depth = g.sizes.c_out;
  for (const RowGroup& group : g.groups) {
    const float* from = g.weights + group.kh0 * g.sizes.kw * g.sizes.c_in * depth;
    const auto pack_panel = [&](std::int64_t panel, int) {
      const std::int64_t n0 = panel * width;
      pack_panels_transposed(from + n0 * depth, depth, depth, std::min(width, group.columns - n0),
                             group.packed + n0 * depth, depth * width);
    };
    const std::int64_t panels = ceil_div(group.columns, width);
    if (group.columns * depth < kForkCopies) {
      for (std::int64_t panel = 0; panel < panels; ++panel) pack_panel(panel, 0);
    } else {
      pool.run(panels, pack_panel);
    }
  }
}

void multiply(const ScatterGradient& g, const RectView& a, std::int64_t pixels, const RowGroup& group, float* shares) {
  const std::int64_t width = gemm_tile().columns;
  const std::int64_t depth = g.sizes.c_out;
  for (std::int64_t k0 = 0; k0 < depth; k0 += kDepth) {
    gemm_block({.m = pixels,
                .n = round_up(group.columns, width),
                .k = std::min(kDepth, depth - k0),
                .a = a.data + k0,
                .a_row = a.stride,
                .a_k = 1,
                .b = group.packed + k0 * width,
                .b_panel = depth * width,
                .b_k = width,
                .c = shares,
                .c_row = g.stride,
                .accumulate = k0 > 0});
  }
}

void run_image(const ScatterGradient& g, std::int64_t number, int worker) {
  const ConvSizes& s = g.sizes;
  const GemmWorker own = g.workers.worker(worker);
  const bool plain = g.epilogue.is_plain();
  float* image = plain ? g.epilogue.plain_data() + number * g.image_floats() : own.spare;
  std::memset(image, 0, static_cast<std::size_t>(g.image_floats()) * sizeof(float));
  const std::int64_t all = s.oh * s.ow;
  for (std::int64_t pixel = 0; pixel < all; pixel += g.pixels_at_once) {
    const std::int64_t pixels = std::min(g.pixels_at_once, all - pixel);
    const RectView a = g.dy.view({number * all + pixel, pixels, 1, 0, s.c_out}, true, own.a, own.tiles);
    for (const RowGroup& group : g.groups) {
      multiply(g, a, pixels, group, own.c);
      scatter_add(s, {pixel, pixels, group.kh0, group.kernel_rows, own.c, g.stride}, image);
    }
  }
  if (plain) return;
  const Rect rect{number * s.h * s.w, s.h * s.w, 1, 0, s.c_in};
  g.epilogue.apply(rect, image, s.c_in, g.sums + number * g.epilogue.sums() * s.c_in, false, own.tiles);
}

std::shared_ptr<ScatterGradient> make(const KernelContext& context, Scratch& scratch) {
  auto g = std::make_shared<ScatterGradient>();
  const ConvSizes s = conv_sizes(context.graph, context.node, ConvPart::input_grad);
  g->sizes = s;
  g->dy = GemmOperand(bind_operand(context, 0), s.n * s.oh * s.ow, s.c_out);
  g->weights = bind_operand(context, 1).plain_data();
  g->epilogue = TileEpilogue(context, s.n * s.h * s.w, s.c_in);
  const std::int64_t row_columns = s.kw * s.c_in;
  const std::int64_t tile_rows = gemm_tile().rows;
  g->pixels_at_once = std::min(round_up(s.oh * s.ow, tile_rows), 4 * tile_rows);
  const std::int64_t together = std::clamp<std::int64_t>(kBlockFloats / (g->pixels_at_once * row_columns), 1, s.kh);
  for (std::int64_t kh0 = 0; kh0 < s.kh; kh0 += together) {
    const std::int64_t rows = std::min(together, s.kh - kh0);
    const std::int64_t columns = rows * row_columns;
    g->groups.push_back({kh0, rows, columns, scratch.floats(round_up(columns, gemm_tile().columns) * s.c_out)});
  }
  g->stride = padded_stride(round_up(together * row_columns, gemm_tile().columns));
  if (g->epilogue.sums() > 0) g->sums = scratch.floats(s.n * g->epilogue.sums() * s.c_in);
  g->workers.buffers = {.a = g->dy.stands() ? 0 : g->pixels_at_once * padded_stride(s.c_out),
                        .c = g->pixels_at_once * g->stride,
                        .spare = g->epilogue.is_plain() ? 0 : g->image_floats(),
                        .tiles = g->dy.needs_tiles() || !g->epilogue.is_plain()};
  g->workers.place(scratch, context.threads);
  return g;
}

}  // namespace

bool scatters(const ConvSizes& s) {
  const bool wasteful = s.stride_h > 1 || s.stride_w > 1 || s.oh < s.h || s.ow < s.w || s.c_in < gemm_tile().columns;
  return s.groups == 1 && s.kh * s.kw > 1 && s.n >= kFewestImages && s.h * s.w * s.c_in <= kImageFloats && wasteful;
}

Kernel prepare_scatter(const KernelContext& context) {
  Scratch scratch(context.scratch);
  return [g = make(context, scratch)](ThreadPool& pool) {
    pack(*g, pool);
    pool.run(g->sizes.n, [&](std::int64_t image, int worker) { run_image(*g, image, worker); });
    if (g->epilogue.sums() > 0) g->epilogue.finish_sums(g->sums, g->sizes.n, &pool);
  };
}

std::int64_t scatter_workspace(const Graph& graph, const Node& node, int threads) {
  Scratch scratch(nullptr);
  static_cast<void>(make(counting_context(graph, node, threads), scratch));
  return scratch.used();
}

}  // namespace stoker::cpu
