// Measures the FMA peak: independent fused multiply-adds in registers, on the given number of threads. Prints GFLOP/s
// and the instruction set. It is the floor's denominator in the tables of bench/.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fma_peak.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h first.
#include <hwy/highway.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

HWY_BEFORE_NAMESPACE();
namespace stoker::HWY_NAMESPACE {

// Runs `rounds` times twelve multiply-adds that do not wait for each other; returns the flops done.
double multiply_add(long rounds, float* sink) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const auto x = hn::Set(d, 0.999F);
  const auto y = hn::Set(d, 0.001F);
  // Twelve different values: of equal ones the compiler would compute but one.
  const auto start = [&](int i) HWY_ATTR { return hn::Set(d, 0.001F * static_cast<float>(i + 1)); };
  auto a0 = start(0), a1 = start(1), a2 = start(2), a3 = start(3), a4 = start(4), a5 = start(5);
  auto a6 = start(6), a7 = start(7), a8 = start(8), a9 = start(9), a10 = start(10), a11 = start(11);
  for (long i = 0; i < rounds; ++i) {
    a0 = hn::MulAdd(a0, x, y);
    a1 = hn::MulAdd(a1, x, y);
    a2 = hn::MulAdd(a2, x, y);
    a3 = hn::MulAdd(a3, x, y);
    a4 = hn::MulAdd(a4, x, y);
    a5 = hn::MulAdd(a5, x, y);
    a6 = hn::MulAdd(a6, x, y);
    a7 = hn::MulAdd(a7, x, y);
    a8 = hn::MulAdd(a8, x, y);
    a9 = hn::MulAdd(a9, x, y);
    a10 = hn::MulAdd(a10, x, y);
    a11 = hn::MulAdd(a11, x, y);
  }
  const auto sum =
      hn::Add(hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)),
              hn::Add(hn::Add(hn::Add(a4, a5), hn::Add(a6, a7)), hn::Add(hn::Add(a8, a9), hn::Add(a10, a11))));
  *sink = hn::GetLane(sum);
  return 2.0 * 12.0 * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace stoker::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {
HWY_EXPORT(multiply_add);
HWY_EXPORT(target_name);
}  // namespace stoker

int main(int argc, char** argv) {
  using namespace stoker;
  const int threads =
      std::max(1, argc > 1 ? std::atoi(argv[1]) : static_cast<int>(std::thread::hardware_concurrency()));
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::vector<double> flops(static_cast<std::size_t>(threads));
    std::vector<std::thread> workers;
    const auto start = std::chrono::steady_clock::now();
    for (double& done : flops) {
      workers.emplace_back([&done] {
        float sink = 0;
        done = HWY_DYNAMIC_DISPATCH(multiply_add)(8'000'000, &sink);
        if (sink < 0) done = 0;  // keeps the work
      });
    }
    for (std::thread& worker : workers) worker.join();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    double total = 0;
    for (const double done : flops) total += done;
    best = std::max(best, total / seconds / 1e9);
  }
  std::printf("%.1f GFLOP/s, %d threads, %s\n", best, threads, HWY_DYNAMIC_DISPATCH(target_name)());
}
#endif
