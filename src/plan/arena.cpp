#include "plan/arena.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace stoker {
namespace {

std::int64_t aligned(std::int64_t bytes, const ArenaRules& rules) {
  return (bytes + rules.alignment - 1) / rules.alignment * rules.alignment;
}

// The first place from `offset` on where `size` bytes do not lie across a cut between buffers.
std::int64_t past_cut(std::int64_t offset, std::int64_t size, const ArenaRules& rules) {
  const std::int64_t left = rules.largest_buffer - offset % rules.largest_buffer;
  return size <= left ? offset : offset + left;
}

bool alive_together(const Block& a, const Block& b) { return a.first <= b.last && b.first <= a.last; }

// Places the blocks one by one, each in the lowest gap among those it meets in time.
std::int64_t place(std::span<Block> blocks, std::span<const std::size_t> order, const ArenaRules& rules) {
  std::int64_t peak = 0;
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t current : order) {
    Block& block = blocks[current];
    const std::int64_t size = aligned(block.bytes, rules);
    std::int64_t offset = 0;
    for (const std::size_t other : placed) {
      if (!alive_together(block, blocks[other])) continue;
      if (blocks[other].offset >= offset + size) break;
      offset = past_cut(std::max(offset, blocks[other].offset + aligned(blocks[other].bytes, rules)), size, rules);
    }
    block.offset = offset;
    peak = std::max(peak, offset + size);
    const auto at = std::ranges::lower_bound(placed, offset, {}, [&](std::size_t i) { return blocks[i].offset; });
    placed.insert(at, current);
  }
  return peak;
}

}  // namespace

std::int64_t assign_offsets(std::span<Block> blocks, const ArenaRules& rules) {
  for (const Block& block : blocks) {
    require(aligned(block.bytes, rules) <= rules.largest_buffer, Code::no_memory, "a tensor of ", block.bytes,
            " bytes is larger than the device's largest buffer, ", rules.largest_buffer,
            " bytes; a smaller batch makes it smaller");
  }
  std::vector<std::size_t> by_size(blocks.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::vector<std::size_t> by_time = by_size;
  std::ranges::stable_sort(by_size, std::ranges::greater{}, [&](std::size_t i) { return blocks[i].bytes; });
  std::ranges::stable_sort(by_time, {}, [&](std::size_t i) { return blocks[i].first; });
  std::vector<std::size_t> by_area = by_size;
  std::ranges::stable_sort(by_area, std::ranges::greater{},
                           [&](std::size_t i) { return blocks[i].bytes * (blocks[i].last - blocks[i].first + 1); });

  // None of the three orders is best for every net; all are cheap.
  std::vector<Block> best;
  std::int64_t best_peak = 0;
  for (const auto& order : {by_size, by_time, by_area}) {
    std::vector<Block> attempt(blocks.begin(), blocks.end());
    const std::int64_t peak = place(attempt, order, rules);
    if (best.empty() || peak < best_peak) {
      best = std::move(attempt);
      best_peak = peak;
    }
  }
  std::ranges::copy(best, blocks.begin());
  return best_peak;
}

std::int64_t lower_bound_bytes(std::span<const Block> blocks, const ArenaRules& rules) {
  int steps = 0;
  for (const Block& block : blocks) steps = std::max(steps, block.last + 1);
  std::vector<std::int64_t> change(static_cast<std::size_t>(steps) + 1, 0);
  for (const Block& block : blocks) {
    change[static_cast<std::size_t>(block.first)] += aligned(block.bytes, rules);
    change[static_cast<std::size_t>(block.last) + 1] -= aligned(block.bytes, rules);
  }
  std::int64_t alive = 0;
  std::int64_t most = 0;
  for (const std::int64_t delta : change) {
    alive += delta;
    most = std::max(most, alive);
  }
  return most;
}

}  // namespace stoker
