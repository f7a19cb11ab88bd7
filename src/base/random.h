// Counter-based random numbers (Philox4x32-10): the same key and counter give the same numbers on every device and
// thread.
#pragma once

#include <array>
#include <cstdint>

namespace stoker {

struct PhiloxKey {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
};

// Four independent 32-bit words for a 128-bit counter.
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32(PhiloxKey key, std::array<std::uint32_t, 4> counter);

// Uniform in [0, 1) with 24 bits.
[[nodiscard]] constexpr float to_unit(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; }

// A sequential stream for host-side use: initialisation, shuffling, augmentation.
class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0);

  [[nodiscard]] std::uint32_t bits();
  [[nodiscard]] float uniform() { return to_unit(bits()); }
  [[nodiscard]] float uniform(float low, float high) { return low + (high - low) * uniform(); }
  // Uniform in [0, bound), without modulo bias; bound > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound);
  // Standard normal (Box-Muller).
  [[nodiscard]] float normal();

 private:
  PhiloxKey key_;
  std::uint64_t stream_;
  std::uint64_t next_ = 0;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace stoker
