// The SIMD part of reductions: one block of out[o, i] = reduce over r of in[o, r, i].
#pragma once

#include <cstdint>

namespace stoker::cpu {

enum class ReduceKind : std::uint8_t { sum, max };

// Sums of at most this many contiguous floats are taken in fp32, longer ones in double from such blocks.
inline constexpr std::int64_t kReductionBlock = 1024;

struct ReduceBlock {
  const float* data = nullptr;
  std::int64_t outer = 0;
  std::int64_t outer_stride = 0;  // floats
  std::int64_t reduced = 0;
  std::int64_t inner = 0;
};

// out is [outer][inner].
void reduce_block(ReduceKind kind, const ReduceBlock& block, float* out);

// Joins `count` arrays of n floats pairwise into the first.
void combine_partials(ReduceKind kind, float* partial, std::int64_t count, std::int64_t n);

}  // namespace stoker::cpu
