// The tuner: finds, for the problems of a plan, the parameters with which each kernel family is fastest on a device,
// and keeps them by device and driver. A candidate that differs from the plain kernel cannot win.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/opencl/opencl_backend.h"
#include "graph/graph.h"

namespace stoker::opencl {

struct TuneResult {
  std::string kernel;  // family
  std::string problem;
  Params before;
  Params after;
  double seconds_before = 0.0;  // of the whole node
  double seconds_after = 0.0;
  int tried = 0;
  int wrong = 0;   // differed from the plain kernel
  int failed = 0;  // did not build or run
};

struct TuneOptions {
  double seconds = 60.0;                                                     // no problem is begun after that
  std::function<std::vector<Params>(const std::string& kernel)> candidates;  // empty: candidates() of tuning.h
  // Before each problem: its number, how many there are; false: stop.
  std::function<bool(int done, int total)> on_progress;
  std::function<void(const TuneResult&)> on_result;
};

// Tunes every problem of `graph` (after the passes) once. Winners are set in the backend's tuning.
[[nodiscard]] std::vector<TuneResult> tune(ClBackend& backend, const Graph& graph, const TuneOptions& options = {});

// What has been stored for this device and driver, if anything, is added to `tuning`.
void load_tuning(const Device& device, Tuning& tuning);
// Stores all that is set in `tuning`. Empty, or why it could not be stored.
[[nodiscard]] std::string store_tuning(const Device& device, const Tuning& tuning);

}  // namespace stoker::opencl
