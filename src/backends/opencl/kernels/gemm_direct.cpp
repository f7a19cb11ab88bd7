// gemm_direct.cl: how a product is cut into work-items and parts of K on a GPU, and its launches.
#include <algorithm>
#include <array>

#include "backends/opencl/kernels/gemm.h"

namespace stoker::opencl {
namespace {

constexpr std::int64_t kItems = 4096;     // work-items that keep a phone's GPU busy
constexpr std::int64_t kPartDepth = 128;  // the least part of K that is worth a result of its own

struct DirectCut {
  std::int64_t tm = 0, tn = 0, gx = 0, gy = 0;
  std::int64_t k_each = 0, parts = 1;
  bool fours = false;
  int image = 0;
  int k_step = 4;
};

bool fits_image(const KernelContext& context, const GemmProblem& p, int operand) {
  if (!stands(context, p, operand) || context.device.quirks.no_images) return false;
  const std::int64_t elements = operand == p.a ? p.a_items() * p.m * p.k : p.b_items() * p.n * p.k;
  return ceil_div(elements, 4) <= context.device.image_texels;
}

DirectCut make_cut(const KernelContext& context, const GemmProblem& p, const Params& params) {
  DirectCut cut{.tm = param(params, "TM"),
                .tn = param(params, "TN"),
                .gx = param(params, "GX"),
                .gy = param(params, "GY"),
                .k_each = p.k};
  cut.fours = p.k % 4 == 0 && p.n % 4 == 0 && (!p.transpose_a || p.m % 4 == 0);
  if (p.transpose_a) cut.tm = round_up(cut.tm, 4);
  // Computing an operand takes registers, which only Adreno has enough of for the whole tile.
  const bool computed = !stands(context, p, p.a) || !stands(context, p, p.b);
  if (computed && context.device.family != Family::adreno) {
    if (!p.transpose_a) cut.tm = std::max<std::int64_t>(cut.tm / 2, 1);
    if (p.transpose_a && cut.fours) cut.k_step = 1;
  }
  // So does an epilogue that takes sums while B's rows lie across (Mali-G76: 67 spills).
  if (!computed && p.transpose_b && !p.transpose_a && context.device.family == Family::mali && sums_of(context, p) > 0)
    cut.tm = std::max<std::int64_t>(cut.tm / 2, 1);
  if (!p.transpose_a && p.m < cut.tm) cut.tm = 1;
  if (cut.fours) {
    const int wanted = param(params, "IMAGE");
    if ((wanted & 1) != 0 && fits_image(context, p, p.b)) cut.image |= 1;
    if ((wanted & 2) != 0 && fits_image(context, p, p.a)) cut.image |= 2;
  }
  const std::int64_t items = ceil_div(p.m, cut.tm) * ceil_div(p.n, cut.tn);
  if (p.batch == 1 && items < kItems && p.k >= 4 * kPartDepth) {
    cut.parts = std::clamp<std::int64_t>(kItems / items, 1, p.k / kPartDepth);
    cut.k_each = round_up(ceil_div(p.k, cut.parts), 4);
    cut.parts = ceil_div(p.k, cut.k_each);
  }
  return cut;
}

std::int64_t row_groups(const GemmProblem& p, const DirectCut& cut) { return ceil_div(p.m, cut.tm * cut.gy); }

// The workspace's pieces.
struct Pieces {
  Place parts, sums;
  std::int64_t bytes = 0;
};

Pieces place_pieces(const KernelContext& context, const GemmProblem& p, const DirectCut& cut) {
  GemmScratch scratch(context.scratch);
  Pieces pieces;
  if (cut.parts > 1) {
    pieces.parts = scratch.floats(cut.parts * p.m * p.n);
    pieces.sums = scratch.floats(reduce_sums(context, p));
  } else {
    pieces.sums = scratch.floats(p.batch * row_groups(p, cut) * sums_of(context, p) * p.n);
  }
  pieces.bytes = scratch.used();
  return pieces;
}

Launch direct_launch(const KernelContext& context, const GemmProblem& p, const DirectCut& cut, const GemmOwn& own) {
  Launch launch{.kernel = "gemm_direct", .cost = cost_of(context, p)};
  launch.program = {"gemm_direct",
                    {},
                    {{"TA", p.transpose_a ? 1 : 0},
                     {"TB", p.transpose_b ? 1 : 0},
                     {"TM", static_cast<int>(cut.tm)},
                     {"TN", static_cast<int>(cut.tn)},
                     {"VEC", cut.fours ? 1 : 0},
                     {"IMAGE", cut.image},
                     {"KSTEP", cut.k_step},
                     {"GX", static_cast<int>(cut.gx)},
                     {"GY", static_cast<int>(cut.gy)}}};
  for (const std::int64_t number :
       {p.m, p.n, p.k, cut.k_each, p.batched_a ? p.m * p.k : 0, p.batched_b ? p.n * p.k : 0})
    launch.args.push_back(Arg::integer(number));
  if ((cut.image & 2) != 0) launch.args.push_back(Arg::image(place_of(context, p, p.a, own)));
  if ((cut.image & 1) != 0) launch.args.push_back(Arg::image(place_of(context, p, p.b, own)));
  launch.global = {static_cast<std::size_t>(round_up(ceil_div(p.n, cut.tn), cut.gx)),
                   static_cast<std::size_t>(row_groups(p, cut) * cut.gy),
                   static_cast<std::size_t>(p.batch * cut.parts)};
  launch.local = {static_cast<std::size_t>(cut.gx), static_cast<std::size_t>(cut.gy), 1};
  return launch;
}

}  // namespace

std::int64_t gemm_direct_workspace(const KernelContext& context, const GemmProblem& problem, const Params& params) {
  return place_pieces(context, problem, make_cut(context, problem, params)).bytes;
}

std::vector<Work> gemm_direct(const KernelContext& context, const GemmProblem& problem, const Params& params,
                              const GemmOwn& own) {
  const DirectCut cut = make_cut(context, problem, params);
  const Pieces pieces = place_pieces(context, problem, cut);
  const std::array widths = {cut.fours ? 4 : 1};
  const Rendered a = own.a != nullptr ? *own.a : render_operand(context, problem.a, "A", widths, true);
  const Rendered b = own.b != nullptr ? *own.b : render_operand(context, problem.b, "B", widths, true);
  const bool split = cut.parts > 1;
  const Rendered y = split              ? as_it_stands(pieces.parts)
                     : own.y != nullptr ? *own.y
                                        : render_epilogue(context, "Y", widths, true);
  Launch launch = direct_launch(context, problem, cut, own);
  launch.program.header = a.text + b.text + y.text;
  append_args(launch.args, a.args);
  append_args(launch.args, b.args);
  const bool sums = !split && sums_of(context, problem) > 0;
  if (sums) launch.args.push_back(Arg::tensor(pieces.sums));
  append_args(launch.args, y.args);
  std::vector<Work> work{std::move(launch)};
  if (split) append_reduce(work, context, problem, cut.parts, pieces.parts, pieces.sums);
  if (sums) work.emplace_back(combine_sums(context, pieces.sums, problem.batch * row_groups(problem, cut), problem.n));
  return work;
}

}  // namespace stoker::opencl
