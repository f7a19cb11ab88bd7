// Ceilings: what a device can do at most, as micro-benchmarks find it (`stoker devices --measure`). The roofline, the
// study's words and the prediction of step times stand on them.
#pragma once

namespace stoker {

struct Ceilings {
  double flops = 0;           // a second, fp32 multiply-adds counted as two
  double bandwidth = 0;       // bytes a second, device memory, read + write
  double to_device = 0;       // bytes a second, a large blocking write; 0 where nothing crosses (CPU)
  double to_host = 0;         // bytes a second, a large blocking read
  double map_seconds = 0;     // to map and unmap a small buffer
  double launch_seconds = 0;  // one more small kernel in a queue
  double sync_seconds = 0;    // a small kernel and waiting for it, less the kernel
  double read_seconds = 0;    // a blocking read of a few bytes from an idle queue
  double write_seconds = 0;   // a blocking write of a few bytes to an idle queue
};

}  // namespace stoker
