// matmul: op(x) op(y) on the last two dimensions; leading ones are batch dimensions, equal or absent on one side.
// A batch on x alone is folded into the rows where x is not transposed.
#include "backends/cpu/kernels/matmul.h"

#include <algorithm>
#include <array>
#include <memory>

#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/gemm_plan.h"
#include "backends/cpu/kernels/tile.h"
#include "base/error.h"

namespace stoker::cpu {
namespace {

struct MatMul : MatMulSizes {
  GemmOperand x, y;
  TileEpilogue epilogue;
  float* packed = nullptr;  // B in panels, if shared by all tasks
  float* partial_sums = nullptr;
  GemmPlan plan;
};

MatMulSizes sizes_of(const Graph& graph, const Node& node) {
  const Shape& x = operand_shape(graph, node, 0);
  const Shape& y = operand_shape(graph, node, 1);
  MatMulSizes mm;
  mm.transpose_x = node.attrs.integer("transpose_x") != 0;
  mm.transpose_y = node.attrs.integer("transpose_y") != 0;
  mm.m = x[mm.transpose_x ? -1 : -2];
  mm.k = x[mm.transpose_x ? -2 : -1];
  mm.n = y[mm.transpose_y ? -2 : -1];
  require(mm.k == y[mm.transpose_y ? -1 : -2], Code::bad_argument, "matmul: inner sizes differ: ", x, " and ", y);
  const std::int64_t x_batch = x.elements(0, x.rank() - 2);
  const std::int64_t y_batch = y.elements(0, y.rank() - 2);
  mm.batched_x = x.rank() > 2;
  mm.batched_y = y.rank() > 2;
  require(!mm.batched_x || !mm.batched_y || x_batch == y_batch, Code::bad_argument, "matmul: batch sizes differ: ", x,
          " and ", y);
  mm.batch = std::max(x_batch, y_batch);
  if (mm.batched_x && !mm.batched_y && !mm.transpose_x) {
    mm.m *= mm.batch;
    mm.batch = 1;
  }
  return mm;
}

// A block of op(x) as A: rows of x where it stands as [M, K], else columns.
GemmOperandA load_x(const MatMul& mm, const GemmRange& r, const GemmWorker& own) {
  const std::int64_t row0 = mm.batched_x ? r.batch * (mm.transpose_x ? mm.k : mm.m) : 0;
  const Rect rect = mm.transpose_x ? Rect{row0 + r.k0, r.k, 1, r.m0, r.m} : Rect{row0 + r.m0, r.m, 1, r.k0, r.k};
  // Read once or twice in place; more often from a copy if the stride crowds the cache. Columns of a large x are always
  // copied: that reads memory in order.
  const bool crowded = mm.x.channels() % 256 == 0 || (mm.transpose_x && mm.x.channels() > 256);
  const bool in_place =
      mm.transpose_x ? mm.k <= mm.plan.k_block && !crowded : !crowded || r.n <= 2 * gemm_tile().columns;
  const RectView view = mm.x.view(rect, in_place, own.a, own.tiles);
  if (mm.transpose_x) return {.data = view.data, .row = 1, .k = view.stride};
  return {.data = view.data, .row = view.stride, .k = 1};
}

// A block of op(y) as B, for the task alone.
GemmOperandB load_y(const MatMul& mm, const GemmRange& r, const GemmWorker& own) {
  const GemmTile tile = gemm_tile();
  const std::int64_t row0 = mm.batched_y ? r.batch * (mm.transpose_y ? mm.n : mm.k) : 0;
  if (mm.transpose_y) {
    const Rect rect{row0 + r.n0, r.n, 1, r.k0, r.k};
    const RectView view = mm.y.view(rect, true, own.spare, own.tiles);
    pack_panels_transposed(view.data, view.stride, r.k, r.n, own.b, r.k * tile.columns);
    return {.data = own.b, .panel = r.k * tile.columns, .k = tile.columns};
  }
  const Rect rect{row0 + r.k0, r.k, 1, r.n0, r.n};
  const bool in_place = r.n % tile.lanes == 0 && (mm.n % 128 != 0 || r.m <= 3 * tile.rows);
  const RectView view = mm.y.view(rect, in_place, own.b, own.tiles);
  return {.data = view.data, .panel = tile.columns, .k = view.stride};
}

// Packs all of op(y), or for `x` all of op(x) as the columns of the transposed product, into panels.
void pack_shared(const MatMul& mm, ThreadPool& pool, const GemmOperand& from, bool transposed, std::int64_t columns,
                 float* packed) {
  const std::int64_t width = gemm_tile().columns;
  const std::int64_t panels = ceil_div(columns, width);
  const bool fork = panels * width * mm.k > kForkCopies;
  const std::int64_t per_task = fork ? ceil_div(panels, 8) : panels;
  pool.run(ceil_div(panels, per_task), [&](std::int64_t task, int worker) {
    const GemmWorker own = mm.plan.worker(worker);
    const std::int64_t first = task * per_task * width;
    const std::int64_t count = std::min(per_task * width, columns - first);
    for (std::int64_t k0 = 0; k0 < mm.k; k0 += mm.plan.k_block) {
      const std::int64_t k = std::min(mm.plan.k_block, mm.k - k0);
      float* to = packed + first * mm.k + k0 * width;
      if (transposed) {
        const RectView view = from.view({first, count, 1, k0, k}, true, own.spare, own.tiles);
        pack_panels_transposed(view.data, view.stride, k, count, to, mm.k * width);
      } else {
        const RectView view = from.view({k0, k, 1, first, count}, true, own.spare, own.tiles);
        pack_panels(view.data, view.stride, k, count, to, mm.k * width);
      }
    }
  });
}

GemmOperandB shared_panels(const float* packed, std::int64_t depth, const GemmRange& r) {
  const std::int64_t width = gemm_tile().columns;
  return {.data = packed + r.n0 * depth + r.k0 * width, .panel = depth * width, .k = width};
}

void set_store(MatMul& mm) {
  mm.plan.store = [&mm](const GemmRange& r, const float* block, std::int64_t stride, const GemmWorker& own) {
    const Rect rect{r.batch * mm.m + r.m0, r.m, 1, r.n0, r.n};
    float* sums = mm.partial_sums + mm.plan.chunk(r) * mm.epilogue.sums() * mm.n;
    mm.epilogue.apply(rect, block, stride, sums, false, own.tiles);
  };
}

// The product of few rows with y^T: y is large, so y is read in place as A, and C comes out transposed.
void plan_swapped(MatMul& mm, Scratch& scratch, int threads) {
  GemmPlan& plan = mm.plan;
  plan.m = mm.n;
  plan.n = mm.m;
  plan.k = mm.k;
  plan.cut(false);
  mm.packed = scratch.floats(round_up(mm.m, gemm_tile().columns) * mm.k);
  plan.buffers = {.spare = std::max(mm.m * padded_stride(plan.m_block), mm.m * padded_stride(plan.k_block)),
                  .tiles = mm.x.needs_tiles() || !mm.epilogue.is_plain()};
  plan.before = [&mm](ThreadPool& pool) { pack_shared(mm, pool, mm.x, true, mm.m, mm.packed); };
  plan.load_a = [&mm](const GemmRange& r, const GemmWorker&) {
    return GemmOperandA{.data = mm.y.data() + r.m0 * mm.k + r.k0, .row = mm.k, .k = 1};
  };
  plan.load_b = [&mm](const GemmRange& r, const GemmWorker&) { return shared_panels(mm.packed, mm.k, r); };
  plan.store = [&mm](const GemmRange& r, const float* block, std::int64_t stride, const GemmWorker& own) {
    if (mm.epilogue.is_plain()) {
      transpose_block(block, stride, r.m, r.n, mm.epilogue.plain_data() + r.n0 * mm.n + r.m0, mm.n);
      return;
    }
    const std::int64_t across = padded_stride(r.m);
    transpose_block(block, stride, r.m, r.n, own.spare, across);
    mm.epilogue.apply({r.n0, r.n, 1, r.m0, r.m}, own.spare, across, mm.partial_sums, false, own.tiles);
  };
  plan.place(scratch, threads);
}

void plan_straight(MatMul& mm, Scratch& scratch, int threads) {
  const GemmTile tile = gemm_tile();
  GemmPlan& plan = mm.plan;
  plan.batch = mm.batch;
  plan.m = mm.m;
  plan.n = mm.n;
  plan.k = mm.k;
  // A long K makes tasks enough by its parts: then each part of y is loaded once, for all rows.
  const bool long_k = mm.batch == 1 && is_long_k(mm.m, mm.n, mm.k);
  plan.cut(true, long_k);
  const bool shared_y = mm.batch == 1 && plan.k_splits == 1;
  mm.x.place(scratch, ceil_div(mm.n, plan.n_block));
  mm.y.place(scratch, shared_y ? 1 : ceil_div(mm.m, plan.m_block));
  const std::int64_t n = std::min(plan.n_block, mm.n);
  const bool in_place = mm.y.stands() && !mm.transpose_y && mm.m <= 3 * tile.rows && mm.n % tile.lanes == 0;
  const bool shared = shared_y && !in_place;
  const std::int64_t a_rows = mm.transpose_x ? plan.k_block : plan.m_step;
  plan.buffers = {.a = a_rows * padded_stride(mm.transpose_x ? plan.m_step : plan.k_block),
                  .b = shared ? 0 : plan.k_block * padded_stride(round_up(n, tile.columns)),
                  .tiles = mm.x.needs_tiles() || mm.y.needs_tiles() || !mm.epilogue.is_plain()};
  if (!mm.y.stands()) {
    const std::int64_t panels = round_up(ceil_div(mm.n, tile.columns), 8) * tile.columns;
    plan.buffers.spare = std::max(plan.k_block * padded_stride(panels), panels * padded_stride(plan.k_block));
  }
  plan.load_a = [&mm](const GemmRange& r, const GemmWorker& own) { return load_x(mm, r, own); };
  if (shared) {
    mm.packed = scratch.floats(round_up(mm.n, tile.columns) * mm.k);
    plan.before = [&mm](ThreadPool& pool) {
      mm.x.compute_whole(pool, mm.plan);
      pack_shared(mm, pool, mm.y, mm.transpose_y, mm.n, mm.packed);
    };
    plan.load_b = [&mm](const GemmRange& r, const GemmWorker&) { return shared_panels(mm.packed, mm.k, r); };
  } else {
    plan.before = [&mm](ThreadPool& pool) {
      mm.x.compute_whole(pool, mm.plan);
      mm.y.compute_whole(pool, mm.plan);
    };
    plan.load_b = [&mm](const GemmRange& r, const GemmWorker& own) { return load_y(mm, r, own); };
  }
  if (mm.epilogue.is_plain()) {
    plan.c = mm.epilogue.plain_data();
    plan.c_row = mm.n;
    plan.c_batch = mm.m * mm.n;
  }
  set_store(mm);
  plan.place(scratch, threads);
}

std::shared_ptr<MatMul> make(const KernelContext& context, const MatMulSizes& sizes, Scratch& scratch) {
  auto mm = std::make_shared<MatMul>(MatMul{sizes});
  const std::int64_t x_batch = sizes.batched_x ? sizes.batch : 1;
  const std::int64_t y_batch = sizes.batched_y ? sizes.batch : 1;
  mm->x = GemmOperand(bind_operand(context, 0), x_batch * (sizes.transpose_x ? sizes.k : sizes.m),
                      sizes.transpose_x ? sizes.m : sizes.k);
  mm->y = GemmOperand(bind_operand(context, 1), y_batch * (sizes.transpose_y ? sizes.n : sizes.k),
                      sizes.transpose_y ? sizes.k : sizes.n);
  mm->epilogue = TileEpilogue(context, mm->batch * mm->m, mm->n);
  // Where packing x and turning C round costs clearly less than packing y.
  const bool swapped = mm->batch == 1 && mm->transpose_y && !mm->transpose_x && !mm->y.needs_tiles() &&
                       mm->epilogue.sums() == 0 && mm->n * mm->k > 2 * mm->m * (mm->k + mm->n);
  if (swapped) {
    plan_swapped(*mm, scratch, context.threads);
  } else {
    plan_straight(*mm, scratch, context.threads);
  }
  if (mm->epilogue.sums() > 0) {
    mm->partial_sums = scratch.floats(mm->plan.chunks() * mm->epilogue.sums() * mm->n);
    mm->plan.after = [m = mm.get()] { m->epilogue.finish_sums(m->partial_sums, m->plan.chunks()); };
  }
  return mm;
}

Kernel prepare(const KernelContext& context) { return prepare_matmul(context, sizes_of(context.graph, context.node)); }

std::int64_t workspace(const Graph& graph, const Node& node, int threads) {
  return matmul_workspace(graph, node, sizes_of(graph, node), threads);
}

int prologue_tensors(const Graph&, const Node&, int) { return 2; }
bool takes_epilogue(const Graph&, const Node&) { return true; }

constexpr std::array kKernels = {KernelDef{.op = "matmul",
                                           .prepare = prepare,
                                           .workspace = workspace,
                                           .prologue_tensors = prologue_tensors,
                                           .takes_epilogue = takes_epilogue}};

}  // namespace

Kernel prepare_matmul(const KernelContext& context, const MatMulSizes& sizes) {
  Scratch scratch(context.scratch);
  return [mm = make(context, sizes, scratch)](ThreadPool& pool) { mm->plan.run(pool); };
}

std::int64_t matmul_workspace(const Graph& graph, const Node& node, const MatMulSizes& sizes, int threads) {
  Scratch scratch(nullptr);
  static_cast<void>(make(counting_context(graph, node, threads), sizes, scratch));
  return scratch.used();
}

std::span<const KernelDef> matmul_kernels() { return kKernels; }

}  // namespace stoker::cpu
