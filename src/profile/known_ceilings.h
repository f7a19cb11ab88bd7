// A device's ceilings, measured once: kept in the cache folder by device and driver, so that a profile or a study need
// not measure again.
#pragma once

#include "backends/backend.h"

namespace stoker {

enum class Measure : std::uint8_t {
  if_unknown,
  again,  // the best of what was known and of what is measured now is stored and given
};

// What cannot be stored is measured again next time; nothing that a device did not do (zero flops) is stored.
[[nodiscard]] Ceilings known_or_measured(Backend& backend, Measure measure = Measure::if_unknown);

}  // namespace stoker
