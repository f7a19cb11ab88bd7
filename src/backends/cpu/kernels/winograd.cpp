// Winograd's conv2d and conv2d_input_grad (a convolution with the flipped kernel). A task takes a block of tiles and
// some result channels through all three stages, so that transformed data never leaves L2; weights are transformed and
// packed once a call.
#include "backends/cpu/kernels/winograd.h"

#include <algorithm>
#include <memory>

namespace stoker::cpu {
namespace {

constexpr std::int64_t kTiles = 32;      // of a block
constexpr std::int64_t kDepth = 128;     // source channels transformed at a time
constexpr std::int64_t kMaxWidth = 128;  // result channels of a task

struct Winograd {
  ConvSizes sizes;
  bool transposed = false;  // the input gradient
  WinogradTiles tiles;
  std::int64_t source_h = 0, source_w = 0;
  std::int64_t depth = 0, width = 0;        // channels of source and result
  std::int64_t block_rows = 0, blocks = 0;  // tile rows a task
  std::int64_t k_block = 0, n_block = 0;
  WinogradTiles::Rows most;  // image rows of a task
  GemmOperand image;
  const float* weights = nullptr;
  TileEpilogue epilogue;
  float* packed = nullptr;  // [square][panel][depth][panel width]
  float* sums = nullptr;
  std::byte* worker_base = nullptr;
  std::int64_t worker_bytes = 0;

  [[nodiscard]] std::int64_t block_tiles() const { return block_rows * tiles.columns(); }
  [[nodiscard]] std::int64_t plane_floats() const { return round_up(width, gemm_tile().columns) * depth; }
};

// A worker's memory.
struct Own {
  std::byte* tiles = nullptr;
  float* source = nullptr;   // [square][tile][k_block]
  float* product = nullptr;  // [square][tile][n_block]; the weights' transform uses it too
  float* window = nullptr;   // computed image rows
  float* result = nullptr;   // finished rows, for the epilogue
  float* zeros = nullptr;
  float* outside = nullptr;

  Own(const Winograd& w, Scratch& scratch) {
    const std::int64_t square = w.tiles.square();
    const std::int64_t block = w.block_tiles();
    const GemmTile tile = gemm_tile();
    tiles = scratch.bytes(w.image.needs_tiles() || !w.epilogue.is_plain() ? kTileScratchBytes : 0);
    source = scratch.floats(square * block * padded_stride(w.k_block));
    product = scratch.floats(
        square * std::max(block * padded_stride(w.n_block), tile.columns * padded_stride(2 * tile.columns)));
    window = scratch.floats(w.image.stands() ? 0 : w.most.source * w.source_w * w.depth);
    result = scratch.floats(w.epilogue.is_plain() ? 0 : w.most.result * w.tiles.w * padded_stride(w.n_block));
    zeros = scratch.floats(w.depth);
    outside = scratch.floats(w.n_block);
  }
};

Own own_memory(const Winograd& w, int worker) {
  Scratch scratch(w.worker_base + worker * w.worker_bytes);
  return {w, scratch};
}

// Transforms and packs the weights of one panel's worth of input channels.
void pack_weights(const Winograd& w, std::int64_t task, const Own& own) {
  const ConvSizes& s = w.sizes;
  const std::int64_t width = gemm_tile().columns;
  const std::int64_t stride = padded_stride(2 * width);
  const std::int64_t plane = width * stride;
  const std::int64_t c0 = task * width;
  const std::int64_t count = std::min(width, s.c_in - c0);
  const float* from[9];
  float* to[kWinogradMaxSquare];
  for (std::int64_t o0 = 0; o0 < s.c_out; o0 += 2 * width) {
    const std::int64_t outs = std::min(2 * width, s.c_out - o0);
    for (std::int64_t c = 0; c < count; ++c) {
      for (std::int64_t tap = 0; tap < 9; ++tap) {
        const std::int64_t source = w.transposed ? 8 - tap : tap;
        from[tap] = w.weights + (source * s.c_in + c0 + c) * s.c_out + o0;
      }
      for (std::int64_t e = 0; e < w.tiles.square(); ++e) to[e] = own.product + e * plane + c * stride;
      winograd_transform(WinogradTransform::weight, w.tiles.m, from, to, outs);
    }
    for (std::int64_t e = 0; e < w.tiles.square(); ++e) {
      const float* block = own.product + e * plane;
      float* packed = w.packed + e * w.plane_floats();
      if (w.transposed) {
        pack_panels_transposed(block, stride, outs, count, packed + c0 * w.depth + o0 * width, w.depth * width);
      } else {
        pack_panels(block, stride, count, outs, packed + o0 * w.depth + c0 * width, w.depth * width);
      }
    }
  }
}

struct Block {
  std::int64_t row = 0, rows = 0;  // of tiles
  std::int64_t n0 = 0, n = 0;      // result channels
};

// The products of all elements of the tiles' squares.
void multiply(const Winograd& w, const Block& block, const Own& own) {
  const WinogradImage image = winograd_source(w.image, w.tiles, block.row, block.rows,
                                              {w.source_h, w.source_w, 0, w.depth}, own.window, own.tiles);
  const std::int64_t width = gemm_tile().columns;
  const std::int64_t stride = padded_stride(w.k_block);
  const std::int64_t plane = w.block_tiles() * stride;
  const std::int64_t product_stride = padded_stride(w.n_block);
  for (std::int64_t k0 = 0; k0 < w.depth; k0 += w.k_block) {
    const std::int64_t k = std::min(w.k_block, w.depth - k0);
    winograd_transform_source(w.tiles, image, block.row, block.rows, k0, k, own.zeros, own.source, plane, stride);
    for (std::int64_t e = 0; e < w.tiles.square(); ++e) {
      gemm_block({.m = block.rows * w.tiles.columns(),
                  .n = block.n,
                  .k = k,
                  .a = own.source + e * plane,
                  .a_row = stride,
                  .a_k = 1,
                  .b = w.packed + e * w.plane_floats() + block.n0 * w.depth + k0 * width,
                  .b_panel = w.depth * width,
                  .b_k = width,
                  .c = own.product + e * w.block_tiles() * product_stride,
                  .c_row = product_stride,
                  .accumulate = k0 > 0});
    }
  }
}

// Transforms the products back into result pixels, in place or for the epilogue.
void finish(const Winograd& w, const Block& block, const Own& own) {
  const bool plain = w.epilogue.is_plain();
  const WinogradTiles::Span rows = w.tiles.result_rows(block.row, block.rows);
  const std::int64_t product_stride = padded_stride(w.n_block);
  const std::int64_t stride = plain ? w.width : product_stride;
  float* data = plain ? w.epilogue.plain_data() + block.n0 : own.result;
  const float* from[kWinogradMaxSquare];
  float* to[kWinogradMaxSquare];
  for (std::int64_t t = 0; t < block.rows * w.tiles.columns(); ++t) {
    for (std::int64_t e = 0; e < w.tiles.square(); ++e) {
      from[e] = own.product + (e * w.block_tiles() + t) * product_stride;
    }
    w.tiles.result_table(data, plain ? 0 : rows.first, stride, block.row + t / w.tiles.columns(), t % w.tiles.columns(),
                         own.outside, to);
    winograd_transform(WinogradTransform::output, w.tiles.m, from, to, block.n);
  }
  if (plain) return;
  const Rect rect{rows.first * w.tiles.w, rows.count * w.tiles.w, 1, block.n0, block.n};
  float* sums = w.sums + block.row / w.block_rows * w.epilogue.sums() * w.width;
  w.epilogue.apply(rect, own.result, stride, sums, false, own.tiles);
}

void run(const Winograd& w, ThreadPool& pool) {
  w.image.compute_whole(pool, w.worker_base, w.worker_bytes);
  pool.run(ceil_div(w.sizes.c_in, gemm_tile().columns),
           [&](std::int64_t task, int worker) { pack_weights(w, task, own_memory(w, worker)); });
  // Neighbouring tasks share the weights of their result channels.
  pool.run(w.blocks * ceil_div(w.width, w.n_block), [&](std::int64_t task, int worker) {
    const Own own = own_memory(w, worker);
    std::fill(own.zeros, own.zeros + w.depth, 0.0F);
    Block block{.row = task % w.blocks * w.block_rows, .n0 = task / w.blocks * w.n_block};
    block.rows = std::min(w.block_rows, w.tiles.rows() - block.row);
    block.n = std::min(w.n_block, w.width - block.n0);
    multiply(w, block, own);
    finish(w, block, own);
  });
  if (w.epilogue.sums() > 0) w.epilogue.finish_sums(w.sums, w.blocks);
}

void cut(Winograd& w) {
  constexpr std::int64_t kWanted = 8;
  const std::int64_t columns = gemm_tile().columns;
  w.block_rows = w.tiles.block_rows(kTiles);
  std::int64_t n_count = ceil_div(w.width, kMaxWidth);
  while (ceil_div(w.tiles.rows(), w.block_rows) * n_count < kWanted && w.width / n_count >= 2 * columns) n_count *= 2;
  w.blocks = ceil_div(w.tiles.rows(), w.block_rows);
  w.n_block = std::min(round_up(ceil_div(w.width, n_count), columns), w.width);
  w.k_block = std::min(w.depth, kDepth);
  w.most = w.tiles.most_rows(w.block_rows, w.source_h);
}

std::shared_ptr<Winograd> make(const KernelContext& context, ConvPart part, std::int64_t m, Scratch& scratch) {
  auto w = std::make_shared<Winograd>();
  const ConvSizes s = conv_sizes(context.graph, context.node, part);
  w->sizes = s;
  w->transposed = part == ConvPart::input_grad;
  w->source_h = w->transposed ? s.oh : s.h;
  w->source_w = w->transposed ? s.ow : s.w;
  w->depth = w->transposed ? s.c_out : s.c_in;
  w->width = w->transposed ? s.c_in : s.c_out;
  w->tiles = w->transposed ? WinogradTiles{m, s.n, s.h, s.w, 2 - s.pad_top, 2 - s.pad_left}
                           : WinogradTiles{m, s.n, s.oh, s.ow, s.pad_top, s.pad_left};
  w->image = GemmOperand(bind_operand(context, 0), s.n * w->source_h * w->source_w, w->depth);
  w->weights = bind_operand(context, 1).plain_data();
  w->epilogue = TileEpilogue(context, s.n * w->tiles.h * w->tiles.w, w->width);
  cut(*w);
  w->image.place(scratch, ceil_div(w->width, w->n_block));
  w->packed = scratch.floats(w->tiles.square() * w->plane_floats());
  w->sums = scratch.floats(w->blocks * w->epilogue.sums() * w->width);
  Scratch own(nullptr);
  static_cast<void>(Own(*w, own));
  w->worker_bytes = own.used();
  w->worker_base = scratch.bytes(own.used() * context.threads);
  return w;
}

}  // namespace

Kernel prepare_winograd(const KernelContext& context, ConvPart part, std::int64_t m) {
  Scratch scratch(context.scratch);
  return [w = make(context, part, m, scratch)](ThreadPool& pool) { run(*w, pool); };
}

std::int64_t winograd_workspace(const Graph& graph, const Node& node, ConvPart part, std::int64_t m, int threads) {
  Scratch scratch(nullptr);
  static_cast<void>(make(counting_context(graph, node, threads), part, m, scratch));
  return scratch.used();
}

}  // namespace stoker::cpu
