// The arena: offsets for blocks of memory from their lifetimes, so that no two that are alive at once overlap.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker {

// What the device asks of places in the arena; see Target.
struct ArenaRules {
  std::int64_t alignment = 64;                          // bytes; a cache line, and the widest vector
  std::int64_t largest_buffer = std::int64_t{1} << 62;  // no block lies across a multiple of it
};

struct Block {
  std::int64_t bytes = 0;
  int first = 0;  // steps, both included
  int last = 0;
  std::int64_t offset = 0;  // the result
};

// Assigns offsets, and returns the bytes that the arena needs. An Error (Code::no_memory) if a block is larger than the
// largest buffer.
std::int64_t assign_offsets(std::span<Block> blocks, const ArenaRules& rules = {});

// The least that any assignment needs: the largest sum of blocks alive at one step.
[[nodiscard]] std::int64_t lower_bound_bytes(std::span<const Block> blocks, const ArenaRules& rules = {});

}  // namespace stoker
