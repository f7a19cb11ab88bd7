// softmax and log_softmax over the last dimension; softmax_cross_entropy with its gradient in one pass.
#include <array>

#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/softmax_rows.h"
#include "backends/cpu/kernels/tile_cut.h"

namespace stoker::cpu {
namespace {

constexpr double kElementNanoseconds = 1.5;

std::int64_t row_length(const Shape& shape) { return shape.rank() > 0 ? shape[-1] : 1; }

Cut cut_rows(const Shape& shape) {
  const std::int64_t n = row_length(shape);
  return cut_work(n == 0 ? 0 : shape.elements() / n, kElementNanoseconds * static_cast<double>(n));
}

template <void (*kRow)(const float*, std::int64_t, float*)>
Kernel prepare_softmax(const KernelContext& context) {
  const Cut cut = cut_rows(context.input_spec(0).shape);
  return [cut, n = row_length(context.input_spec(0).shape), x = context.input(0),
          y = context.output(0)](ThreadPool& pool) {
    pool.run(cut.tasks, [&](std::int64_t task, int) {
      for (std::int64_t i = cut.begin(task); i < cut.begin(task) + cut.count(task); ++i) kRow(x + i * n, n, y + i * n);
    });
  };
}

Kernel prepare_cross_entropy(const KernelContext& context) {
  const Cut cut = cut_rows(context.input_spec(0).shape);
  return [cut, n = row_length(context.input_spec(0).shape), x = context.input(0),
          labels = context.input<std::int32_t>(1), loss = context.output(0), dx = context.output(1),
          smoothing = static_cast<float>(context.node.attrs.real("label_smoothing"))](ThreadPool& pool) {
    pool.run(cut.tasks, [&](std::int64_t task, int) {
      for (std::int64_t i = cut.begin(task); i < cut.begin(task) + cut.count(task); ++i)
        loss[i] = cross_entropy_row(x + i * n, n, labels[i], smoothing, dx + i * n);
    });
  };
}

}  // namespace

std::span<const KernelDef> softmax_kernels() {
  static constexpr std::array kKernels = {
      KernelDef{.op = "softmax", .prepare = prepare_softmax<softmax_row>},
      KernelDef{.op = "log_softmax", .prepare = prepare_softmax<log_softmax_row>},
      KernelDef{.op = "softmax_cross_entropy", .prepare = prepare_cross_entropy},
  };
  return kKernels;
}

}  // namespace stoker::cpu
