// conv2d and conv2d_input_grad as products of a patch matrix and the weights. The input gradient of a strided
// convolution falls apart by the phase of the pixel: each class (h % stride, w % stride) sees its own taps of dy, and
// is a convolution of stride 1. Weights are packed once a call.
#include "backends/cpu/kernels/conv2d.h"

#include <algorithm>
#include <array>
#include <memory>

#include "backends/cpu/kernels/conv2d_scatter.h"
#include "backends/cpu/kernels/conv2d_slide.h"
#include "backends/cpu/kernels/matmul.h"
#include "backends/cpu/kernels/winograd.h"

namespace stoker::cpu {
namespace {

// Where a phase's grid lies in the result.
struct Target {
  std::int64_t h = 0, w = 0;    // of the result
  std::int64_t h0 = 0, w0 = 0;  // its first pixel
  std::int64_t step_h = 1, step_w = 1;
  std::int64_t grid_h = 0, grid_w = 0;

  [[nodiscard]] bool is_all() const { return grid_h == h && grid_w == w; }
};

struct ConvPhase {
  PatchMatrix patches;
  std::vector<std::int64_t> taps;  // of the weights, in the order of the patch matrix
  Target target;
  GemmPlan plan;
  float* packed = nullptr;  // [group][panel][K][width]
  std::int64_t chunk0 = 0;  // of the channel sums
};

struct Convolution {
  ConvSizes sizes;
  bool transposed = false;  // the input gradient: weights [Cin, Cout] are read as [Cout, Cin]
  GemmOperand image;
  const float* weights = nullptr;
  TileEpilogue epilogue;
  float* sums = nullptr;
  std::int64_t chunks = 0;
  std::vector<std::unique_ptr<ConvPhase>> phases;

  [[nodiscard]] std::int64_t depth() const { return transposed ? sizes.group_out() : sizes.group_in(); }
  [[nodiscard]] std::int64_t width() const { return transposed ? sizes.group_in() : sizes.group_out(); }
};

std::unique_ptr<ConvPhase> forward_phase(const ConvSizes& s) {
  auto phase = std::make_unique<ConvPhase>();
  for (std::int64_t i = 0; i < s.kh * s.kw; ++i) phase->taps.push_back(i);
  phase->patches = forward_patches(s);
  phase->target = {.h = s.oh, .w = s.ow, .grid_h = s.oh, .grid_w = s.ow};
  return phase;
}

// Pixels (h0 + i stride_h, w0 + j stride_w) of dx. Tap kh reaches oh = (h + pad - kh dilation) / stride where that is
// whole; taps are listed backwards, so that neighbours in dy are neighbours in the list.
std::unique_ptr<ConvPhase> gradient_phase(const ConvSizes& s, std::int64_t h0, std::int64_t w0) {
  auto phase = std::make_unique<ConvPhase>();
  std::vector<PatchMatrix::Tap> taps;
  for (std::int64_t i = s.kh * s.kw - 1; i >= 0; --i) {
    const std::int64_t h = h0 + s.pad_top - i / s.kw * s.dilation_h;
    const std::int64_t w = w0 + s.pad_left - i % s.kw * s.dilation_w;
    if (h % s.stride_h != 0 || w % s.stride_w != 0) continue;
    taps.push_back({.h = h / s.stride_h, .w = w / s.stride_w});
    phase->taps.push_back(i);
  }
  const std::int64_t grid_h = ceil_div(s.h - h0, s.stride_h);
  const std::int64_t grid_w = ceil_div(s.w - w0, s.stride_w);
  phase->patches = PatchMatrix({s.n, grid_h, grid_w, 1, 1}, s.oh, s.ow, s.c_out, s.groups, taps);
  phase->target = {s.h, s.w, h0, w0, s.stride_h, s.stride_w, grid_h, grid_w};
  return phase;
}

// Packs one tap's weights of one group: K rows [tap][depth].
void pack_tap(const Convolution& conv, const ConvPhase& phase, std::int64_t group, std::int64_t tap) {
  const ConvSizes& s = conv.sizes;
  const std::int64_t width = gemm_tile().columns;
  const std::int64_t k = phase.patches.columns();
  const float* from =
      conv.weights + phase.taps[static_cast<std::size_t>(tap)] * s.group_in() * s.c_out + group * s.group_out();
  float* to = phase.packed + group * round_up(conv.width(), width) * k + tap * conv.depth() * width;
  if (conv.transposed) {
    pack_panels_transposed(from, s.c_out, conv.depth(), conv.width(), to, k * width);
  } else {
    pack_panels(from, s.c_out, conv.depth(), conv.width(), to, k * width);
  }
}

void pack_weights(const Convolution& conv, const ConvPhase& phase, ThreadPool& pool) {
  const std::int64_t count = static_cast<std::int64_t>(phase.taps.size()) * conv.sizes.groups;
  const auto pack = [&](std::int64_t i) { pack_tap(conv, phase, i % conv.sizes.groups, i / conv.sizes.groups); };
  if (count * conv.depth() * conv.width() < kForkCopies) {
    for (std::int64_t i = 0; i < count; ++i) pack(i);
  } else {
    pool.run(count, [&](std::int64_t i, int) { pack(i); });
  }
}

GemmOperandA load_patches(const Convolution& conv, const ConvPhase& phase, const GemmRange& r, const GemmWorker& own) {
  const std::int64_t stride = padded_stride(phase.plan.k_block);
  const PatchMatrix::Block block{.group = r.batch, .row = r.m0, .rows = r.m, .column = r.k0, .columns = r.k};
  if (phase.patches.is_strided()) {
    phase.patches.strided(conv.image, block, own.a, stride, own.tiles);
  } else if (r.k > 0) {
    const PatchMatrix::Window window = phase.patches.window(conv.image, r.m0, r.m, own.spare);
    if (r.k0 == 0) phase.patches.compute_window(conv.image, window, own.spare, own.tiles);
    phase.patches.gather(window, block, own.a, stride);
  }
  return {.data = own.a, .row = stride, .k = 1};
}

// Stores a block of a phase whose pixels are scattered in the result, one grid row after another.
void store_scattered(const Convolution& conv, const ConvPhase& phase, const GemmRange& r, const float* block,
                     std::int64_t stride, const GemmWorker& own) {
  const Target& t = phase.target;
  const std::int64_t channel = r.batch * conv.width() + r.n0;
  const std::int64_t channels = conv.width() * conv.sizes.groups;
  float* sums = conv.sums + (phase.chunk0 + r.m0 / phase.plan.chunk_rows()) * conv.epilogue.sums() * channels;
  for (std::int64_t i = 0; i < r.m;) {
    const std::int64_t grid_row = (r.m0 + i) / t.grid_w;
    const std::int64_t grid_column = (r.m0 + i) % t.grid_w;
    const std::int64_t count = t.is_all() ? r.m : std::min(r.m - i, t.grid_w - grid_column);
    const std::int64_t row = grid_row / t.grid_h * t.h + t.h0 + grid_row % t.grid_h * t.step_h;
    const Rect rect{row * t.w + t.w0 + grid_column * t.step_w, count, t.step_w, channel, r.n};
    if (conv.epilogue.is_plain()) {
      copy_rows(block + i * stride, stride, count, r.n, conv.epilogue.plain_data() + rect.row * channels + channel,
                t.step_w * channels);
    } else {
      conv.epilogue.apply(rect, block + i * stride, stride, sums, i > 0, own.tiles);
    }
    i += count;
  }
}

void plan_phase(Convolution& conv, ConvPhase& phase, Scratch& scratch) {
  GemmPlan& plan = phase.plan;
  plan.batch = conv.sizes.groups;
  plan.m = phase.patches.rows();
  plan.n = conv.width();
  plan.k = phase.patches.columns();
  plan.cut(false);
  const std::int64_t width = gemm_tile().columns;
  const std::int64_t group_floats = round_up(plan.n, width) * plan.k;
  phase.packed = scratch.floats(conv.sizes.groups * group_floats);
  phase.chunk0 = conv.chunks;
  conv.chunks += ceil_div(plan.m, plan.chunk_rows());
  plan.buffers = {
      .a = plan.m_step * padded_stride(plan.k_block) + PatchMatrix::kSlack,
      .spare = conv.image.stands() || phase.patches.is_strided() ? 0 : phase.patches.window_floats(plan.m_step),
      .tiles = conv.image.needs_tiles() || !conv.epilogue.is_plain()};
  plan.before = [&conv, &phase](ThreadPool& pool) { pack_weights(conv, phase, pool); };
  plan.load_a = [&conv, &phase](const GemmRange& r, const GemmWorker& own) {
    return load_patches(conv, phase, r, own);
  };
  plan.load_b = [&phase, group_floats, width](const GemmRange& r, const GemmWorker&) {
    const std::int64_t k = phase.plan.k;
    return GemmOperandB{
        .data = phase.packed + r.batch * group_floats + r.n0 * k + r.k0 * width, .panel = k * width, .k = width};
  };
  plan.store = [&conv, &phase](const GemmRange& r, const float* block, std::int64_t stride, const GemmWorker& own) {
    store_scattered(conv, phase, r, block, stride, own);
  };
  if (conv.epilogue.is_plain() && phase.target.is_all()) {
    plan.c = conv.epilogue.plain_data();
    plan.c_row = conv.width() * conv.sizes.groups;
    plan.c_batch = conv.width();
  }
}

void plan_phases(Convolution& conv, Scratch& scratch) {
  const ConvSizes& s = conv.sizes;
  if (!conv.transposed) {
    conv.phases.push_back(forward_phase(s));
  } else {
    for (std::int64_t h0 = 0; h0 < std::min(s.stride_h, s.h); ++h0) {
      for (std::int64_t w0 = 0; w0 < std::min(s.stride_w, s.w); ++w0) conv.phases.push_back(gradient_phase(s, h0, w0));
    }
  }
  const std::int64_t loads = ceil_div(conv.width(), 512) + (s.stride_h == 1 ? 0 : 1);
  conv.image.place(scratch, loads);
  for (auto& phase : conv.phases) plan_phase(conv, *phase, scratch);
}

std::shared_ptr<Convolution> make(const KernelContext& context, ConvPart part, Scratch& scratch) {
  auto conv = std::make_shared<Convolution>();
  const ConvSizes s = conv_sizes(context.graph, context.node, part);
  conv->sizes = s;
  conv->transposed = part == ConvPart::input_grad;
  conv->image = conv->transposed ? GemmOperand(bind_operand(context, 0), s.n * s.oh * s.ow, s.c_out)
                                 : GemmOperand(bind_operand(context, 0), s.n * s.h * s.w, s.c_in);
  conv->weights = bind_operand(context, 1).plain_data();
  const std::int64_t rows = conv->transposed ? s.n * s.h * s.w : s.n * s.oh * s.ow;
  conv->epilogue = TileEpilogue(context, rows, conv->width() * s.groups);
  plan_phases(*conv, scratch);
  if (conv->epilogue.sums() > 0) {
    conv->sums = scratch.floats(conv->chunks * conv->epilogue.sums() * conv->width() * s.groups);
  }
  // Phases run one after another in the same workers' memory.
  const std::int64_t shared = scratch.used();
  std::int64_t most = 0;
  for (auto& phase : conv->phases) {
    Scratch own(context.scratch == nullptr ? nullptr : context.scratch + shared);
    phase->plan.place(own, context.threads);
    most = std::max(most, own.used());
  }
  static_cast<void>(scratch.bytes(most));
  return conv;
}

MatMulSizes matmul_sizes(const ConvSizes& s, ConvPart part) {
  const std::int64_t pixels = s.n * s.h * s.w;
  if (part == ConvPart::forward) return {.m = pixels, .n = s.c_out, .k = s.c_in};
  return {.m = pixels, .n = s.c_in, .k = s.c_out, .transpose_y = true};
}

template <ConvPart kPart>
Kernel prepare(const KernelContext& context) {
  const ConvSizes s = conv_sizes(context.graph, context.node, kPart);
  if (s.is_matmul()) return prepare_matmul(context, matmul_sizes(s, kPart));
  if (const std::int64_t m = winograd_size(s, context.node, kPart)) return prepare_winograd(context, kPart, m);
  if (kPart == ConvPart::input_grad && scatters(s)) return prepare_scatter(context);
  if (kPart == ConvPart::forward && slides(s)) return prepare_slide(context);
  Scratch scratch(context.scratch);
  return [conv = make(context, kPart, scratch)](ThreadPool& pool) {
    if (!conv->phases.empty()) conv->image.compute_whole(pool, conv->phases[0]->plan);
    for (const auto& phase : conv->phases) phase->plan.run(pool);
    if (conv->epilogue.sums() > 0) conv->epilogue.finish_sums(conv->sums, conv->chunks);
  };
}

template <ConvPart kPart>
std::int64_t workspace(const Graph& graph, const Node& node, int threads) {
  const ConvSizes s = conv_sizes(graph, node, kPart);
  if (s.is_matmul()) return matmul_workspace(graph, node, matmul_sizes(s, kPart), threads);
  if (const std::int64_t m = winograd_size(s, node, kPart)) return winograd_workspace(graph, node, kPart, m, threads);
  if (kPart == ConvPart::input_grad && scatters(s)) return scatter_workspace(graph, node, threads);
  if (kPart == ConvPart::forward && slides(s)) return slide_workspace(graph, node, threads);
  Scratch scratch(nullptr);
  static_cast<void>(make(counting_context(graph, node, threads), kPart, scratch));
  return scratch.used();
}

// Weights are packed once a call: a prologue would save nothing.
template <ConvPart kPart>
int prologue_tensors(const Graph& graph, const Node& node, int operand) {
  if (operand != 0) return 0;
  return conv_sizes(graph, node, kPart).is_matmul() ? 2 : 1;
}

bool takes_epilogue(const Graph&, const Node&) { return true; }

constexpr std::array kKernels = {
    KernelDef{.op = "conv2d",
              .prepare = prepare<ConvPart::forward>,
              .workspace = workspace<ConvPart::forward>,
              .prologue_tensors = prologue_tensors<ConvPart::forward>,
              .takes_epilogue = takes_epilogue},
    KernelDef{.op = "conv2d_input_grad",
              .prepare = prepare<ConvPart::input_grad>,
              .workspace = workspace<ConvPart::input_grad>,
              .prologue_tensors = prologue_tensors<ConvPart::input_grad>,
              .takes_epilogue = takes_epilogue},
    KernelDef{.op = "conv2d_weight_grad",
              .prepare = prepare_conv2d_weight_grad,
              .workspace = conv2d_weight_grad_workspace,
              .prologue_tensors = conv2d_weight_grad_prologue_tensors,
              .takes_epilogue = takes_epilogue},
};

}  // namespace

std::span<const KernelDef> conv2d_kernels() { return kKernels; }

}  // namespace stoker::cpu
