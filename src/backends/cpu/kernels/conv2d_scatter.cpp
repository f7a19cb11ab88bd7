// conv2d_input_grad the other way round: each pixel of dy is multiplied by all taps at once, and the products are added
// to the pixels of dx that they belong to. Nothing is multiplied with padding, and few input channels still fill whole
// vectors: N is (tap, channel). A task has whole images, so that no two tasks add to one pixel.
#include <algorithm>
#include <memory>

#include "backends/cpu/kernels/conv2d.h"

namespace stoker::cpu {
namespace {

constexpr std::int64_t kRows = 112;  // pixels of dy multiplied at a time
constexpr std::int64_t kDepth = 256;

struct Scatter {
  ConvSizes sizes;
  GemmOperand dy;
  const float* weights = nullptr;
  TileEpilogue epilogue;
  std::int64_t images = 1;  // a task
  float* packed = nullptr;  // [panel][c_out][width]
  float* sums = nullptr;
  std::byte* worker_base = nullptr;
  std::int64_t worker_bytes = 0;

  [[nodiscard]] std::int64_t width() const { return sizes.kh * sizes.kw * sizes.c_in; }
  [[nodiscard]] std::int64_t image_floats() const { return sizes.h * sizes.w * sizes.c_in; }
};

struct Own {
  std::byte* tiles = nullptr;
  float* a = nullptr;
  float* products = nullptr;  // [pixel][tap][channel]
  float* result = nullptr;    // dx of the task's images, for the epilogue

  Own(const Scatter& s, Scratch& scratch) {
    tiles = scratch.bytes(s.dy.needs_tiles() || !s.epilogue.is_plain() ? kTileScratchBytes : 0);
    a = scratch.floats(s.dy.stands() ? 0 : kRows * padded_stride(s.sizes.c_out));
    products = scratch.floats(kRows * padded_stride(s.width()));
    result = scratch.floats(s.epilogue.is_plain() ? 0 : s.images * s.image_floats());
  }
};

// The products of `rows` pixels of dy from `row` on.
void multiply(const Scatter& s, std::int64_t row, std::int64_t rows, const Own& own) {
  const std::int64_t depth = s.sizes.c_out;
  const std::int64_t columns = gemm_tile().columns;
  const RectView a = s.dy.view({row, rows, 1, 0, depth}, true, own.a, own.tiles);
  for (std::int64_t k0 = 0; k0 < depth; k0 += kDepth) {
    gemm_block({.m = rows,
                .n = s.width(),
                .k = std::min(kDepth, depth - k0),
                .a = a.data + k0,
                .a_row = a.stride,
                .a_k = 1,
                .b = s.packed + k0 * columns,
                .b_panel = depth * columns,
                .b_k = columns,
                .c = own.products,
                .c_row = padded_stride(s.width()),
                .accumulate = k0 > 0});
  }
}

// Adds one pixel's products to its image. With dilation 1 a row of taps is a row of dx.
void add_pixel(const ConvSizes& s, std::int64_t oh, std::int64_t ow, const float* products, float* image) {
  const std::int64_t taps = s.dilation_w == 1 ? s.kw : 1;
  for (std::int64_t i = 0; i < s.kh; ++i) {
    const std::int64_t h = oh * s.stride_h - s.pad_top + i * s.dilation_h;
    if (h < 0 || h >= s.h) continue;
    for (std::int64_t j = 0; j < s.kw; j += taps) {
      const std::int64_t w = ow * s.stride_w - s.pad_left + j * s.dilation_w;
      const std::int64_t begin = std::max<std::int64_t>(0, -w);
      const std::int64_t end = std::min(taps, s.w - w);
      const float* from = products + (i * s.kw + j + begin) * s.c_in;
      float* to = image + (h * s.w + w + begin) * s.c_in;
      for (std::int64_t c = 0; c < (end - begin) * s.c_in; ++c) to[c] += from[c];
    }
  }
}

void run_task(const Scatter& s, std::int64_t task, const Own& own) {
  const ConvSizes& z = s.sizes;
  const std::int64_t first = task * s.images;
  const std::int64_t images = std::min(s.images, z.n - first);
  const std::int64_t pixels = z.oh * z.ow;
  float* result = s.epilogue.is_plain() ? s.epilogue.plain_data() + first * s.image_floats() : own.result;
  std::fill(result, result + images * s.image_floats(), 0.0F);
  for (std::int64_t row = 0; row < images * pixels; row += kRows) {
    const std::int64_t rows = std::min(kRows, images * pixels - row);
    multiply(s, first * pixels + row, rows, own);
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t pixel = (row + r) % pixels;
      add_pixel(z, pixel / z.ow, pixel % z.ow, own.products + r * padded_stride(s.width()),
                result + (row + r) / pixels * s.image_floats());
    }
  }
  if (s.epilogue.is_plain()) return;
  const Rect rect{first * z.h * z.w, images * z.h * z.w, 1, 0, z.c_in};
  s.epilogue.apply(rect, result, z.c_in, s.sums + task * s.epilogue.sums() * z.c_in, false, own.tiles);
}

void run(const Scatter& s, ThreadPool& pool) {
  const std::int64_t columns = gemm_tile().columns;
  pack_panels_transposed(s.weights, s.sizes.c_out, s.sizes.c_out, s.width(), s.packed, s.sizes.c_out * columns);
  const std::int64_t tasks = ceil_div(s.sizes.n, s.images);
  pool.run(tasks, [&](std::int64_t task, int worker) {
    Scratch scratch(s.worker_base + worker * s.worker_bytes);
    run_task(s, task, Own(s, scratch));
  });
  if (s.epilogue.sums() > 0) s.epilogue.finish_sums(s.sums, tasks);
}

std::shared_ptr<Scatter> make(const KernelContext& context, Scratch& scratch) {
  constexpr std::int64_t kWanted = 16;
  auto s = std::make_shared<Scatter>();
  const ConvSizes z = conv_sizes(context.graph, context.node, ConvPart::input_grad);
  s->sizes = z;
  s->dy = GemmOperand(bind_operand(context, 0), z.n * z.oh * z.ow, z.c_out);
  s->weights = bind_operand(context, 1).plain_data();
  s->epilogue = TileEpilogue(context, z.n * z.h * z.w, z.c_in);
  s->images = std::clamp<std::int64_t>(ceil_div(kRows, z.oh * z.ow), 1, ceil_div(z.n, kWanted));
  s->packed = scratch.floats(round_up(s->width(), gemm_tile().columns) * z.c_out);
  s->sums = scratch.floats(ceil_div(z.n, s->images) * s->epilogue.sums() * z.c_in);
  Scratch own(nullptr);
  static_cast<void>(Own(*s, own));
  s->worker_bytes = own.used();
  s->worker_base = scratch.bytes(own.used() * context.threads);
  return s;
}

}  // namespace

// In multiply-adds; loading one number of the patch matrix costs about 8 of them, adding a product to dx 24.
bool conv2d_prefers_scatter(const ConvSizes& s) {
  const std::int64_t lanes = gemm_tile().lanes;
  const std::int64_t taps = s.kh * s.kw;
  // Each pixel of dx meets taps / stride^2 of them, those that fall on padding too.
  const std::int64_t patches = s.h * s.w * taps / (s.stride_h * s.stride_w) * s.c_out * (round_up(s.c_in, lanes) + 8);
  const std::int64_t scatter = s.oh * s.ow * (s.c_out * round_up(taps * s.c_in, lanes) + 24 * taps * s.c_in);
  return s.groups == 1 && scatter < patches;
}

Kernel prepare_conv2d_scatter(const KernelContext& context) {
  Scratch scratch(context.scratch);
  return [s = make(context, scratch)](ThreadPool& pool) { run(*s, pool); };
}

std::int64_t conv2d_scatter_workspace(const Graph& graph, const Node& node, int threads) {
  Scratch scratch(nullptr);
  static_cast<void>(make(counting_context(graph, node, threads), scratch));
  return scratch.used();
}

}  // namespace stoker::cpu
