// Runs a graph once on a backend, from and to plain bytes: for self-tests and the tuner, which need no State.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "backends/backend.h"
#include "plan/plan.h"

namespace stoker {

using Bytes = std::vector<std::byte>;

// A plan with memory of its own, ready to run.
class GraphRun {
 public:
  // `inputs` stand in the order of the graph's. The graph has no states.
  GraphRun(Backend& backend, Plan plan, std::span<const Bytes> inputs);

  void run() { executable_->run(); }
  void wait();  // for the runs so far
  [[nodiscard]] Executable& executable() { return *executable_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  // Output `i` of the graph, which is in the arena; integers and bools as floats.
  [[nodiscard]] std::vector<float> output(std::size_t i) const;

 private:
  Backend& backend_;
  Plan plan_;
  std::vector<std::unique_ptr<Memory>> memories_;
  Memory* arena_ = nullptr;
  std::unique_ptr<Executable> executable_;
};

}  // namespace stoker
