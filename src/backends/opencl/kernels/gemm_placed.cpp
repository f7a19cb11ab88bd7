// gemm_placed.cl: products between tensors as they stand, on a device that is a CPU.
#include <algorithm>

#include "backends/opencl/kernels/gemm.h"

namespace stoker::opencl {

bool gemm_places(const GemmProblem& p, const Params& params) {
  return p.placed && !p.transpose_b && p.batched_a && p.batched_b && p.n % param(params, "V") == 0;
}

std::vector<Work> gemm_placed(const KernelContext& context, const GemmProblem& p, const Params& params,
                              const GemmOwn& own) {
  constexpr std::int64_t kBlockRows = 96;
  const std::int64_t v = param(params, "V");
  const std::int64_t most = param(params, "MR");
  // A result that is added to may not be stored twice: its tile divides the rows.
  const std::int64_t mr = p.transpose_a ? whole_tile(p.m, most) : std::min(most, p.m);
  const std::int64_t mc = round_up(kBlockRows, mr);
  Launch launch{.program = {"gemm_placed",
                            own.y->text,
                            {{"V", static_cast<int>(v)},
                             {"NV", p.n % (2 * v) == 0 ? 2 : 1},
                             {"MR", static_cast<int>(mr)},
                             {"TA", p.transpose_a ? 1 : 0}}},
                .kernel = "gemm_placed",
                .cost = cost_of(context, p)};
  for (const std::int64_t number : {p.m, p.n, p.k, mc}) launch.args.push_back(Arg::integer(number));
  for (const Rendered* own_part : {own.a, own.b, own.y}) append_args(launch.args, own_part->args);
  launch.global = {1, static_cast<std::size_t>(ceil_div(p.m, mc)), static_cast<std::size_t>(p.batch)};
  return {std::move(launch)};
}

}  // namespace stoker::opencl
