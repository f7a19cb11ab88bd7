// GemmPlan: a matrix product cut into tasks by its shape. Loaders bring the operands' blocks into cache (in place,
// copied, gathered or computed by a prologue), a store takes finished blocks; matmul and convolution fill them in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "backends/cpu/kernels/gemm.h"
#include "backends/cpu/kernels/tile.h"
#include "base/round.h"
#include "base/threads.h"

namespace stoker::cpu {

// A row stride for a block in a buffer: room for full vectors, and no power of two, which would crowd a few cache sets.
[[nodiscard]] std::int64_t padded_stride(std::int64_t columns);

// Hands out pieces of a kernel's scratch. With a null base it only counts: workspace() and prepare() share one plan.
class Scratch {
 public:
  explicit Scratch(std::byte* base) : base_(base) {}

  [[nodiscard]] std::byte* bytes(std::int64_t count) {
    std::byte* piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += round_up(count, 64);
    return piece;
  }
  [[nodiscard]] float* floats(std::int64_t count) {
    return reinterpret_cast<float*>(bytes(count * static_cast<std::int64_t>(sizeof(float))));
  }
  [[nodiscard]] std::int64_t used() const { return used_; }

 private:
  std::byte* base_;
  std::int64_t used_ = 0;
};

// One worker's own buffers: blocks of A, B and C, one for an operand that is computed before it is packed, and the
// scratch of tile expressions.
struct GemmBuffers {
  std::int64_t a = 0, b = 0, c = 0, spare = 0;  // floats
  bool tiles = false;
};
struct GemmWorker {
  float* a = nullptr;
  float* b = nullptr;
  float* c = nullptr;
  float* spare = nullptr;
  std::byte* tiles = nullptr;
};

// The buffers of all workers, for kernels that cut their work themselves.
struct GemmWorkers {
  GemmBuffers buffers;
  std::byte* base = nullptr;
  std::int64_t bytes = 0;  // of one worker

  void place(Scratch& scratch, int threads);
  [[nodiscard]] GemmWorker worker(int number) const;
};

struct GemmRange {
  std::int64_t batch = 0;
  std::int64_t m0 = 0, m = 0;
  std::int64_t n0 = 0, n = 0;
  std::int64_t k0 = 0, k = 0;
};

// As in GemmBlock.
struct GemmOperandA {
  const float* data = nullptr;
  std::int64_t row = 0, k = 0;
};
struct GemmOperandB {
  const float* data = nullptr;
  std::int64_t panel = 0, k = 0;
};

struct GemmPlan {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;

  // Set by cut(): the sizes of a task's block, of the pieces that it is computed in (m_step rows by k_block), and into
  // how many parts K is split.
  std::int64_t m_block = 0, n_block = 0, k_block = 0;
  std::int64_t m_step = 0;
  std::int64_t k_splits = 1;

  std::function<void(ThreadPool&)> before;  // packs what all tasks share
  std::function<GemmOperandA(const GemmRange&, const GemmWorker&)> load_a;
  std::function<GemmOperandB(const GemmRange&, const GemmWorker&)> load_b;
  // Where C stands if blocks may be written in place; else null, and `store` takes them.
  float* c = nullptr;
  std::int64_t c_row = 0, c_batch = 0;
  std::function<void(const GemmRange&, const float* block, std::int64_t stride, const GemmWorker&)> store;
  std::function<void()> after;

  GemmBuffers buffers;
  std::byte* worker_base = nullptr;
  std::int64_t worker_bytes = 0;
  float* partials = nullptr;  // [k_splits][batch][m][n] if K is split

  // Chooses the blocks from the sizes. `split_k` allows K to be split. `tall` gives a task as many rows as it may have,
  // for operands that are expensive to load: A comes in steps of some rows, all of them for one block of B.
  void cut(bool split_k, bool tall = false);
  // Takes the workers' buffers (sized by `buffers`) and the partial sums out of the scratch.
  void place(Scratch& scratch, int threads);

  // `store` sees blocks of this many rows at most, each starting at a multiple of it: one chunk of channel sums.
  [[nodiscard]] std::int64_t chunk_rows() const;
  [[nodiscard]] std::int64_t chunks() const { return batch * ceil_div(m, chunk_rows()); }
  [[nodiscard]] std::int64_t chunk(const GemmRange& range) const {
    return range.batch * ceil_div(m, chunk_rows()) + range.m0 / chunk_rows();
  }

  void run(ThreadPool& pool) const;
  [[nodiscard]] GemmWorker worker(int worker) const;

 private:
  void run_task(std::int64_t task, int worker) const;
  void run_block(GemmRange range, std::int64_t k_end, float* target, std::int64_t stride, const GemmWorker& own) const;
  void reduce_task(std::int64_t task, int worker) const;
};

// True if K is so long that its parts make tasks enough: then cut() splits K before M and N.
[[nodiscard]] constexpr bool is_long_k(std::int64_t m, std::int64_t n, std::int64_t k) {
  return k >= 4 * (m > n ? m : n);
}

// Work below this is not worth waking another thread for (about 20 us of arithmetic, 4 us of copying).
inline constexpr double kForkFlops = 2e6;
inline constexpr std::int64_t kForkCopies = 32 * 1024;

// The part of an operand's tensor that a rectangle names, as rows `stride` floats apart.
struct RectView {
  const float* data = nullptr;
  std::int64_t stride = 0;
};

// An operand as its tasks load it: in place, copied, or computed by its prologue, rectangle by rectangle. A small
// tensor with a prologue that several tasks load is computed once, in full, before they start.
class GemmOperand {
 public:
  GemmOperand() = default;
  GemmOperand(TileExpr expr, std::int64_t rows, std::int64_t channels)
      : expr_(std::move(expr)), rows_(rows), channels_(channels) {}

  // Decides on computing it in full, and takes the memory for that. `loads`: how many times each element is loaded.
  void place(Scratch& scratch, std::int64_t loads);
  // Worker w's tile scratch is at tiles + w * step.
  void compute_whole(ThreadPool& pool, std::byte* tiles, std::int64_t step) const;
  void compute_whole(ThreadPool& pool, const GemmPlan& plan) const {
    compute_whole(pool, plan.worker(0).tiles, plan.worker_bytes);
  }

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t channels() const { return channels_; }
  // Whether the tensor is in memory, at data(), when tasks run.
  [[nodiscard]] bool stands() const { return is_whole_ || expr_.is_plain(); }
  [[nodiscard]] bool needs_tiles() const { return !expr_.is_plain(); }
  [[nodiscard]] const float* data() const { return is_whole_ ? whole_ : expr_.plain_data(); }

  // In place where the operand stands and `in_place` allows it, else in `buffer`, rows padded_stride(channels) apart.
  [[nodiscard]] RectView view(const Rect& rect, bool in_place, float* buffer, std::byte* tiles) const;
  // Into `buffer`, rows `stride` apart.
  void load(const Rect& rect, float* buffer, std::int64_t stride, std::byte* tiles) const;

 private:
  TileExpr expr_;
  std::int64_t rows_ = 0, channels_ = 0;
  bool is_whole_ = false;
  float* whole_ = nullptr;
};

// Copies rows of floats.
void copy_rows(const float* src, std::int64_t src_stride, std::int64_t rows, std::int64_t columns, float* dst,
               std::int64_t dst_stride);

// A context for counting scratch: everything but the pointers.
[[nodiscard]] KernelContext counting_context(const Graph& graph, const Node& node, int threads);

}  // namespace stoker::cpu
