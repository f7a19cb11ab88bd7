// Winograd's conv2d_weight_grad: dU = V' D, element by element of the tiles' squares, with V the transformed tiles of x
// and D those of dy; then dw = G' dU G. A task takes a square of channels (ci, co) and a part of the tiles: its dU
// stays in L2. Parts are added pairwise.
#include <algorithm>
#include <memory>

#include "backends/cpu/kernels/winograd.h"

namespace stoker::cpu {
namespace {

constexpr std::int64_t kTiles = 48;     // of a block
constexpr std::int64_t kChannels = 64;  // of a task, on both sides

struct WinogradGradient {
  ConvSizes sizes;
  WinogradTiles tiles;
  GemmOperand x, dy;
  std::int64_t block_rows = 0;            // tile rows transformed at a time
  std::int64_t part_rows = 0, parts = 0;  // tile rows of a part
  std::int64_t i_block = 0, i_count = 0;  // input channels of a task
  std::int64_t o_block = 0, o_count = 0;  // output channels of a task
  WinogradTiles::Rows most;               // image rows transformed at a time
  TileEpilogue epilogue;
  float* products = nullptr;  // dU: [part][square][c_in][c_out]
  float* sums = nullptr;
  std::byte* worker_base = nullptr;
  std::int64_t worker_bytes = 0;

  [[nodiscard]] std::int64_t block_tiles() const { return block_rows * tiles.columns(); }
  [[nodiscard]] std::int64_t part_floats() const { return tiles.square() * sizes.c_in * sizes.c_out; }
};

struct Own {
  std::byte* tiles = nullptr;
  float* v = nullptr;  // [square][tile][i_block]
  float* d = nullptr;  // [square][tile][o_block]
  float* x_window = nullptr;
  float* dy_window = nullptr;
  float* zeros = nullptr;
  float* square = nullptr;  // one input channel's dU, summed: [square][c_out]
  float* result = nullptr;  // dw of some input channels: [tap][i_block][c_out]

  Own(const WinogradGradient& g, Scratch& scratch) {
    const ConvSizes& s = g.sizes;
    const bool tile_scratch = g.x.needs_tiles() || g.dy.needs_tiles() || !g.epilogue.is_plain();
    tiles = scratch.bytes(tile_scratch ? kTileScratchBytes : 0);
    v = scratch.floats(g.tiles.square() * g.block_tiles() * padded_stride(g.i_block));
    d = scratch.floats(g.tiles.square() * g.block_tiles() * padded_stride(g.o_block));
    x_window = scratch.floats(g.x.stands() ? 0 : g.most.source * s.w * g.i_block);
    dy_window = scratch.floats(g.dy.stands() ? 0 : g.most.result * s.ow * g.o_block);
    zeros = scratch.floats(std::max(s.c_in, s.c_out));
    square = scratch.floats(g.tiles.square() * s.c_out);
    result = scratch.floats(g.epilogue.is_plain() ? 0 : 9 * g.i_block * s.c_out);
  }
};

Own own_memory(const WinogradGradient& g, int worker) {
  Scratch scratch(g.worker_base + worker * g.worker_bytes);
  return {g, scratch};
}

struct Block {
  std::int64_t i0 = 0, i = 0, o0 = 0, o = 0;  // channels
};

// The tiles of dy, transformed to squares.
void transform_dy(const WinogradGradient& g, const Block& block, std::int64_t row, std::int64_t count, const Own& own) {
  const ConvSizes& s = g.sizes;
  const float* data = g.dy.stands() ? g.dy.data() + block.o0 : own.dy_window;
  const std::int64_t pixel = g.dy.stands() ? s.c_out : block.o;
  std::int64_t first = 0;
  if (!g.dy.stands()) {
    const WinogradTiles::Span span = g.tiles.result_rows(row, count);
    first = span.first;
    g.dy.load({span.first * s.ow, span.count * s.ow, 1, block.o0, block.o}, own.dy_window, block.o, own.tiles);
  }
  const std::int64_t stride = padded_stride(g.o_block);
  const float* from[kWinogradMaxSquare];
  float* to[kWinogradMaxSquare];
  for (std::int64_t t = 0; t < count * g.tiles.columns(); ++t) {
    g.tiles.result_table<const float>(data, first, pixel, row + t / g.tiles.columns(), t % g.tiles.columns(), own.zeros,
                                      from);
    for (std::int64_t e = 0; e < g.tiles.square(); ++e) to[e] = own.d + (e * g.block_tiles() + t) * stride;
    winograd_transform(WinogradTransform::output_grad, g.tiles.m, from, to, block.o);
  }
}

void multiply(const WinogradGradient& g, const Block& block, std::int64_t part, const Own& own) {
  const ConvSizes& s = g.sizes;
  const std::int64_t v_stride = padded_stride(g.i_block);
  const std::int64_t d_stride = padded_stride(g.o_block);
  const std::int64_t begin = part * g.part_rows;
  const std::int64_t end = std::min(begin + g.part_rows, g.tiles.rows());
  for (std::int64_t row = begin; row < end; row += g.block_rows) {
    const std::int64_t count = std::min(g.block_rows, end - row);
    const WinogradImage image =
        winograd_source(g.x, g.tiles, row, count, {s.h, s.w, block.i0, block.i}, own.x_window, own.tiles);
    winograd_transform_source(g.tiles, image, row, count, 0, block.i, own.zeros, own.v, g.block_tiles() * v_stride,
                              v_stride);
    transform_dy(g, block, row, count, own);
    for (std::int64_t e = 0; e < g.tiles.square(); ++e) {
      gemm_block({.m = block.i,
                  .n = block.o,
                  .k = count * g.tiles.columns(),
                  .a = own.v + e * g.block_tiles() * v_stride,
                  .a_row = 1,
                  .a_k = v_stride,
                  .b = own.d + e * g.block_tiles() * d_stride,
                  .b_panel = gemm_tile().columns,
                  .b_k = d_stride,
                  .c = g.products + part * g.part_floats() + (e * s.c_in + block.i0) * s.c_out + block.o0,
                  .c_row = s.c_out,
                  .accumulate = row > begin});
    }
  }
}

// dw of input channels [i0, i0 + count) from the parts of dU.
void finish(const WinogradGradient& g, std::int64_t i0, std::int64_t count, std::int64_t chunk, const Own& own) {
  const ConvSizes& s = g.sizes;
  const bool plain = g.epilogue.is_plain();
  float* data = plain ? g.epilogue.plain_data() + i0 * s.c_out : own.result;
  const std::int64_t tap_floats = (plain ? s.c_in : count) * s.c_out;
  const float* from[kWinogradMaxSquare];
  float* to[9];
  for (std::int64_t c = 0; c < count; ++c) {
    for (std::int64_t e = 0; e < g.tiles.square(); ++e) {
      float* summed = own.square + e * s.c_out;
      sum_parts(g.products + (e * s.c_in + i0 + c) * s.c_out, g.parts, g.part_floats(), s.c_out, summed);
      from[e] = summed;
    }
    for (std::int64_t tap = 0; tap < 9; ++tap) to[tap] = data + tap * tap_floats + c * s.c_out;
    winograd_transform(WinogradTransform::weight_grad, g.tiles.m, from, to, s.c_out);
  }
  if (plain) return;
  float* sums = g.sums + chunk * g.epilogue.sums() * s.c_out;
  for (std::int64_t tap = 0; tap < 9; ++tap) {
    const Rect rect{tap * s.c_in + i0, count, 1, 0, s.c_out};
    g.epilogue.apply(rect, own.result + tap * tap_floats, s.c_out, sums, tap > 0, own.tiles);
  }
}

void run(const WinogradGradient& g, ThreadPool& pool) {
  g.x.compute_whole(pool, g.worker_base, g.worker_bytes);
  g.dy.compute_whole(pool, g.worker_base, g.worker_bytes);
  pool.run(g.parts * g.i_count * g.o_count, [&](std::int64_t task, int worker) {
    const Own own = own_memory(g, worker);
    std::fill(own.zeros, own.zeros + std::max(g.sizes.c_in, g.sizes.c_out), 0.0F);
    Block block{.i0 = task % g.i_count * g.i_block, .o0 = task / g.i_count % g.o_count * g.o_block};
    block.i = std::min(g.i_block, g.sizes.c_in - block.i0);
    block.o = std::min(g.o_block, g.sizes.c_out - block.o0);
    multiply(g, block, task / (g.i_count * g.o_count), own);
  });
  constexpr std::int64_t kRows = 8;
  const std::int64_t chunks = ceil_div(g.sizes.c_in, kRows);
  pool.run(chunks, [&](std::int64_t task, int worker) {
    const std::int64_t i0 = task * kRows;
    finish(g, i0, std::min(kRows, g.sizes.c_in - i0), task, own_memory(g, worker));
  });
  if (g.epilogue.sums() > 0) g.epilogue.finish_sums(g.sums, chunks);
}

void cut(WinogradGradient& g) {
  constexpr std::int64_t kWanted = 8;
  g.i_count = ceil_div(g.sizes.c_in, kChannels);
  g.o_count = ceil_div(g.sizes.c_out, kChannels);
  g.i_block = std::min(kChannels, g.sizes.c_in);
  g.o_block = std::min(round_up(kChannels, gemm_tile().lanes), g.sizes.c_out);
  g.block_rows = g.tiles.block_rows(kTiles);
  g.parts = std::min(ceil_div(kWanted, g.i_count * g.o_count), ceil_div(g.tiles.rows(), g.block_rows));
  g.part_rows = ceil_div(g.tiles.rows(), g.parts);
  g.parts = ceil_div(g.tiles.rows(), g.part_rows);
  g.most = g.tiles.most_rows(g.block_rows, g.sizes.h);
}

std::shared_ptr<WinogradGradient> make(const KernelContext& context, std::int64_t m, Scratch& scratch) {
  auto g = std::make_shared<WinogradGradient>();
  const ConvSizes s = conv_sizes(context.graph, context.node, ConvPart::weight_grad);
  g->sizes = s;
  g->tiles = {m, s.n, s.oh, s.ow, s.pad_top, s.pad_left};
  g->x = GemmOperand(bind_operand(context, 0), s.n * s.h * s.w, s.c_in);
  g->dy = GemmOperand(bind_operand(context, 1), s.n * s.oh * s.ow, s.c_out);
  g->epilogue = TileEpilogue(context, 9 * s.c_in, s.c_out);
  cut(*g);
  g->x.place(scratch, g->o_count);
  g->dy.place(scratch, g->i_count);
  g->products = scratch.floats(g->parts * g->part_floats());
  g->sums = scratch.floats(s.c_in * g->epilogue.sums() * s.c_out);
  Scratch own(nullptr);
  static_cast<void>(Own(*g, own));
  g->worker_bytes = own.used();
  g->worker_base = scratch.bytes(own.used() * context.threads);
  return g;
}

}  // namespace

Kernel prepare_winograd_weight_grad(const KernelContext& context, std::int64_t m) {
  Scratch scratch(context.scratch);
  return [g = make(context, m, scratch)](ThreadPool& pool) { run(*g, pool); };
}

std::int64_t winograd_weight_grad_workspace(const Graph& graph, const Node& node, std::int64_t m, int threads) {
  Scratch scratch(nullptr);
  static_cast<void>(make(counting_context(graph, node, threads), m, scratch));
  return scratch.used();
}

}  // namespace stoker::cpu
