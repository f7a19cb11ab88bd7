// The instruction sets that our kernels are compiled for. Include it before any Highway header, in every file that uses
// HWY_DYNAMIC_DISPATCH. What is left out would cost compile time and code size, and no machine of interest would gain.
#pragma once

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE_256 | HWY_SVE2 | HWY_SVE2_128)
#endif
