// Matrix products as launches: C = op(A) op(B) with the node's prologues and epilogue. matmul is one; so is a
// convolution of 1 x 1, stride 1, and with an A of its own any other (gemm_panel.cl).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/opencl/kernel.h"
#include "backends/opencl/render.h"
#include "backends/opencl/tuning.h"

namespace stoker::opencl {

// A convolution's windows as A (conv2d_windows.cl): what they ask of the cut.
struct GemmWindows {
  std::int64_t rows = 0;    // a tile's rows divide it
  std::int64_t block = 0;   // rows of a macro-tile or, where A is transposed, depth of a block of K; 0: no windows
  std::int64_t floats = 0;  // of local memory
};

// The highest tile, up to `most` rows, that leaves none of `rows` over.
[[nodiscard]] std::int64_t whole_tile(std::int64_t rows, std::int64_t most);

struct GemmProblem {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1;
  bool transpose_a = false;  // A is [K, M], not [M, K]
  bool transpose_b = false;  // B is [N, K], not [K, N]
  bool batched_a = false;    // one matrix for each item of the batch, not one for all
  bool batched_b = false;
  int a = 0, b = 1;     // which operands of the node they are
  bool placed = false;  // operands and result are not the node's: GemmOwn has them, as they stand
  GemmWindows windows;

  [[nodiscard]] std::int64_t rows() const { return batch * m; }
  [[nodiscard]] std::int64_t a_items() const { return batched_a ? batch : 1; }
  [[nodiscard]] std::int64_t b_items() const { return batched_b ? batch : 1; }
};

// "NT 64x512x512": layout, and sizes rounded up to powers of two. The key of tuned entries.
[[nodiscard]] std::string problem_name(const GemmProblem& problem);

// What a convolution brings of its own: operands (for gemm_panel.cl their texts may define A_BLOCK, A_PARAMS and
// A_PASS, or B's functions), and what takes the result instead of the epilogue.
struct GemmOwn {
  const Rendered* a = nullptr;
  const Rendered* b = nullptr;
  const Rendered* y = nullptr;
};
// A tensor that the kernels' own default functions load or store.
[[nodiscard]] Rendered as_it_stands(const Place& place);

// The launches that compute the problem as the tuning says, and the workspace that they need.
[[nodiscard]] std::vector<Work> gemm_work(const KernelContext& context, const GemmProblem& problem,
                                          const GemmOwn& own = {});
[[nodiscard]] std::int64_t gemm_workspace(const KernelContext& context, const GemmProblem& problem);

// The kernels behind it.
[[nodiscard]] std::vector<Work> gemm_plain(const KernelContext& context, const GemmProblem& problem,
                                           const GemmOwn& own = {});
[[nodiscard]] std::int64_t gemm_plain_workspace(const KernelContext& context, const GemmProblem& problem);
[[nodiscard]] std::vector<Work> gemm_panel(const KernelContext& context, const GemmProblem& problem,
                                           const Params& params, const GemmOwn& own = {});
[[nodiscard]] std::int64_t gemm_panel_workspace(const KernelContext& context, const GemmProblem& problem,
                                                const Params& params);
// Nothing packed: only where gemm_places() says.
[[nodiscard]] bool gemm_places(const GemmProblem& problem, const Params& params);
[[nodiscard]] std::vector<Work> gemm_placed(const KernelContext& context, const GemmProblem& problem,
                                            const Params& params, const GemmOwn& own);
// A product of `items` times `pixels` rows whose results are added up in an image for each item (conv2d_scatter.cl),
// which then goes through the epilogue. Only where gemm_scatters() says.
struct GemmScatter {
  std::int64_t items = 0, pixels = 0;
  std::int64_t image = 0, channels = 0;  // floats of an image, and of its pixels
  Rendered functions;                    // scatter(), and the arguments that it takes
};
[[nodiscard]] bool gemm_scatters(const KernelContext& context, const GemmProblem& problem, const GemmScatter& scatter);
[[nodiscard]] std::vector<Work> gemm_scatter(const KernelContext& context, const GemmProblem& problem,
                                             const GemmScatter& scatter);
[[nodiscard]] std::int64_t gemm_scatter_workspace(const KernelContext& context, const GemmProblem& problem,
                                                  const GemmScatter& scatter);
[[nodiscard]] std::vector<Work> gemm_direct(const KernelContext& context, const GemmProblem& problem,
                                            const Params& params, const GemmOwn& own = {});
[[nodiscard]] std::int64_t gemm_direct_workspace(const KernelContext& context, const GemmProblem& problem,
                                                 const Params& params);

// Appends the launch that adds up `parts` results [parts][M][N] at `from` and applies the epilogue, and what follows
// it. `sums`: room for reduce_sums() floats.
void append_reduce(std::vector<Work>& work, const KernelContext& context, const GemmProblem& problem,
                   std::int64_t parts, const Place& from, const Place& sums);
[[nodiscard]] std::int64_t reduce_sums(const KernelContext& context, const GemmProblem& problem);

void append_args(std::vector<Arg>& args, const std::vector<Arg>& more);
// The node's input that is the operand as it stands; -1 where a prologue computes it.
[[nodiscard]] int plain_input(const Node& node, int operand);
// Whether the problem's operand a or b is a tensor as it stands.
[[nodiscard]] bool stands(const KernelContext& context, const GemmProblem& problem, int operand);
// Where it stands then.
[[nodiscard]] Place place_of(const KernelContext& context, const GemmProblem& problem, int operand, const GemmOwn& own);
// How many sums per channel its epilogue takes.
[[nodiscard]] std::int64_t sums_of(const KernelContext& context, const GemmProblem& problem);
[[nodiscard]] Cost cost_of(const KernelContext& context, const GemmProblem& problem);

// Hands out pieces of a workspace; with an empty place it only counts.
class GemmScratch {
 public:
  explicit GemmScratch(const Place& scratch, std::int64_t alignment = 128)
      : scratch_(scratch), alignment_(std::max<std::int64_t>(alignment, 128)) {}

  [[nodiscard]] Place floats(std::int64_t count) {
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(float));
    const Place piece = part(scratch_, used_, bytes);
    used_ += round_up(bytes, alignment_);
    return piece;
  }
  [[nodiscard]] std::int64_t used() const { return used_; }

 private:
  Place scratch_;
  std::int64_t alignment_;
  std::int64_t used_ = 0;
};

}  // namespace stoker::opencl
