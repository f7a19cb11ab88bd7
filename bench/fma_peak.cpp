// Prints the FMA peak: independent fused multiply-adds in registers, on the given number of threads. It is the floor's
// denominator in the tables of bench/, and what `stoker devices --measure` gives for the CPU.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "backends/backend.h"
#include "backends/cpu/ceilings.h"

int main(int argc, char** argv) {
  stoker::ThreadPool pool(argc > 1 ? std::max(1, std::atoi(argv[1])) : 0);
  std::printf("%.1f GFLOP/s, %d threads, %s\n", stoker::cpu::fma_peak(pool) / 1e9, pool.threads(),
              stoker::make_backend("cpu")->numerics_key().c_str());
}
