#include "backends/cpu/ceilings.h"

#include "backends/cpu/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/ceilings.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h first.
#include <hwy/highway.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backends/host_memory.h"
#include "base/fastest.h"

HWY_BEFORE_NAMESPACE();
namespace stoker::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Runs `rounds` times twelve multiply-adds that do not wait for each other; returns the flops done.
double multiply_add(std::int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  const auto x = hn::Set(d, 0.999F);
  const auto y = hn::Set(d, 0.001F);
  // Twelve different values: of equal ones the compiler would compute but one.
  const auto start = [&](int i) HWY_ATTR { return hn::Set(d, 0.001F * static_cast<float>(i + 1)); };
  auto a0 = start(0), a1 = start(1), a2 = start(2), a3 = start(3), a4 = start(4), a5 = start(5);
  auto a6 = start(6), a7 = start(7), a8 = start(8), a9 = start(9), a10 = start(10), a11 = start(11);
  for (std::int64_t i = 0; i < rounds; ++i) {
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

// to = a + 3 b; `count` is a multiple of any vector's length.
void triad(const float* a, const float* b, float* to, std::int64_t count) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 3.0F);
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d)))
    hn::Store(hn::MulAdd(hn::Load(d, b + i), factor, hn::Load(d, a + i)), d, to + i);
}

void copy(const float* from, float* to, std::int64_t count) {
  const hn::ScalableTag<float> d;
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d)))
    hn::Store(hn::Load(d, from + i), d, to + i);
}

}  // namespace stoker::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::cpu {
namespace {

HWY_EXPORT(multiply_add);
HWY_EXPORT(triad);
HWY_EXPORT(copy);

// Tasks a thread, taken as threads come to them: fast and slow cores finish together.
constexpr std::int64_t kTasks = 16;
// Short runs, many times: one of them meets no other program's work.
constexpr std::int64_t kRounds = 20'000;
constexpr Repeats kFmaRepeats{.least = 5, .seconds = 0.4};
constexpr Repeats kStreamRepeats{.least = 4, .seconds = 0.6};
constexpr std::int64_t kChunk = 1 << 16;  // floats of a stream's task

// Three arrays of so many bytes are larger than any cache of a phone, and no burden on its memory.
std::int64_t stream_bytes() {
  const std::int64_t memory = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return std::clamp<std::int64_t>(memory / 128, 16 << 20, 128 << 20) / (kChunk * 4) * (kChunk * 4);
}

// Bytes a second, read and written.
double stream_bandwidth(ThreadPool& pool) {
  const std::int64_t bytes = stream_bytes();
  const std::int64_t tasks = bytes / (kChunk * static_cast<std::int64_t>(sizeof(float)));
  HostMemory a(bytes);
  HostMemory b(bytes);
  HostMemory to(bytes);
  const auto floats = [](HostMemory& memory, std::int64_t task) {
    return reinterpret_cast<float*>(memory.data()) + task * kChunk;
  };
  // Memory that was never written is one page of zeros to the system.
  for (HostMemory* memory : {&a, &b, &to})
    pool.run(tasks, [&](std::int64_t task, int) { std::fill_n(floats(*memory, task), kChunk, 1.0F); });
  const double triad_seconds = fastest_seconds(kStreamRepeats, [&] {
    pool.run(tasks, [&](std::int64_t task, int) {
      HWY_DYNAMIC_DISPATCH(triad)(floats(a, task), floats(b, task), floats(to, task), kChunk);
    });
  });
  const double copy_seconds = fastest_seconds(kStreamRepeats, [&] {
    pool.run(tasks, [&](std::int64_t task, int) {
      HWY_DYNAMIC_DISPATCH(copy)(floats(a, task), floats(to, task), kChunk);
    });
  });
  const auto amount = static_cast<double>(bytes);
  return std::max(per_second(3 * amount, triad_seconds), per_second(2 * amount, copy_seconds));
}

// To give all threads something to do and to know that they have done it.
double dispatch_seconds(ThreadPool& pool) {
  constexpr int kJobs = 10;
  const double seconds = fastest_seconds({.least = 5, .seconds = 0.1}, [&] {
    for (int i = 0; i < kJobs; ++i) pool.run(pool.threads(), [](std::int64_t, int) {});
  });
  return seconds / kJobs;
}

}  // namespace

double fma_peak(ThreadPool& pool) {
  std::vector<double> flops(static_cast<std::size_t>(pool.threads()) * kTasks);
  const double seconds = fastest_seconds(kFmaRepeats, [&] {
    pool.run(static_cast<std::int64_t>(flops.size()), [&](std::int64_t task, int) {
      float sink = 0;
      const double done = HWY_DYNAMIC_DISPATCH(multiply_add)(kRounds, &sink);
      flops[static_cast<std::size_t>(task)] = sink < 0 ? 0 : done;  // keeps the work
    });
  });
  double total = 0;
  for (const double done : flops) total += done;
  return per_second(total, seconds);
}

Ceilings measure_ceilings(ThreadPool& pool) {
  return {.flops = fma_peak(pool), .bandwidth = stream_bandwidth(pool), .launch_seconds = dispatch_seconds(pool)};
}

}  // namespace stoker::cpu
#endif
