// The arena: offsets for blocks of memory from their lifetimes, so that no two that are alive at once overlap.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker {

inline constexpr std::int64_t kAlignment = 64;  // bytes; a cache line, and the widest vector

struct Block {
  std::int64_t bytes = 0;
  int first = 0;  // steps, both included
  int last = 0;
  std::int64_t offset = 0;  // the result
};

// Assigns offsets, and returns the bytes that the arena needs.
std::int64_t assign_offsets(std::span<Block> blocks);

// The least that any assignment needs: the largest sum of blocks alive at one step.
[[nodiscard]] std::int64_t lower_bound_bytes(std::span<const Block> blocks);

}  // namespace stoker
