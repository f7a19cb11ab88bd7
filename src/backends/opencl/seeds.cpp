// Seeds: the parameters that each kernel family starts with on a kind of device, each with its source, and what the
// tuner tries besides.
#include <algorithm>

#include "backends/opencl/tuning.h"

namespace stoker::opencl {
namespace {

constexpr const char* kClblast = "CLBlast's tuned database, fp32 GEMM";

const std::vector<Seed>& seeds() {
  static const std::vector<Seed> rows = {
      {"gemm", Family::adreno, {{"TM", 4}, {"TN", 8}, {"UNROLL", 4}, {"IMAGE", 1}, {"GROUP", 128}}, kClblast},
      {"gemm", Family::mali, {{"TM", 4}, {"TN", 4}, {"UNROLL", 4}, {"IMAGE", 0}, {"GROUP", 64}}, kClblast},
      {"gemm", Family::powervr, {{"TM", 8}, {"TN", 8}, {"UNROLL", 4}, {"IMAGE", 0}, {"GROUP", 64}}, kClblast},
      {"gemm", Family::other, {{"TM", 4}, {"TN", 4}, {"UNROLL", 4}, {"IMAGE", 0}, {"GROUP", 64}}, "the smallest tile"},
  };
  return rows;
}

}  // namespace

std::span<const Seed> all_seeds() { return seeds(); }

std::vector<Params> candidates(std::string_view kernel, const Device& device) {
  std::vector<Params> list;
  if (const Seed* seed = find_seed(kernel, device)) list.push_back(seed->params);
  return list;
}

}  // namespace stoker::opencl
