// Roofline: each op under the device's ceilings, and in words which of them holds it and how far below it is.
#pragma once

#include <string>
#include <vector>

#include "backends/ceilings.h"
#include "profile/profile.h"

namespace stoker {

enum class Ceiling : std::uint8_t { compute, memory, launch };

struct RooflinePoint {
  Ceiling held_by = Ceiling::compute;  // which one asks for most time
  double floor_seconds = 0;            // that time, a step
  double seconds = 0;                  // the time it takes, a step
  std::string words;

  [[nodiscard]] double share() const { return seconds > 0 ? floor_seconds / seconds : 0; }  // of the ceiling
};

[[nodiscard]] RooflinePoint under_roofline(const WorkProfile& work, const Ceilings& ceilings);

// The most that a device does at this intensity (flops a byte), flops a second.
[[nodiscard]] double attainable(const Ceilings& ceilings, double intensity);

// The step in words: what holds most of its time, and which op has most to gain.
[[nodiscard]] std::vector<std::string> roofline_words(const std::vector<WorkProfile>& ops, const Ceilings& ceilings);

}  // namespace stoker
