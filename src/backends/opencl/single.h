// A stage as a launch of its own: the same code with its arguments as parameters. Small work stays a stage, which
// neighbours may join; large work gains nothing from that.
#pragma once

#include "backends/opencl/kernel.h"

namespace stoker::opencl {

// Up to so many elements are small.
inline constexpr std::int64_t kSmallElements = 16384;

// The stage, or the launch if it works on more than kSmallElements `elements`.
[[nodiscard]] Work stage_or_launch(Stage stage, std::int64_t elements, const Device& device);
[[nodiscard]] Launch single_launch(const Stage& stage, const Device& device);

}  // namespace stoker::opencl
