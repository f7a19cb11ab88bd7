#include "backends/opencl/mnn_shapes.h"

namespace stoker::opencl {

void set_mnn_shapes(const Device& device, Tuning& tuning) {
  const int image = device.image_texels > 0 && !device.quirks.no_images ? 1 : 0;
  tuning.set("gemm", "", {{"TM", 1}, {"TN", 4}, {"IMAGE", image * 3}, {"GX", 16}, {"GY", 4}});
  tuning.set("conv2d", "", {{"TM", 1}, {"TN", 4}, {"TAPS", 1}, {"IMAGE", image}, {"POINTERS", 0}, {"GROUP", 64}});
  tuning.set("conv2d_weight", "",
             {{"TM", 4}, {"TN", 4}, {"PIXELS", 1}, {"IMAGE", image}, {"POINTERS", 0}, {"GROUP", 64}});
  for (const char* family : {"depthwise", "pooling", "winograd"}) tuning.quarantine(family);
}

}  // namespace stoker::opencl
