// depthwise and its input gradient: each output pixel is a weighted sum of source pixels, channel by channel. Sources
// go through their prologue row by row into a ring, results through the epilogue some rows at a time.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "backends/cpu/kernels/depthwise_grad.h"
#include "backends/cpu/kernels/depthwise_rows.h"
#include "backends/cpu/kernels/depthwise_window.h"
#include "backends/cpu/kernels/tile.h"
#include "backends/cpu/kernels/tile_cut.h"
#include "base/error.h"

namespace stoker::cpu {
namespace {

constexpr std::size_t kMostTaps = 256;
constexpr double kPixelNanoseconds = 0.6;  // a channel of an output pixel
constexpr std::int64_t kResultFloats = 16 * 1024;

// N H W C of the source (x, or dy), OH OW of what is computed (y, or dx).
struct Layout {
  std::int64_t n = 0, h = 0, w = 0, c = 0, oh = 0, ow = 0;
  int kernel_h = 0, kernel_w = 0;
  AxisTaps rows, cols;
  std::vector<TapRun> runs;      // of output columns
  int fast_stride = 0;           // of 3x3 runs with the filter in registers; 0: none
  bool flipped = false;          // tap i of a whole row of taps is filter position 2 - i
  std::int64_t ring = 0;         // rows
  std::int64_t result_rows = 0;  // rows that wait for the epilogue
  Cut cut;                       // of N * OH rows

  [[nodiscard]] std::int64_t source_row() const { return w * c; }
  [[nodiscard]] std::int64_t result_row() const { return ow * c; }
};

Layout make_layout(const Graph& graph, const Node& node, bool transposed) {
  const Shape& source = operand_shape(graph, node, 0);
  const Shape& weight = operand_shape(graph, node, 1);
  const Ints& stride = node.attrs.ints("stride");
  const Ints& pad = node.attrs.ints("pad");
  const Ints& dilation = node.attrs.ints("dilation");
  Layout layout;
  layout.n = source[0];
  layout.h = source[1];
  layout.w = source[2];
  layout.c = source[3];
  layout.kernel_h = static_cast<int>(weight[0]);
  layout.kernel_w = static_cast<int>(weight[1]);
  if (transposed) {
    const Ints& input_shape = node.attrs.ints("input_shape");
    layout.oh = input_shape[1];
    layout.ow = input_shape[2];
  } else {
    layout.oh = (layout.h + pad[0] + pad[2] - dilation[0] * (weight[0] - 1) - 1) / stride[0] + 1;
    layout.ow = (layout.w + pad[1] + pad[3] - dilation[1] * (weight[1] - 1) - 1) / stride[1] + 1;
  }
  const auto taps = transposed ? AxisTaps::transposed : AxisTaps::forward;
  layout.rows = taps(layout.h, layout.oh, weight[0], stride[0], pad[0], dilation[0]);
  layout.cols = taps(layout.w, layout.ow, weight[1], stride[1], pad[1], dilation[1]);
  layout.flipped = transposed;
  layout.runs = make_runs(layout.cols, transposed ? stride[1] : 1, transposed ? 1 : stride[1]);
  const bool regular = transposed ? stride[0] == 1 && stride[1] == 1 : stride[1] <= 2;
  if (weight[0] == 3 && weight[1] == 3 && dilation[1] == 1 && regular) {
    layout.fast_stride = static_cast<int>(stride[1]);
  }
  layout.ring = ring_rows(layout.h, layout.source_row(), (weight[0] - 1) * dilation[0] + 1);
  layout.result_rows =
      std::clamp<std::int64_t>(kResultFloats / std::max<std::int64_t>(layout.result_row(), 1), 1, layout.oh);
  layout.cut = cut_work(layout.n * layout.oh, kPixelNanoseconds * static_cast<double>(layout.result_row()), 4);
  if (layout.cut.size > layout.oh)  // whole images: no row is loaded twice
    layout.cut = {.total = layout.cut.total, .size = round_up(layout.cut.size, layout.oh)};
  layout.cut.tasks = (layout.cut.total + layout.cut.size - 1) / layout.cut.size;
  return layout;
}

// What a worker owns, in floats.
std::int64_t worker_floats(const Layout& layout) {
  return kTileScratchBytes / static_cast<std::int64_t>(sizeof(float)) +
         round_up(layout.ring * layout.source_row(), 16) + round_up(layout.result_rows * layout.result_row(), 16);
}

int count_sums(const Node& node) {
  return node.fusion == nullptr ? 0
                                : static_cast<int>(std::ranges::count(node.fusion->results, ResultKind::sum_channel));
}

template <bool kTransposed>
std::int64_t workspace_depthwise(const Graph& graph, const Node& node, int threads) {
  const Layout layout = make_layout(graph, node, kTransposed);
  const std::int64_t floats = threads * worker_floats(layout) + round_up(layout.source_row(), 16) +
                              layout.cut.tasks * count_sums(node) * layout.c;
  return floats * static_cast<std::int64_t>(sizeof(float));
}

// A prepared node.
struct Depthwise {
  Layout layout;
  TileExpr source;
  const float* weight = nullptr;
  TileEpilogue epilogue;
  float* zero_row = nullptr;
  float* workers = nullptr;
  float* partial = nullptr;

  [[nodiscard]] const float* tap_weight(int kh, int kw) const {
    return weight + (kh * layout.kernel_w + kw) * layout.c;
  }

  void general_run(std::span<const Tap> row_taps, const RowSource& rows, const TapRun& run, float* out) const {
    std::array<const float*, kMostTaps> x;
    std::array<const float*, kMostTaps> w;
    std::size_t taps = 0;
    for (const Tap& row : row_taps) {
      const float* from = rows.row(row.source);
      for (const Tap& col : run.taps) {
        x[taps] = from + col.source * layout.c;
        w[taps++] = tap_weight(row.k, col.k);
      }
    }
    depthwise_run({.channels = layout.c,
                   .count = run.count,
                   .x_step = run.source_step * layout.c,
                   .out_step = run.step * layout.c},
                  static_cast<int>(taps), x.data(), w.data(), out);
  }

  // Rows that fall into the padding are read as zeros.
  void fast_run(std::span<const Tap> row_taps, const RowSource& rows, const TapRun& run, float* out) const {
    std::array<const float*, 3> x = {zero_row, zero_row, zero_row};
    for (const Tap& row : row_taps)
      x[static_cast<std::size_t>(layout.flipped ? 2 - row.k : row.k)] =
          rows.row(row.source) + run.taps[0].source * layout.c;
    std::array<const float*, 9> w;
    for (int i = 0; i < 9; ++i) w[static_cast<std::size_t>(i)] = weight + (layout.flipped ? 8 - i : i) * layout.c;
    depthwise_run_3x3(layout.fast_stride, x, w, layout.c, run.count, out);
  }

  void output_row(std::int64_t row, const RowSource& rows, float* out) const {
    for (const TapRun& run : layout.runs) {
      float* to = out + run.first * layout.c;
      if (layout.fast_stride > 0 && run.taps.size() == 3) {
        fast_run(layout.rows.at(row), rows, run, to);
      } else {
        general_run(layout.rows.at(row), rows, run, to);
      }
    }
  }

  void run_task(std::int64_t task, int worker) const {
    float* mine = workers + worker * worker_floats(layout);
    auto* tiles = reinterpret_cast<std::byte*>(mine);
    float* ring = mine + kTileScratchBytes / static_cast<std::int64_t>(sizeof(float));
    float* results = ring + round_up(layout.ring * layout.source_row(), 16);
    float* part = partial + task * epilogue.sums() * layout.c;
    RowSource rows(source, layout.h, layout.w, ring, layout.ring, tiles);
    const std::int64_t end = layout.cut.begin(task) + layout.cut.count(task);
    for (std::int64_t first = layout.cut.begin(task); first < end;) {
      const std::int64_t image = first / layout.oh;
      const std::int64_t image_end = std::min((image + 1) * layout.oh, end);
      const std::int64_t count = std::min(layout.result_rows, image_end - first);
      float* out = epilogue.is_plain() ? epilogue.plain_data() + first * layout.result_row() : results;
      for (std::int64_t i = 0; i < count; ++i)
        prepared_row(image, first + i - image * layout.oh, image_end - image * layout.oh, rows,
                     out + i * layout.result_row());
      if (!epilogue.is_plain())
        epilogue.apply({.row = first * layout.ow, .rows = count * layout.ow, .channels = layout.c}, results, layout.c,
                       part, first > layout.cut.begin(task), tiles);
      first += count;
    }
  }

  // `end`: the task's rows of this image end there.
  void prepared_row(std::int64_t image, std::int64_t row, std::int64_t end, RowSource& rows, float* out) const {
    const std::span<const Tap> taps = layout.rows.at(row);
    if (!taps.empty()) {
      std::span<const Tap> last = layout.rows.at(end - 1);
      rows.prepare(image, taps.front().source, taps.back().source,
                   last.empty() ? taps.back().source : last.back().source);
    }
    output_row(row, rows, out);
  }
};

template <bool kTransposed>
Kernel prepare_depthwise(const KernelContext& context) {
  auto work = std::make_shared<Depthwise>();
  work->layout = make_layout(context.graph, context.node, kTransposed);
  const Layout& layout = work->layout;
  require(static_cast<std::size_t>(layout.kernel_h * layout.kernel_w) <= kMostTaps, Code::unsupported,
          "depthwise: at most ", kMostTaps, " taps, not ", layout.kernel_h, " x ", layout.kernel_w);
  work->source = bind_operand(context, 0);
  const TileExpr weight = bind_operand(context, 1);
  require(weight.is_plain(), Code::unsupported, "depthwise: the weight takes no prologue");
  work->weight = weight.plain_data();
  work->epilogue = TileEpilogue(context, layout.n * layout.oh * layout.ow, layout.c);
  work->workers = reinterpret_cast<float*>(context.scratch);
  work->zero_row = work->workers + context.threads * worker_floats(layout);
  work->partial = work->zero_row + round_up(layout.source_row(), 16);
  return [work](ThreadPool& pool) {
    std::memset(work->zero_row, 0, static_cast<std::size_t>(work->layout.source_row()) * sizeof(float));
    pool.run(work->layout.cut.tasks, [&](std::int64_t task, int worker) { work->run_task(task, worker); });
    work->epilogue.finish_sums(work->partial, work->layout.cut.tasks, &pool);
  };
}

int source_tensors(const Graph& /*graph*/, const Node& /*node*/, int operand) { return operand == 0 ? 2 : 0; }
int both_tensors(const Graph& /*graph*/, const Node& /*node*/, int /*operand*/) { return 2; }
bool takes_any(const Graph& /*graph*/, const Node& /*node*/) { return true; }

}  // namespace

std::span<const KernelDef> depthwise_kernels() {
  static constexpr std::array kKernels = {
      KernelDef{.op = "depthwise",
                .prepare = prepare_depthwise<false>,
                .workspace = workspace_depthwise<false>,
                .prologue_tensors = source_tensors,
                .takes_epilogue = takes_any},
      KernelDef{.op = "depthwise_input_grad",
                .prepare = prepare_depthwise<true>,
                .workspace = workspace_depthwise<true>,
                .prologue_tensors = source_tensors,
                .takes_epilogue = takes_any},
      KernelDef{.op = "depthwise_weight_grad",
                .prepare = prepare_depthwise_weight_grad,
                .workspace = workspace_depthwise_weight_grad,
                .prologue_tensors = both_tensors},
  };
  return kKernels;
}

}  // namespace stoker::cpu
