// Random streams keyed by purpose and place (epoch, item): the same whatever was drawn before, on any thread.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace stoker {

// Values are part of what a seed means: never renumber.
enum class Purpose : std::uint32_t { shuffle = 1, augment = 2, digit_item = 3, digit_labels = 4, random_items = 5 };

[[nodiscard]] inline Random keyed_random(std::uint64_t seed, Purpose purpose, std::uint64_t a, std::uint64_t b) {
  // Two rounds mix all four keys into the 128 bits of a stream.
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const auto first = philox4x32({low(seed), high(seed)}, {static_cast<std::uint32_t>(purpose), low(a), high(a), 0});
  const auto words = philox4x32({first[0] ^ low(b), first[1] ^ high(b)}, {first[2], first[3], low(b), high(b)});
  return Random((std::uint64_t{words[0]} << 32) | words[1], (std::uint64_t{words[2]} << 32) | words[3]);
}

}  // namespace stoker
