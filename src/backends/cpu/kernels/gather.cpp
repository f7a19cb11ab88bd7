// gather: rows of a table by number; scatter_add: its gradient. A number out of range gives a row of NaN, or is left
// out.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/tile_cut.h"

namespace stoker::cpu {
namespace {

constexpr double kElementNanoseconds = 0.3;

Kernel prepare_gather(const KernelContext& context) {
  const Shape& table = context.input_spec(0).shape;
  const std::int64_t size = table[0];
  const std::int64_t width = table[1];
  const Cut cut =
      cut_work(context.input_spec(1).shape.elements(), 5.0 + kElementNanoseconds * static_cast<double>(width));
  return [=, from = context.input(0), rows = context.input<std::int32_t>(1), to = context.output(0)](ThreadPool& pool) {
    pool.run(cut.tasks, [&](std::int64_t task, int) {
      for (std::int64_t i = cut.begin(task); i < cut.begin(task) + cut.count(task); ++i) {
        if (rows[i] >= 0 && rows[i] < size) {
          std::memcpy(to + i * width, from + rows[i] * width, static_cast<std::size_t>(width) * sizeof(float));
        } else {
          std::fill_n(to + i * width, width, std::numeric_limits<float>::quiet_NaN());
        }
      }
    });
  };
}

// Tasks own columns of the table, or rows of it where columns are few, and go through all numbers in order: every sum
// is taken in the same order whatever the threads.
Kernel prepare_scatter_add(const KernelContext& context) {
  const Ints& shape = context.node.attrs.ints("shape");
  const std::int64_t size = shape[0];
  const std::int64_t width = shape[1];
  const std::int64_t count = context.input_spec(0).shape.elements();
  constexpr std::int64_t kLine = 16;
  const double all = kElementNanoseconds * static_cast<double>(count * width + size * width);
  const bool by_columns = width >= 8 * kLine;
  const Cut cut = by_columns ? cut_work(width, all / static_cast<double>(width), 4 * kLine)
                             : cut_work(size, all / static_cast<double>(size), 1);
  return
      [=, rows = context.input<std::int32_t>(0), dy = context.input(1), table = context.output(0)](ThreadPool& pool) {
        pool.run(cut.tasks, [&](std::int64_t task, int) {
          const std::int64_t first_row = by_columns ? 0 : cut.begin(task);
          const std::int64_t row_end = by_columns ? size : first_row + cut.count(task);
          const std::int64_t column = by_columns ? cut.begin(task) : 0;
          const std::int64_t columns = by_columns ? cut.count(task) : width;
          for (std::int64_t row = first_row; row < row_end; ++row)
            std::fill_n(table + row * width + column, columns, 0.0F);
          for (std::int64_t i = 0; i < count; ++i) {
            if (rows[i] < first_row || rows[i] >= row_end) continue;
            float* to = table + rows[i] * width + column;
            const float* from = dy + i * width + column;
            for (std::int64_t k = 0; k < columns; ++k) to[k] += from[k];
          }
        });
      };
}

}  // namespace

std::span<const KernelDef> gather_kernels() {
  static constexpr std::array kKernels = {
      KernelDef{.op = "gather", .prepare = prepare_gather},
      KernelDef{.op = "scatter_add", .prepare = prepare_scatter_add},
  };
  return kKernels;
}

}  // namespace stoker::cpu
