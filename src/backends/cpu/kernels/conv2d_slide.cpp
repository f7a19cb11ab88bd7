#include "backends/cpu/kernels/conv2d_slide.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace stoker::cpu {
namespace {

constexpr std::int64_t kImageFloats = 128 * 1024;
constexpr std::int64_t kFewestImages = 8;
constexpr std::int64_t kFewestPixels = 6;    // of an output row: fewer would leave the register tile empty
constexpr std::int64_t kShortestPiece = 24;  // of K: less would load and store the results too often
constexpr std::int64_t kBlockPixels = 128;   // of finished output rows: a block for the epilogue
constexpr std::int64_t kGradientFloats = 4096;
constexpr std::int64_t kGradientParts = 16;

// An image with zeros around it, as far as any tap reaches.
struct PaddedImage {
  std::int64_t h = 0, w = 0;

  PaddedImage() = default;
  explicit PaddedImage(const ConvSizes& s)
      : h(std::max((s.oh - 1) * s.stride_h + (s.kh - 1) * s.dilation_h + 1, s.pad_top + s.h)),
        w(std::max((s.ow - 1) * s.stride_w + s.kw, s.pad_left + s.w)) {}

  [[nodiscard]] std::int64_t floats(const ConvSizes& s) const { return h * w * s.c_in; }

  void clear(const ConvSizes& s, float* to) const {
    std::memset(to, 0, static_cast<std::size_t>(floats(s)) * sizeof(float));
  }
  // The margins are zero already and stay so.
  void load(const ConvSizes& s, const GemmOperand& x, std::int64_t number, float* to, std::byte* tiles) const {
    if (s.w == w) {
      x.load({number * s.h * s.w, s.h * s.w, 1, 0, s.c_in}, to + s.pad_top * w * s.c_in, s.c_in, tiles);
      return;
    }
    for (std::int64_t row = 0; row < s.h; ++row) {
      x.load({(number * s.h + row) * s.w, s.w, 1, 0, s.c_in}, to + ((s.pad_top + row) * w + s.pad_left) * s.c_in,
             s.c_in, tiles);
    }
  }
};

// The padded image as every kernel row of every pixel sees it: [ow][h][kw][c_in], so that a pixel's whole window,
// [kh][kw][c_in], is one run.
struct Columns {
  std::int64_t piece = 0;  // kw * c_in
  std::int64_t h = 0;

  Columns() = default;
  Columns(const ConvSizes& s, const PaddedImage& image) : piece(s.kw * s.c_in), h(image.h) {}

  [[nodiscard]] std::int64_t stride() const { return h * piece; }  // from a pixel of a row to the next
  void expand(const ConvSizes& s, const PaddedImage& image, const float* from, float* to) const {
    if (piece <= kAtOnce) {
      copy<true>(s, image, from, to);
    } else {
      copy<false>(s, image, from, to);
    }
  }

 private:
  static constexpr std::int64_t kAtOnce = 8;

  // Short pieces are copied by eight floats; the next piece overwrites what was too much, both buffers have slack.
  template <bool kShort>
  void copy(const ConvSizes& s, const PaddedImage& image, const float* from, float* to) const {
    for (std::int64_t w = 0; w < s.ow; ++w) {
      const float* source = from + w * s.stride_w * s.c_in;
      for (std::int64_t row = 0; row < h; ++row) {
        std::memcpy(to + w * stride() + row * piece, source + row * image.w * s.c_in,
                    (kShort ? kAtOnce : static_cast<std::size_t>(piece)) * sizeof(float));
      }
    }
  }
};

// Where a product over the windows of one output row finds them: `pieces` runs of `depth` floats for each pixel.
struct Windows {
  bool expanded = false;
  std::int64_t pixel = 0;       // floats from a pixel to the next
  std::int64_t row = 0;         // from an output row to the next
  std::int64_t kernel_row = 0;  // from a piece to the next
  std::int64_t pieces = 0, depth = 0;

  Windows() = default;
  Windows(const ConvSizes& s, const PaddedImage& image, const Columns& columns, bool expand) : expanded(expand) {
    const std::int64_t image_row = image.w * s.c_in;
    pixel = expand ? columns.stride() : s.stride_w * s.c_in;
    row = s.stride_h * (expand ? columns.piece : image_row);
    kernel_row = s.dilation_h * image_row;
    pieces = expand ? 1 : s.kh;
    depth = expand ? s.kh * columns.piece : columns.piece;
  }
};

bool expands(const ConvSizes& s) { return s.kw * s.c_in < kShortestPiece && s.dilation_h == 1; }

struct Slide {
  ConvSizes sizes;
  PaddedImage padded;
  Columns columns;
  Windows windows;
  GemmOperand x;
  const float* weights = nullptr;
  TileEpilogue epilogue;
  float* sums = nullptr;
  float* packed = nullptr;  // panels of [kh][kw][c_in] rows
  std::int64_t rows_at_once = 0;
  std::int64_t stride = 0;  // of a block of results
  GemmWorkers workers;

  [[nodiscard]] std::int64_t depth() const { return sizes.kh * sizes.kw * sizes.c_in; }
};

// Results of `rows` output rows from `oh` on. A piece of the weights stays in L1 for all of them. Where there is room
// behind each row of results, whole panels are computed: what fills them up is zero.
void multiply_rows(const Slide& c, const float* image, std::int64_t oh, std::int64_t rows, float* to,
                   std::int64_t stride) {
  const ConvSizes& s = c.sizes;
  const Windows& windows = c.windows;
  const std::int64_t width = gemm_tile().columns;
  const std::int64_t whole = round_up(s.c_out, width);
  for (std::int64_t piece = 0; piece < windows.pieces; ++piece) {
    for (std::int64_t r = 0; r < rows; ++r) {
      gemm_block({.m = s.ow,
                  .n = stride >= whole ? whole : s.c_out,
                  .k = windows.depth,
                  .a = image + (oh + r) * windows.row + piece * windows.kernel_row,
                  .a_row = windows.pixel,
                  .a_k = 1,
                  .b = c.packed + piece * windows.depth * width,
                  .b_panel = c.depth() * width,
                  .b_k = width,
                  .c = to + r * s.ow * stride,
                  .c_row = stride,
                  .accumulate = piece > 0});
    }
  }
}

void run_image(const Slide& c, std::int64_t number, int worker) {
  const ConvSizes& s = c.sizes;
  const GemmWorker own = c.workers.worker(worker);
  c.padded.clear(s, own.a);
  c.padded.load(s, c.x, number, own.a, own.tiles);
  if (c.windows.expanded) c.columns.expand(s, c.padded, own.a, own.spare);
  const float* image = c.windows.expanded ? own.spare : own.a;
  for (std::int64_t oh = 0; oh < s.oh; oh += c.rows_at_once) {
    const std::int64_t rows = std::min(c.rows_at_once, s.oh - oh);
    const Rect rect{(number * s.oh + oh) * s.ow, rows * s.ow, 1, 0, s.c_out};
    const bool plain = c.epilogue.is_plain();
    float* block = plain ? c.epilogue.plain_data() + rect.row * s.c_out : own.c;
    const std::int64_t stride = plain ? s.c_out : c.stride;
    multiply_rows(c, image, oh, rows, block, stride);
    if (!plain) {
      c.epilogue.apply(rect, block, stride, c.sums + number * c.epilogue.sums() * s.c_out, oh > 0, own.tiles);
    }
  }
}

std::shared_ptr<Slide> make(const KernelContext& context, Scratch& scratch) {
  auto c = std::make_shared<Slide>();
  const ConvSizes s = conv_sizes(context.graph, context.node, ConvPart::forward);
  c->sizes = s;
  c->padded = PaddedImage(s);
  c->columns = Columns(s, c->padded);
  c->windows = Windows(s, c->padded, c->columns, expands(s));
  c->x = GemmOperand(bind_operand(context, 0), s.n * s.h * s.w, s.c_in);
  c->weights = bind_operand(context, 1).plain_data();
  c->epilogue = TileEpilogue(context, s.n * s.oh * s.ow, s.c_out);
  c->packed = scratch.floats(round_up(s.c_out, gemm_tile().columns) * c->depth());
  if (c->epilogue.sums() > 0) c->sums = scratch.floats(s.n * c->epilogue.sums() * s.c_out);
  c->rows_at_once = std::clamp<std::int64_t>(kBlockPixels / s.ow, 1, s.oh);
  c->stride = padded_stride(round_up(s.c_out, gemm_tile().columns));
  c->workers.buffers = {.a = c->padded.floats(s) + PatchMatrix::kSlack,
                        .c = c->epilogue.is_plain() ? 0 : c->rows_at_once * s.ow * c->stride,
                        .spare = c->windows.expanded ? s.ow * c->columns.stride() + PatchMatrix::kSlack : 0,
                        .tiles = c->x.needs_tiles() || !c->epilogue.is_plain()};
  c->workers.place(scratch, context.threads);
  return c;
}

// dw of a few input channels. Rows of dy are the right operand, of which whole panels are read: what is read beyond a
// row is the next one and ends in columns that nobody looks at. Only the last image has nothing behind it, and is
// copied.
struct SlideGradient {
  ConvSizes sizes;
  PaddedImage padded;
  Columns columns;
  Windows windows;
  GemmOperand x, dy;
  TileEpilogue epilogue;
  float* partial = nullptr;  // [part][kh][kw][c_in][stride]
  float* sums = nullptr;
  std::int64_t stride = 0;
  std::int64_t parts = 0;
  GemmWorkers workers;

  [[nodiscard]] std::int64_t rows() const { return sizes.kh * sizes.kw * sizes.c_in; }
};

void run_part(const SlideGradient& g, std::int64_t part, int worker) {
  const ConvSizes& s = g.sizes;
  const GemmWorker own = g.workers.worker(worker);
  float* dw = g.partial + part * g.rows() * g.stride;
  std::memset(dw, 0, static_cast<std::size_t>(g.rows() * g.stride) * sizeof(float));
  g.padded.clear(s, own.a);
  const std::int64_t pixels = s.oh * s.ow;
  const std::int64_t whole = round_up(s.c_out, gemm_tile().columns);
  std::memset(own.b, 0, static_cast<std::size_t>(pixels * g.stride) * sizeof(float));
  const Windows& windows = g.windows;
  for (std::int64_t number = part * s.n / g.parts; number < (part + 1) * s.n / g.parts; ++number) {
    g.padded.load(s, g.x, number, own.a, own.tiles);
    if (windows.expanded) g.columns.expand(s, g.padded, own.a, own.spare);
    const float* image = windows.expanded ? own.spare : own.a;
    const std::int64_t behind = (s.n - 1 - number) * pixels * s.c_out;
    const bool in_place = g.dy.stands() && behind >= gemm_tile().columns;
    const float* dy = in_place ? g.dy.data() + number * pixels * s.c_out : own.b;
    const std::int64_t dy_stride = in_place ? s.c_out : g.stride;
    if (!in_place) g.dy.load({number * pixels, pixels, 1, 0, s.c_out}, own.b, g.stride, own.tiles);
    for (std::int64_t piece = 0; piece < windows.pieces; ++piece) {
      for (std::int64_t oh = 0; oh < s.oh; ++oh) {
        gemm_block({.m = windows.depth,
                    .n = whole,
                    .k = s.ow,
                    .a = image + oh * windows.row + piece * windows.kernel_row,
                    .a_row = 1,
                    .a_k = windows.pixel,
                    .b = dy + oh * s.ow * dy_stride,
                    .b_panel = gemm_tile().columns,
                    .b_k = dy_stride,
                    .c = dw + piece * windows.depth * g.stride,
                    .c_row = g.stride,
                    .accumulate = true});
      }
    }
  }
}

void finish(const SlideGradient& g, ThreadPool& pool) {
  sum_pairwise(g.partial, g.parts, g.rows() * g.stride);
  const Rect rect{0, g.rows(), 1, 0, g.sizes.c_out};
  if (g.epilogue.is_plain()) {
    copy_rows(g.partial, g.stride, rect.rows, rect.channels, g.epilogue.plain_data(), g.sizes.c_out);
    return;
  }
  g.epilogue.apply(rect, g.partial, g.stride, g.sums, false, g.workers.worker(0).tiles);
  if (g.epilogue.sums() > 0) g.epilogue.finish_sums(g.sums, 1, &pool);
}

std::shared_ptr<SlideGradient> make_gradient(const KernelContext& context, Scratch& scratch) {
  auto g = std::make_shared<SlideGradient>();
  const ConvSizes s = conv_sizes(context.graph, context.node, ConvPart::weight_grad);
  g->sizes = s;
  g->padded = PaddedImage(s);
  g->columns = Columns(s, g->padded);
  g->windows = Windows(s, g->padded, g->columns, expands(s));
  g->x = GemmOperand(bind_operand(context, 0), s.n * s.h * s.w, s.c_in);
  g->dy = GemmOperand(bind_operand(context, 1), s.n * s.oh * s.ow, s.c_out);
  g->epilogue = TileEpilogue(context, g->rows(), s.c_out);
  g->stride = padded_stride(round_up(s.c_out, gemm_tile().columns));
  g->parts = std::min(kGradientParts, s.n);
  g->partial = scratch.floats(g->parts * g->rows() * g->stride);
  if (g->epilogue.sums() > 0) g->sums = scratch.floats(g->epilogue.sums() * s.c_out);
  g->workers.buffers = {.a = g->padded.floats(s) + PatchMatrix::kSlack,
                        .b = s.oh * s.ow * g->stride,
                        .spare = g->windows.expanded ? s.ow * g->columns.stride() + PatchMatrix::kSlack : 0,
                        .tiles = g->x.needs_tiles() || g->dy.needs_tiles() || !g->epilogue.is_plain()};
  g->workers.place(scratch, context.threads);
  return g;
}

bool fits(const ConvSizes& s) {
  return s.groups == 1 && s.dilation_w == 1 && s.kh * s.kw > 1 && s.n >= kFewestImages && s.ow >= kFewestPixels &&
         PaddedImage(s).floats(s) <= kImageFloats;
}

}  // namespace

bool slides(const ConvSizes& s) { return fits(s) && (s.kw * s.c_in >= kShortestPiece || expands(s)); }

bool slides_weight_grad(const ConvSizes& s) {
  return fits(s) && s.kh * s.kw * s.c_in * s.c_out <= kGradientFloats && s.oh * s.ow * s.c_out <= kImageFloats;
}

Kernel prepare_slide(const KernelContext& context) {
  Scratch scratch(context.scratch);
  return [c = make(context, scratch)](ThreadPool& pool) {
    const std::int64_t width = gemm_tile().columns;
    pack_panels(c->weights, c->sizes.c_out, c->depth(), c->sizes.c_out, c->packed, c->depth() * width);
    pool.run(c->sizes.n, [&](std::int64_t image, int worker) { run_image(*c, image, worker); });
    if (c->epilogue.sums() > 0) c->epilogue.finish_sums(c->sums, c->sizes.n, &pool);
  };
}

std::int64_t slide_workspace(const Graph& graph, const Node& node, int threads) {
  Scratch scratch(nullptr);
  static_cast<void>(make(counting_context(graph, node, threads), scratch));
  return scratch.used();
}

Kernel prepare_slide_weight_grad(const KernelContext& context) {
  Scratch scratch(context.scratch);
  return [g = make_gradient(context, scratch)](ThreadPool& pool) {
    pool.run(g->parts, [&](std::int64_t part, int worker) { run_part(*g, part, worker); });
    finish(*g, pool);
  };
}

std::int64_t slide_weight_grad_workspace(const Graph& graph, const Node& node, int threads) {
  Scratch scratch(nullptr);
  static_cast<void>(make_gradient(counting_context(graph, node, threads), scratch));
  return scratch.used();
}

}  // namespace stoker::cpu
