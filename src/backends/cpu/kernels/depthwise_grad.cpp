#include "backends/cpu/kernels/depthwise_grad.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "backends/cpu/kernels/depthwise_rows.h"
#include "backends/cpu/kernels/depthwise_window.h"
#include "backends/cpu/kernels/tile.h"
#include "backends/cpu/kernels/tile_cut.h"
#include "base/error.h"

namespace stoker::cpu {
namespace {

constexpr std::size_t kMostTaps = 256;
constexpr double kPixelNanoseconds = 0.8;  // a channel of a pixel of dy

// N H W C of x, OH OW of dy.
struct Layout {
  std::int64_t n = 0, h = 0, w = 0, c = 0, oh = 0, ow = 0;
  std::int64_t kernel_h = 0, kernel_w = 0;
  AxisTaps rows, cols;
  std::vector<TapRun> runs;              // of columns of dy
  int fast_stride = 0;                   // of 3x3 runs with the sums in registers; 0: none
  std::int64_t x_ring = 0, dy_ring = 0;  // rows
  Cut cut;                               // of N * OH rows; each task has a partial gradient

  [[nodiscard]] std::int64_t x_floats() const { return round_up(x_ring * w * c, 16); }
  [[nodiscard]] std::int64_t dy_floats() const { return round_up(dy_ring * ow * c, 16); }
  [[nodiscard]] std::int64_t weight_floats() const { return kernel_h * kernel_w * c; }
  [[nodiscard]] std::int64_t worker_floats() const {
    return kTileScratchBytes / static_cast<std::int64_t>(sizeof(float)) + x_floats() + dy_floats();
  }
};

Layout make_layout(const Graph& graph, const Node& node) {
  const Shape& x = operand_shape(graph, node, 0);
  const Shape& dy = operand_shape(graph, node, 1);
  const Ints& weight = node.attrs.ints("weight_shape");
  const Ints& stride = node.attrs.ints("stride");
  const Ints& pad = node.attrs.ints("pad");
  const Ints& dilation = node.attrs.ints("dilation");
  Layout layout{.n = x[0], .h = x[1], .w = x[2], .c = x[3], .oh = dy[1], .ow = dy[2]};
  layout.kernel_h = weight[0];
  layout.kernel_w = weight[1];
  layout.rows = AxisTaps::forward(layout.h, layout.oh, weight[0], stride[0], pad[0], dilation[0]);
  layout.cols = AxisTaps::forward(layout.w, layout.ow, weight[1], stride[1], pad[1], dilation[1]);
  if (weight[0] == 3 && weight[1] == 3 && dilation[1] == 1 && stride[1] <= 2) {
    layout.fast_stride = static_cast<int>(stride[1]);
  }
  layout.runs = make_runs(layout.cols, 1, stride[1]);
  layout.x_ring = ring_rows(layout.h, layout.w * layout.c, (weight[0] - 1) * dilation[0] + 1);
  layout.dy_ring = ring_rows(layout.oh, layout.ow * layout.c, 1);
  layout.cut = cut_work(layout.n * layout.oh, kPixelNanoseconds * static_cast<double>(layout.ow * layout.c), 4);
  if (layout.cut.size > layout.oh) layout.cut.size = round_up(layout.cut.size, layout.oh);
  layout.cut.tasks = (layout.cut.total + layout.cut.size - 1) / layout.cut.size;
  return layout;
}

// A prepared node.
struct WeightGrad {
  Layout layout;
  TileExpr x;
  TileExpr dy;
  float* dw = nullptr;
  float* zero_row = nullptr;
  float* workers = nullptr;
  float* partial = nullptr;  // [tasks][KH * KW][C]

  void general_run(std::span<const Tap> row_taps, const RowSource& rows, const TapRun& run, const float* g,
                   float* part) const {
    std::array<const float*, kMostTaps> from;
    std::array<float*, kMostTaps> to;
    std::size_t taps = 0;
    for (const Tap& row : row_taps) {
      for (const Tap& col : run.taps) {
        from[taps] = rows.row(row.source) + col.source * layout.c;
        to[taps++] = part + (row.k * layout.kernel_w + col.k) * layout.c;
      }
    }
    depthwise_grad_run({.channels = layout.c,
                        .count = run.count,
                        .x_step = run.source_step * layout.c,
                        .out_step = run.step * layout.c},
                       static_cast<int>(taps), from.data(), g, to.data());
  }

  void add_row(std::span<const Tap> row_taps, const RowSource& rows, const float* dy_row, float* part) const {
    for (const TapRun& run : layout.runs) {
      const float* g = dy_row + run.first * layout.c;
      if (layout.fast_stride == 0 || run.taps.size() != 3) {
        general_run(row_taps, rows, run, g, part);
        continue;
      }
      std::array<const float*, 3> from = {zero_row, zero_row, zero_row};
      for (const Tap& row : row_taps)
        from[static_cast<std::size_t>(row.k)] = rows.row(row.source) + run.taps[0].source * layout.c;
      depthwise_grad_run_3x3(layout.fast_stride, from, g, layout.c, run.count, part);
    }
  }

  void run_task(std::int64_t task, int worker) const {
    float* mine = workers + worker * layout.worker_floats();
    auto* tiles = reinterpret_cast<std::byte*>(mine);
    float* x_ring = mine + kTileScratchBytes / static_cast<std::int64_t>(sizeof(float));
    float* dy_ring = x_ring + layout.x_floats();
    RowSource x_rows(x, layout.h, layout.w, x_ring, layout.x_ring, tiles);
    RowSource dy_rows(dy, layout.oh, layout.ow, dy_ring, layout.dy_ring, tiles);
    float* part = partial + task * layout.weight_floats();
    std::memset(part, 0, static_cast<std::size_t>(layout.weight_floats()) * sizeof(float));
    const std::int64_t end = layout.cut.begin(task) + layout.cut.count(task);
    for (std::int64_t i = layout.cut.begin(task); i < end; ++i) {
      const std::int64_t image = i / layout.oh;
      const std::int64_t row = i % layout.oh;
      const std::int64_t last = std::min((image + 1) * layout.oh, end) - 1 - image * layout.oh;
      const std::span<const Tap> taps = layout.rows.at(row);
      if (taps.empty()) continue;
      const std::span<const Tap> last_taps = layout.rows.at(last);
      x_rows.prepare(image, taps.front().source, taps.back().source,
                     last_taps.empty() ? taps.back().source : last_taps.back().source);
      dy_rows.prepare(image, row, row, last);
      add_row(taps, x_rows, dy_rows.row(row), part);
    }
  }
};

}  // namespace

std::int64_t workspace_depthwise_weight_grad(const Graph& graph, const Node& node, int threads) {
  const Layout layout = make_layout(graph, node);
  const std::int64_t floats =
      threads * layout.worker_floats() + round_up(layout.w * layout.c, 16) + layout.cut.tasks * layout.weight_floats();
  return floats * static_cast<std::int64_t>(sizeof(float));
}

Kernel prepare_depthwise_weight_grad(const KernelContext& context) {
  auto work = std::make_shared<WeightGrad>();
  work->layout = make_layout(context.graph, context.node);
  const Layout& layout = work->layout;
  require(static_cast<std::size_t>(layout.kernel_h * layout.kernel_w) <= kMostTaps, Code::unsupported,
          "depthwise_weight_grad: at most ", kMostTaps, " taps, not ", layout.kernel_h, " x ", layout.kernel_w);
  work->x = bind_operand(context, 0);
  work->dy = bind_operand(context, 1);
  work->dw = context.output(0);
  work->workers = reinterpret_cast<float*>(context.scratch);
  work->zero_row = work->workers + context.threads * layout.worker_floats();
  work->partial = work->zero_row + round_up(layout.w * layout.c, 16);
  return [work](ThreadPool& pool) {
    const Layout& sizes = work->layout;
    std::memset(work->zero_row, 0, static_cast<std::size_t>(sizes.w * sizes.c) * sizeof(float));
    pool.run(sizes.cut.tasks, [&](std::int64_t task, int worker) { work->run_task(task, worker); });
    sum_pairwise(work->partial, sizes.cut.tasks, sizes.weight_floats(), &pool);
    std::memcpy(work->dw, work->partial, static_cast<std::size_t>(sizes.weight_floats()) * sizeof(float));
  };
}

}  // namespace stoker::cpu
