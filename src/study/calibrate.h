// The Machine that a device at hand is: its ceilings, and how near to them our kernels of each kind come, measured on a
// few single ops of sizes of their own. No training step is measured for it.
#pragma once

#include "backends/backend.h"
#include "study/predict.h"

namespace stoker {

[[nodiscard]] Machine calibrated(Backend& backend, const Ceilings& ceilings);

}  // namespace stoker
