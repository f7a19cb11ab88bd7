// How a product is cut into tasks, and how a task walks over its blocks. The cut depends on the sizes and the register
// tile alone, never on the number of threads.
#include "backends/cpu/kernels/gemm_plan.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace stoker::cpu {
namespace {

constexpr std::int64_t kDepth = 256;           // of a K block: a panel of B stays in L1
constexpr std::int64_t kRowTiles = 10;         // of an A block: it stays in L2
constexpr std::int64_t kMaxColumns = 512;      // of a B block: likewise
constexpr std::int64_t kReduceFloats = 16384;  // of a block of the reduction over K's parts
constexpr std::int64_t kMaxSplits = 32;
constexpr std::int64_t kWholeFloats = 1 << 20;  // an operand up to here (4 MB) is computed once, not once a load

}  // namespace

std::int64_t padded_stride(std::int64_t columns) {
  const std::int64_t stride = round_up(columns, std::max<std::int64_t>(16, gemm_tile().lanes));
  return stride % 32 == 0 ? stride + 16 : stride;
}

namespace {

GemmWorker take_buffers(const GemmBuffers& buffers, Scratch& scratch) {
  GemmWorker worker;
  worker.a = scratch.floats(buffers.a);
  worker.b = scratch.floats(buffers.b);
  worker.c = scratch.floats(buffers.c);
  worker.spare = scratch.floats(buffers.spare);
  worker.tiles = scratch.bytes(buffers.tiles ? kTileScratchBytes : 0);
  return worker;
}

}  // namespace

void GemmWorkers::place(Scratch& scratch, int threads) {
  Scratch one(nullptr);
  static_cast<void>(take_buffers(buffers, one));
  bytes = one.used();
  base = scratch.bytes(bytes * threads);
}

GemmWorker GemmWorkers::worker(int number) const {
  Scratch own(base + number * bytes);
  return take_buffers(buffers, own);
}

void copy_rows(const float* src, std::int64_t src_stride, std::int64_t rows, std::int64_t columns, float* dst,
               std::int64_t dst_stride) {
  for (std::int64_t r = 0; r < rows; ++r) {
    std::memcpy(dst + r * dst_stride, src + r * src_stride, static_cast<std::size_t>(columns) * sizeof(float));
  }
}

void GemmOperand::place(Scratch& scratch, std::int64_t loads) {
  is_whole_ = !expr_.is_plain() && loads > 1 && rows_ * channels_ <= kWholeFloats;
  if (is_whole_) whole_ = scratch.floats(rows_ * channels_);
}

void GemmOperand::compute_whole(ThreadPool& pool, std::byte* tiles, std::int64_t step) const {
  if (!is_whole_) return;
  const std::int64_t block = std::clamp<std::int64_t>(kForkCopies / std::max<std::int64_t>(1, channels_), 1, rows_);
  pool.run(ceil_div(rows_, block), [&](std::int64_t task, int worker) {
    const Rect rect{task * block, std::min(block, rows_ - task * block), 1, 0, channels_};
    evaluate_rect(expr_, rect, whole_ + rect.row * channels_, channels_, tiles + worker * step);
  });
}

void GemmOperand::load(const Rect& rect, float* buffer, std::int64_t stride, std::byte* tiles) const {
  if (stands()) {
    copy_rows(data() + rect.row * channels_ + rect.channel, rect.row_step * channels_, rect.rows, rect.channels, buffer,
              stride);
  } else {
    evaluate_rect(expr_, rect, buffer, stride, tiles);
  }
}

RectView GemmOperand::view(const Rect& rect, bool in_place, float* buffer, std::byte* tiles) const {
  if (in_place && stands()) {
    return {.data = data() + rect.row * channels_ + rect.channel, .stride = rect.row_step * channels_};
  }
  const std::int64_t stride = padded_stride(rect.channels);
  load(rect, buffer, stride, tiles);
  return {.data = buffer, .stride = stride};
}

KernelContext counting_context(const Graph& graph, const Node& node, int threads) {
  return {.graph = graph,
          .node = node,
          .inputs = std::vector<const std::byte*>(node.inputs.size()),
          .outputs = std::vector<std::byte*>(node.outputs.size()),
          .threads = threads};
}

void GemmPlan::cut(bool split_k, bool tall) {
  const GemmTile tile = gemm_tile();
  const double flops =
      2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const std::int64_t wanted = std::clamp<std::int64_t>(static_cast<std::int64_t>(flops / kForkFlops), 1, 16);
  const std::int64_t rows = kRowTiles * tile.rows;
  std::int64_t m_count = tall ? 1 : std::max<std::int64_t>(1, ceil_div(m, rows));
  std::int64_t n_count = std::max<std::int64_t>(1, ceil_div(n, kMaxColumns));
  const auto tasks = [&] { return batch * m_count * n_count * k_splits; };
  const std::int64_t most_splits = std::clamp<std::int64_t>(k / kDepth, 1, kMaxSplits);
  k_splits = 1;
  // Few results and a long K, as for weight gradients: parts of K read each operand once.
  if (split_k && is_long_k(m, n, k)) {
    k_splits = std::min(ceil_div(wanted, tasks()), most_splits);
  }
  while (tasks() < wanted) {
    const std::int64_t m_tiles = m / m_count / tile.rows;
    const std::int64_t n_tiles = n / n_count / tile.columns;
    if (m_tiles < 2 && n_tiles < 2) break;
    (m_tiles >= n_tiles ? m_count : n_count) *= 2;
  }
  if (split_k && k_splits == 1) k_splits = std::clamp<std::int64_t>(wanted / tasks(), 1, most_splits);
  m_block = std::max<std::int64_t>(1, ceil_div(m, m_count));
  m_step = ceil_div(m_block, ceil_div(m_block, tall ? 2 * rows : rows));
  n_block = std::max(tile.columns, round_up(ceil_div(n, n_count), tile.columns));
  const std::int64_t depth = ceil_div(k, k_splits);
  k_block =
      std::max<std::int64_t>(16, round_up(ceil_div(depth, std::max<std::int64_t>(1, ceil_div(depth, kDepth))), 16));
}

std::int64_t GemmPlan::chunk_rows() const {
  return k_splits == 1 ? m_block : std::clamp<std::int64_t>(kReduceFloats / std::max<std::int64_t>(1, n), 1, m);
}

void GemmPlan::place(Scratch& scratch, int threads) {
  if (c == nullptr || (k_splits > 1 && c_row != n)) {
    buffers.c = k_splits == 1 ? m_block * padded_stride(std::min(n_block, n)) : chunk_rows() * n;
  }
  if (k_splits > 1) partials = scratch.floats(k_splits * batch * m * n);
  const auto bytes = [](std::int64_t floats) {
    return round_up(floats * static_cast<std::int64_t>(sizeof(float)), 64);
  };
  worker_bytes = bytes(buffers.a) + bytes(buffers.b) + bytes(buffers.c) + bytes(buffers.spare) +
                 (buffers.tiles ? kTileScratchBytes : 0);
  worker_base = scratch.bytes(worker_bytes * threads);
}

GemmWorker GemmPlan::worker(int worker) const {
  Scratch own(worker_base == nullptr ? nullptr : worker_base + worker * worker_bytes);
  return take_buffers(buffers, own);
}

void GemmPlan::run(ThreadPool& pool) const {
  if (before) before(pool);
  const std::int64_t tasks = batch * ceil_div(m, m_block) * ceil_div(n, n_block) * k_splits;
  pool.run(tasks, [this](std::int64_t task, int worker) { run_task(task, worker); });
  if (k_splits > 1) {
    pool.run(chunks(), [this](std::int64_t task, int worker) { reduce_task(task, worker); });
  }
  if (after) after();
}

// Neighbouring tasks share a block of B: rows vary fastest.
void GemmPlan::run_task(std::int64_t task, int worker_index) const {
  const GemmWorker own = worker(worker_index);
  const std::int64_t m_count = ceil_div(m, m_block);
  const std::int64_t n_count = ceil_div(n, n_block);
  GemmRange range;
  range.m0 = task % m_count * m_block;
  task /= m_count;
  range.n0 = task % n_count * n_block;
  task /= n_count;
  range.batch = task % batch;
  const std::int64_t split = task / batch;
  range.m = std::min(m_block, m - range.m0);
  range.n = std::min(n_block, n - range.n0);
  const std::int64_t depth = ceil_div(k, k_splits);
  range.k0 = std::min(split * depth, k);
  const std::int64_t k_end = std::min(range.k0 + depth, k);
  if (k_splits > 1) {
    float* part = partials + ((split * batch + range.batch) * m + range.m0) * n + range.n0;
    run_block(range, k_end, part, n, own);
  } else if (c != nullptr) {
    run_block(range, k_end, c + range.batch * c_batch + range.m0 * c_row + range.n0, c_row, own);
  } else {
    const std::int64_t stride = padded_stride(range.n);
    run_block(range, k_end, own.c, stride, own);
    store(range, own.c, stride, own);
  }
}

void GemmPlan::run_block(GemmRange range, std::int64_t k_end, float* target, std::int64_t stride,
                         const GemmWorker& own) const {
  const std::int64_t m_end = range.m0 + range.m;
  const std::int64_t m_begin = range.m0;
  bool accumulate = false;
  do {  // at least once: a product over no K is zero
    range.k = std::min(k_block, k_end - range.k0);
    const GemmOperandB b = load_b(range, own);
    for (range.m0 = m_begin; range.m0 < m_end; range.m0 += m_step) {
      range.m = std::min(m_step, m_end - range.m0);
      const GemmOperandA a = load_a(range, own);
      gemm_block({.m = range.m,
                  .n = range.n,
                  .k = range.k,
                  .a = a.data,
                  .a_row = a.row,
                  .a_k = a.k,
                  .b = b.data,
                  .b_panel = b.panel,
                  .b_k = b.k,
                  .c = target + (range.m0 - m_begin) * stride,
                  .c_row = stride,
                  .accumulate = accumulate});
    }
    accumulate = true;
    range.k0 += range.k;
  } while (range.k0 < k_end);
}

void GemmPlan::reduce_task(std::int64_t task, int worker_index) const {
  const GemmWorker own = worker(worker_index);
  const std::int64_t count = ceil_div(m, chunk_rows());
  GemmRange range{.batch = task / count, .m0 = task % count * chunk_rows(), .n = n, .k = k};
  range.m = std::min(chunk_rows(), m - range.m0);
  const float* part = partials + (range.batch * m + range.m0) * n;
  if (c != nullptr && c_row == n) {
    sum_parts(part, k_splits, batch * m * n, range.m * n, c + range.batch * c_batch + range.m0 * n);
    return;
  }
  sum_parts(part, k_splits, batch * m * n, range.m * n, own.c);
  store(range, own.c, n, own);
}

}  // namespace stoker::cpu
