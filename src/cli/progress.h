// Progress of a training on the screen: a bar on a terminal, a line an epoch elsewhere.
#pragma once

#include <chrono>

#include "stoker/stoker.hpp"

namespace stoker::cli {

class ProgressPrinter {
 public:
  ProgressPrinter();
  void step(const Progress& progress);
  void epoch(const EpochReport& report, std::int64_t epochs);
  // Removes a bar that is on the screen, so that other lines can be printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  bool terminal_;
  bool drawn_ = false;
  Clock::time_point last_drawn_{};
};

}  // namespace stoker::cli
