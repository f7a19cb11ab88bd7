// max_pool, avg_pool and their gradients: rows of output pixels, each gathered from the taps of its window. A gradient
// gathers too, so that no two tasks write the same place.
#include <algorithm>
#include <array>
#include <memory>

#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/depthwise_window.h"
#include "backends/cpu/kernels/pooling_rows.h"
#include "backends/cpu/kernels/tile_cut.h"
#include "base/error.h"
#include "graph/op_def.h"

namespace stoker::cpu {
namespace {

constexpr std::size_t kMostTaps = 256;  // an index is a byte

// N H W C of the source, OH OW of what is computed.
struct Layout {
  std::int64_t n = 0, h = 0, w = 0, c = 0, oh = 0, ow = 0;
  std::int64_t kernel_w = 0;
  AxisTaps rows, cols;
  std::vector<TapRun> runs;
  Cut cut;  // of N * OH rows
  // Averages only: 1 / the window's size, or how many taps each window of the pooled tensor has along an axis.
  bool transposed = false;
  bool include_pad = true;
  float scale = 1.0F;
  std::vector<float> row_scale, col_scale;  // by position along the pooled tensor's axes

  [[nodiscard]] float tap_scale(std::int64_t row, std::int64_t col) const {
    return include_pad ? scale : row_scale[static_cast<std::size_t>(row)] * col_scale[static_cast<std::size_t>(col)];
  }
};

std::vector<float> inverse_counts(const AxisTaps& taps) {
  std::vector<float> inverse;
  for (std::int64_t i = 0; i < taps.outputs(); ++i)
    inverse.push_back(1.0F / static_cast<float>(std::max<std::size_t>(taps.at(i).size(), 1)));
  return inverse;
}

Layout make_layout(const KernelContext& context, const Shape& source, const Shape& result, bool transposed) {
  const Attrs& attrs = context.node.attrs;
  const Ints& kernel = attrs.ints("kernel");
  const Ints& stride = attrs.ints("stride");
  const Ints& pad = attrs.ints("pad");
  const Ints dilation = attrs.has("dilation") ? attrs.ints("dilation") : Ints{1, 1};  // average pooling has none
  require(kernel[0] * kernel[1] <= static_cast<std::int64_t>(kMostTaps), Code::unsupported, context.node.op->name,
          ": at most ", kMostTaps, " positions in a window, not ", kernel[0], " x ", kernel[1]);
  Layout layout{.n = source[0], .h = source[1], .w = source[2], .c = source[3], .oh = result[1], .ow = result[2]};
  layout.kernel_w = kernel[1];
  layout.transposed = transposed;
  const auto taps = transposed ? AxisTaps::transposed : AxisTaps::forward;
  layout.rows = taps(layout.h, layout.oh, kernel[0], stride[0], pad[0], dilation[0]);
  layout.cols = taps(layout.w, layout.ow, kernel[1], stride[1], pad[1], dilation[1]);
  layout.runs = make_runs(layout.cols, transposed ? stride[1] : 1, transposed ? 1 : stride[1]);
  layout.cut = cut_work(layout.n * layout.oh, static_cast<double>(layout.ow * layout.c));
  if (attrs.has("count_include_pad")) {
    layout.include_pad = attrs.integer("count_include_pad") != 0;
    layout.scale = 1.0F / static_cast<float>(kernel[0] * kernel[1]);
    const Shape& image = transposed ? result : source;
    const Shape& pooled = transposed ? source : result;
    layout.row_scale =
        inverse_counts(AxisTaps::forward(image[1], pooled[1], kernel[0], stride[0], pad[0], dilation[0]));
    layout.col_scale =
        inverse_counts(AxisTaps::forward(image[2], pooled[2], kernel[1], stride[1], pad[1], dilation[1]));
    if (transposed && !layout.include_pad) layout.runs = make_runs(layout.cols, layout.ow, 1);  // scales differ: singly
  }
  return layout;
}

// The taps of a run's first pixel; offsets in the source count elements. A tap of an average has the scale of its
// window: the same for the whole run.
struct RunTaps {
  std::array<std::int64_t, kMostTaps> offset;
  std::array<std::uint8_t, kMostTaps> number;
  std::array<float, kMostTaps> scale;
  int count = 0;
};

// Calls body(run, taps, position of the first pixel) for each run of each output row.
template <typename Body>
void for_runs(const Layout& layout, ThreadPool& pool, const Body& body) {
  pool.run(layout.cut.tasks, [&](std::int64_t task, int) {
    RunTaps taps;
    for (std::int64_t i = layout.cut.begin(task); i < layout.cut.begin(task) + layout.cut.count(task); ++i) {
      for (const TapRun& run : layout.runs) {
        taps.count = 0;
        for (const Tap& row : layout.rows.at(i % layout.oh)) {
          for (const Tap& col : run.taps) {
            const auto t = static_cast<std::size_t>(taps.count++);
            taps.offset[t] = ((i / layout.oh * layout.h + row.source) * layout.w + col.source) * layout.c;
            taps.number[t] = static_cast<std::uint8_t>(row.k * layout.kernel_w + col.k);
            taps.scale[t] = layout.transposed ? layout.tap_scale(row.source, col.source)
                                              : layout.tap_scale(i % layout.oh, run.first);
          }
        }
        body(PixelRun{.channels = layout.c,
                      .count = run.count,
                      .x_step = run.source_step * layout.c,
                      .out_step = run.step * layout.c},
             taps, (i * layout.ow + run.first) * layout.c);
      }
    }
  });
}

template <typename T>
std::array<const T*, kMostTaps> tap_pointers(const T* base, const RunTaps& taps) {
  std::array<const T*, kMostTaps> pointers;
  for (int t = 0; t < taps.count; ++t)
    pointers[static_cast<std::size_t>(t)] = base + taps.offset[static_cast<std::size_t>(t)];
  return pointers;
}

Shape input_shape(const KernelContext& context) { return Shape(std::span(context.node.attrs.ints("input_shape"))); }

Kernel prepare_max_pool(const KernelContext& context) {
  auto layout =
      std::make_shared<Layout>(make_layout(context, context.input_spec(0).shape, context.output_spec(0).shape, false));
  return
      [layout, x = context.input(0), y = context.output(0), index = context.output<std::uint8_t>(1)](ThreadPool& pool) {
        for_runs(*layout, pool, [&](const PixelRun& run, const RunTaps& taps, std::int64_t to) {
          max_pool_run(run, taps.count, tap_pointers(x, taps).data(), taps.number.data(), y + to, index + to);
        });
      };
}

Kernel prepare_max_pool_grad(const KernelContext& context) {
  auto layout = std::make_shared<Layout>(make_layout(context, context.input_spec(1).shape, input_shape(context), true));
  return [layout, index = context.input<std::uint8_t>(0), dy = context.input(1),
          dx = context.output(0)](ThreadPool& pool) {
    for_runs(*layout, pool, [&](const PixelRun& run, const RunTaps& taps, std::int64_t to) {
      max_pool_grad_run(run, taps.count, tap_pointers(dy, taps).data(), tap_pointers(index, taps).data(),
                        taps.number.data(), dx + to);
    });
  };
}

Kernel average(std::shared_ptr<const Layout> layout, const float* from, float* to) {
  return [layout = std::move(layout), from, to](ThreadPool& pool) {
    for_runs(*layout, pool, [&](const PixelRun& run, const RunTaps& taps, std::int64_t position) {
      scaled_sum_run(run, taps.count, tap_pointers(from, taps).data(), taps.scale.data(), to + position);
    });
  };
}

Kernel prepare_avg_pool(const KernelContext& context) {
  return average(
      std::make_shared<Layout>(make_layout(context, context.input_spec(0).shape, context.output_spec(0).shape, false)),
      context.input(0), context.output(0));
}

Kernel prepare_avg_pool_grad(const KernelContext& context) {
  return average(
      std::make_shared<Layout>(make_layout(context, context.input_spec(0).shape, input_shape(context), true)),
      context.input(0), context.output(0));
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

}  // namespace stoker::cpu
