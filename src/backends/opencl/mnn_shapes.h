// The kernels of MNN 1.1 in shape, for the study: what a framework's users had on phones before anybody tuned.
#pragma once

#include "backends/opencl/device.h"
#include "backends/opencl/tuning.h"

namespace stoker::opencl {

// Matrix products and convolutions by work-items of 1 x 4 results in a fixed work-group, through images where the
// device has them; everything else by the plain kernels. (Where A is transposed, 4 x 4: the kernel's least.)
void set_mnn_shapes(const Device& device, Tuning& tuning);

}  // namespace stoker::opencl
