// gemm_panel.cl: how a product is cut into macro-tiles and parts of K on a device that is a CPU, and its launches.
#include <algorithm>
#include <array>

#include "backends/opencl/kernels/gemm.h"
#include "base/error.h"

namespace stoker::opencl {
namespace {

constexpr std::int64_t kGroupMacs = std::int64_t{1} << 19;  // about 6 us of one thread: no macro-tile need be smaller
constexpr std::int64_t kGroups = 16;                        // runtimes hand out groups in halves of what is left
// Floats of B packed again and again, as they stand or turned round, from which on a launch that packs B pays.
constexpr std::int64_t kRepacked = std::int64_t{1} << 18;
constexpr std::int64_t kRepackedTurned = std::int64_t{1} << 15;

enum From : int { in_place = 0, packed_here = 1, packed_before = 2 };  // FROM of gemm_panel.cl

struct PanelCut {
  std::int64_t v = 0, nv = 0, mr = 0, kc = 0;  // the defines
  std::int64_t mc = 0, nc = 0;                 // the macro-tile
  std::int64_t k_each = 0, parts = 1;
  int from = packed_here;

  [[nodiscard]] std::int64_t nr() const { return nv * v; }
};

std::int64_t groups(const GemmProblem& p, const PanelCut& cut) {
  return ceil_div(p.m, cut.mc) * ceil_div(p.n, cut.nc) * p.batch * cut.parts;
}

// Floats of local memory: the block of A, the macro-tile, the panel of B.
std::int64_t local_a(const GemmProblem& p, const PanelCut& cut) {
  if (p.windows.block > 0) return p.windows.floats;
  return cut.mc * (p.transpose_a ? std::min(cut.kc, p.k) : cut.kc + cut.v);
}
std::int64_t local_b(const GemmProblem& p, const PanelCut& cut) {
  const bool whole = p.windows.block > 0 && !p.transpose_a;
  return cut.from == packed_here ? (whole ? p.k : std::min(cut.kc, p.k)) * cut.nr() : 0;
}

// The register tile: narrower and lower where the result's edge would leave much of it idle.
void choose_tile(const GemmProblem& p, PanelCut& cut) {
  const std::int64_t lower = cut.mr * 2 / 3;
  if (p.windows.block > 0) {
    cut.mr = whole_tile(p.windows.rows, cut.mr);
  } else if (p.m <= 8 * cut.mr && round_up(p.m, lower) < round_up(p.m, cut.mr)) {
    cut.mr = lower;
  }
  const std::int64_t rest = p.n % cut.nr();
  if (rest > 0 && rest <= cut.v && p.n < 4 * cut.nr()) cut.nv = 1;
}

// Macro-tiles small enough for all threads to have some, K in parts where it is long and M and N are not.
void choose_macro_tile(const GemmProblem& p, PanelCut& cut) {
  cut.mc = std::min(round_up(cut.mc, cut.mr), round_up(p.m, cut.mr));
  cut.nc = std::min(round_up(cut.nc, cut.nr()), round_up(p.n, cut.nr()));
  if (p.windows.block > 0 && !p.transpose_a) {
    cut.mc = p.windows.block;
    return;
  }
  if (p.windows.block > 0) cut.kc = p.windows.block;
  const std::int64_t wanted = std::clamp<std::int64_t>(p.m * p.n * p.k * p.batch / kGroupMacs, 1, kGroups);
  if (p.batch == 1 && p.k >= 8 * cut.kc && groups(p, cut) < wanted) {
    cut.parts = std::min(ceil_div(wanted, groups(p, cut)), p.k / (2 * cut.kc));
    cut.k_each = round_up(ceil_div(p.k, cut.parts), cut.kc);
    cut.parts = ceil_div(p.k, cut.k_each);
  }
  while (groups(p, cut) < wanted && cut.nc > cut.nr()) cut.nc = round_up(cut.nc / 2, cut.nr());
  while (groups(p, cut) < wanted && cut.mc > 4 * cut.mr) cut.mc = round_up(cut.mc / 2, cut.mr);
}

// Whether B is read where it stands. With windows its rows are short, and lie close together: also where the last
// vector of a row overlaps the one before. Both must be in one tile, for a macro-tile's sums go on from block to block
// of K.
bool stays_in_place(const KernelContext& context, const GemmProblem& p, const PanelCut& cut) {
  if (p.transpose_b || !stands(context, p, p.b)) return false;
  if (p.n % cut.nr() == 0) return p.windows.block > 0 || p.m <= 3 * cut.mr;
  return p.windows.block > 0 && p.n >= cut.v && cut.nv > 1 && ceil_div(p.n, cut.v) % cut.nv == 0;
}

PanelCut make_cut(const KernelContext& context, const GemmProblem& p, const Params& params) {
  PanelCut cut{.v = param(params, "V"),
               .nv = param(params, "NV"),
               .mr = param(params, "MR"),
               .kc = param(params, "KC"),
               .mc = param(params, "MC"),
               .nc = param(params, "NC"),
               .k_each = p.k};
  choose_tile(p, cut);
  choose_macro_tile(p, cut);
  const std::int64_t repacked = (ceil_div(p.m, cut.mc) - 1) * p.n * p.k;
  if (stays_in_place(context, p, cut)) {
    cut.from = in_place;
  } else if (repacked > (p.transpose_b ? kRepackedTurned : kRepacked)) {
    cut.from = packed_before;
  }
  const std::int64_t room = context.device.local_bytes / static_cast<std::int64_t>(sizeof(float));
  const auto fits = [&] { return local_a(p, cut) + local_b(p, cut) + cut.mc * cut.nc <= room; };
  while (!fits() && cut.nc > cut.nr()) cut.nc = round_up(cut.nc / 2, cut.nr());
  while (!fits() && cut.mc > cut.mr) cut.mc = round_up(cut.mc / 2, cut.mr);
  if (!fits()) cut.from = packed_before;
  return cut;
}

// The workspace's pieces.
struct Pieces {
  Place panels, parts, sums;
  std::int64_t bytes = 0;
};

Pieces place_pieces(const KernelContext& context, const GemmProblem& p, const PanelCut& cut) {
  GemmScratch scratch(context.scratch);
  Pieces pieces;
  if (cut.from == packed_before) pieces.panels = scratch.floats(p.b_items() * round_up(p.n, cut.nr()) * p.k);
  if (cut.parts > 1) {
    pieces.parts = scratch.floats(cut.parts * p.m * p.n);
    pieces.sums = scratch.floats(reduce_sums(context, p));
  } else {
    pieces.sums = scratch.floats(p.batch * ceil_div(p.m, cut.mc) * sums_of(context, p) * p.n);
  }
  pieces.bytes = scratch.used();
  return pieces;
}

std::vector<std::pair<std::string, int>> defines(const GemmProblem& p, const PanelCut& cut) {
  return {{"V", static_cast<int>(cut.v)},
          {"NV", static_cast<int>(cut.nv)},
          {"MR", static_cast<int>(cut.mr)},
          {"KC", static_cast<int>(cut.kc)},
          {"TA", p.transpose_a ? 1 : 0},
          {"TB", p.transpose_b ? 1 : 0},
          {"FROM", cut.from}};
}

constexpr std::array kTurned = {1, 4};  // widths of a B that is turned round

std::vector<int> result_widths(const PanelCut& cut) {
  return cut.v > 4 ? std::vector{1, 4, static_cast<int>(cut.v)} : std::vector{1, 4};
}

std::array<std::size_t, 3> range(std::int64_t x, std::int64_t y, std::int64_t z) {
  return {static_cast<std::size_t>(x), static_cast<std::size_t>(y), static_cast<std::size_t>(z)};
}

Launch pack_launch(const GemmProblem& p, const PanelCut& cut, const Program& program, const Rendered& b,
                   const Place& panels) {
  Launch launch{.program = program, .kernel = "gemm_pack"};
  launch.args = {Arg::integer(p.n), Arg::integer(p.k), Arg::integer(p.n * p.k), Arg::tensor(panels)};
  append_args(launch.args, b.args);
  launch.global = range(ceil_div(p.k, cut.kc), ceil_div(p.n, cut.nr()), p.b_items());
  launch.cost = {.flops = 0, .bytes = 8.0 * static_cast<double>(p.b_items() * p.n * p.k)};
  return launch;
}

Launch panel_launch(const KernelContext& context, const GemmProblem& p, const PanelCut& cut, const Program& program,
                    const Pieces& pieces, const GemmOwn& own) {
  Launch launch{.program = program, .kernel = "gemm_panel", .cost = cost_of(context, p)};
  for (const std::int64_t number :
       {p.m, p.n, p.k, cut.k_each, cut.mc, cut.nc, p.batched_a ? p.m * p.k : 0, p.batched_b ? p.n * p.k : 0})
    launch.args.push_back(Arg::integer(number));
  const auto local = [](std::int64_t floats) { return Arg::local(floats * static_cast<std::int64_t>(sizeof(float))); };
  launch.args.push_back(local(local_a(p, cut)));
  launch.args.push_back(local(cut.mc * cut.nc));
  if (cut.from == packed_here) {
    launch.args.push_back(local(local_b(p, cut)));
  } else {
    launch.args.push_back(Arg::tensor(cut.from == packed_before ? pieces.panels : place_of(context, p, p.b, own)));
  }
  launch.global = range(ceil_div(p.n, cut.nc), ceil_div(p.m, cut.mc), p.batch * cut.parts);
  return launch;
}

}  // namespace

std::int64_t whole_tile(std::int64_t rows, std::int64_t most) {
  std::int64_t height = std::min(rows, most);
  while (rows % height != 0) --height;
  return height;
}

std::int64_t gemm_panel_workspace(const KernelContext& context, const GemmProblem& problem, const Params& params) {
  return place_pieces(context, problem, make_cut(context, problem, params)).bytes;
}

std::vector<Work> gemm_panel(const KernelContext& context, const GemmProblem& problem, const Params& params,
                             const GemmOwn& own) {
  const PanelCut cut = make_cut(context, problem, params);
  const Pieces pieces = place_pieces(context, problem, cut);
  const std::array wide = {1, static_cast<int>(cut.v)};
  const Rendered a = own.a != nullptr ? *own.a : render_operand(context, problem.a, "A", wide, false);
  const Rendered b =
      own.b != nullptr ? *own.b : render_operand(context, problem.b, "B", problem.transpose_b ? kTurned : wide, false);
  const bool split = cut.parts > 1;
  const bool ends = !split && own.y == nullptr;  // with the epilogue
  DCHECK(!split || own.y == nullptr);
  const Rendered y = split              ? as_it_stands(pieces.parts)
                     : own.y != nullptr ? *own.y
                                        : render_epilogue(context, "Y", result_widths(cut), false);
  const Program program{"gemm_panel", a.text + b.text + y.text, defines(problem, cut)};
  const bool sums = ends && !sum_outputs(context.node).empty();

  std::vector<Work> work;
  if (cut.from == packed_before) work.emplace_back(pack_launch(problem, cut, program, b, pieces.panels));
  Launch launch = panel_launch(context, problem, cut, program, pieces, own);
  append_args(launch.args, a.args);
  append_args(launch.args, b.args);
  if (sums) launch.args.push_back(Arg::tensor(pieces.sums));
  append_args(launch.args, y.args);
  work.emplace_back(std::move(launch));
  if (split) append_reduce(work, context, problem, cut.parts, pieces.parts, pieces.sums);
  if (sums) {
    const std::int64_t blocks = problem.batch * ceil_div(problem.m, cut.mc);
    work.emplace_back(combine_sums(context, pieces.sums, blocks, problem.n));
  }
  return work;
}

namespace {

PanelCut scatter_cut(const KernelContext& context, const GemmProblem& p, const GemmScatter& scatter) {
  const Params& params = context.tuning.params("gemm", problem_name(p));
  PanelCut cut{.v = param(params, "V"),
               .nv = param(params, "NV"),
               .mr = param(params, "MR"),
               .kc = param(params, "KC"),
               .nc = 0,
               .k_each = p.k,
               .from = packed_before};
  const std::int64_t even = whole_tile(scatter.pixels, cut.mr);
  if (3 * even >= 2 * cut.mr) cut.mr = even;
  cut.mc = std::min(2 * cut.mr, round_up(scatter.pixels, cut.mr));
  cut.nc = round_up(p.n, cut.nr());
  return cut;
}

Pieces scatter_pieces(const KernelContext& context, const GemmProblem& p, const PanelCut& cut,
                      const GemmScatter& scatter) {
  GemmScratch scratch(context.scratch);
  Pieces pieces;
  pieces.panels = scratch.floats(cut.nc * p.k);
  const auto sums = static_cast<std::int64_t>(sum_outputs(context.node).size());
  pieces.sums = scratch.floats(scatter.items * sums * scatter.channels);
  pieces.bytes = scratch.used();
  return pieces;
}

}  // namespace

bool gemm_scatters(const KernelContext& context, const GemmProblem& problem, const GemmScatter& scatter) {
  constexpr std::int64_t kFloats = 32 * 1024;  // what stays in the nearer caches
  const PanelCut cut = scatter_cut(context, problem, scatter);
  const std::int64_t room = context.device.local_bytes / static_cast<std::int64_t>(sizeof(float));
  const std::int64_t needed = local_a(problem, cut) + cut.mc * cut.nc + scatter.image;
  return problem.k <= cut.kc && scatter.items >= kGroups / 2 && needed <= std::min(room, kFloats);
}

std::int64_t gemm_scatter_workspace(const KernelContext& context, const GemmProblem& problem,
                                    const GemmScatter& scatter) {
  return scatter_pieces(context, problem, scatter_cut(context, problem, scatter), scatter).bytes;
}

std::vector<Work> gemm_scatter(const KernelContext& context, const GemmProblem& problem, const GemmScatter& scatter) {
  const PanelCut cut = scatter_cut(context, problem, scatter);
  const Pieces pieces = scatter_pieces(context, problem, cut, scatter);
  const std::array wide = {1, static_cast<int>(cut.v)};
  const Rendered a = render_operand(context, problem.a, "A", wide, false);
  const Rendered b = render_operand(context, problem.b, "B", kTurned, false);
  const Rendered y = render_epilogue(context, "Y", result_widths(cut), false);
  const Program program{"gemm_panel", a.text + b.text + y.text + scatter.functions.text, defines(problem, cut)};
  Launch launch{.program = program, .kernel = "gemm_scatter", .cost = cost_of(context.graph, context.node)};
  for (const std::int64_t number : {scatter.pixels, problem.n, problem.k, cut.mc, cut.nc})
    launch.args.push_back(Arg::integer(number));
  for (const std::int64_t floats : {local_a(problem, cut), cut.mc * cut.nc, scatter.image})
    launch.args.push_back(Arg::local(floats * static_cast<std::int64_t>(sizeof(float))));
  launch.args.push_back(Arg::tensor(pieces.panels));
  append_args(launch.args, scatter.functions.args);
  append_args(launch.args, a.args);
  const bool sums = !sum_outputs(context.node).empty();
  if (sums) launch.args.push_back(Arg::tensor(pieces.sums));
  append_args(launch.args, y.args);
  launch.global = range(scatter.items, 1, 1);
  std::vector<Work> work{pack_launch(problem, cut, program, b, pieces.panels), std::move(launch)};
  if (sums) work.emplace_back(combine_sums(context, pieces.sums, scatter.items, scatter.channels));
  return work;
}

}  // namespace stoker::opencl
