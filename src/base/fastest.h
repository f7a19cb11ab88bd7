// The fastest of repeated runs: what micro-benchmarks report, a ceiling being a maximum. Assumes nothing of the clock
// but that it does not go back: a run may seem to take no time at all.
#pragma once

#include <algorithm>
#include <chrono>

namespace stoker {

struct Repeats {
  int least = 3;          // runs
  int most = 1000;        // runs
  double seconds = 0.05;  // begin no further run after so long
};

[[nodiscard]] inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Seconds of the fastest run.
template <typename Run>
[[nodiscard]] double fastest_seconds(const Repeats& repeats, const Run& run) {
  const auto start = std::chrono::steady_clock::now();
  double best = 0;
  for (int i = 0; i < repeats.least || (i < repeats.most && seconds_since(start) < repeats.seconds); ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    const double seconds = seconds_since(begin);
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

// `amount` a second; of a run too short for the clock, as if it had taken a nanosecond.
[[nodiscard]] inline double per_second(double amount, double seconds) { return amount / std::max(seconds, 1e-9); }

}  // namespace stoker
