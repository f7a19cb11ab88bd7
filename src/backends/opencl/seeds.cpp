// Seeds: the parameters that each kernel family starts with on a kind of device, each with its source, and what the
// tuner tries besides.
#include <algorithm>

#include "backends/opencl/tuning.h"

namespace stoker::opencl {
namespace {

constexpr const char* kClblast = "CLBlast's tuned database, fp32 GEMM";
constexpr const char* kPocl = "measured on PoCL 3.1, AVX-512";
constexpr const char* kNoSpills = "no spills with Mesa's compiler";

const std::vector<Seed>& seeds() {
  static const std::vector<Seed> rows = {
      {"depthwise", Family::cpu, {{"VEC", 16}, {"ROWS", 4}, {"GROUP", 1}}, kPocl, 16},
      {"depthwise", Family::cpu, {{"VEC", 8}, {"ROWS", 2}, {"GROUP", 1}}, "fits 16 registers", 8},
      {"depthwise", Family::cpu, {{"VEC", 4}, {"ROWS", 2}, {"GROUP", 1}}, "fits 32 short registers"},
      {"depthwise", Family::adreno, {{"VEC", 4}, {"ROWS", 2}, {"GROUP", 64}}, kNoSpills},
      {"depthwise", Family::mali, {{"VEC", 2}, {"ROWS", 2}, {"GROUP", 64}}, kNoSpills},
      {"depthwise", Family::other, {{"VEC", 4}, {"ROWS", 1}, {"GROUP", 64}}, "the smallest tile"},
      {"pooling", Family::cpu, {{"VEC", 16}, {"OVERLAP", 1}, {"GROUP", 1}}, kPocl, 16},
      {"pooling", Family::cpu, {{"VEC", 8}, {"OVERLAP", 1}, {"GROUP", 1}}, "a native register", 8},
      {"pooling", Family::cpu, {{"VEC", 4}, {"OVERLAP", 1}, {"GROUP", 1}}, "a native register"},
      {"pooling", Family::other, {{"VEC", 4}, {"OVERLAP", 0}, {"GROUP", 64}}, kNoSpills},
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
