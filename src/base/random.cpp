#include "base/random.h"

#include <cmath>
#include <numbers>

namespace stoker {

std::array<std::uint32_t, 4> philox4x32(PhiloxKey key, std::array<std::uint32_t, 4> c) {
  constexpr std::uint64_t kMul0 = 0xD2511F53U;
  constexpr std::uint64_t kMul1 = 0xCD9E8D57U;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = kMul0 * c[0];
    const std::uint64_t p1 = kMul1 * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ key.a, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ key.b, static_cast<std::uint32_t>(p0)};
    key.a += 0x9E3779B9U;
    key.b += 0xBB67AE85U;
  }
  return c;
}

Random::Random(std::uint64_t seed, std::uint64_t stream)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}, stream_(stream) {}

std::uint32_t Random::bits() {
  if (used_ == 4) {
    block_ = philox4x32(key_, {static_cast<std::uint32_t>(next_), static_cast<std::uint32_t>(next_ >> 32),
                               static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)});
    ++next_;
    used_ = 0;
  }
  return block_[static_cast<std::size_t>(used_++)];
}

std::uint64_t Random::below(std::uint64_t bound) {
  const std::uint64_t reject_below = (0 - bound) % bound;
  for (;;) {
    const std::uint64_t high = bits();
    const std::uint64_t word = (high << 32) | bits();
    if (word >= reject_below) return word % bound;
  }
}

float Random::normal() {
  const float u = 1.0F - uniform();
  const float v = uniform();
  return std::sqrt(-2.0F * std::log(u)) * std::cos(2.0F * std::numbers::pi_v<float> * v);
}

}  // namespace stoker
