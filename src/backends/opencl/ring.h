// Ring: the results of steps (loss, metrics), written on the device by the step itself, and read back some at a time
// without holding up the queue.
#pragma once

#include <chrono>
#include <span>
#include <vector>

#include "backends/backend.h"
#include "backends/opencl/api.h"
#include "backends/opencl/kernel.h"
#include "backends/opencl/memory.h"

namespace stoker::opencl {

class Ring {
 public:
  // `outputs`: the places of the step's scalar results; none for a plan without any.
  Ring(Api& api, cl_command_queue queue, std::vector<Place> outputs);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  [[nodiscard]] std::int64_t bytes() const;
  // The stage that ends a step: appends its results at the place `ring`.
  [[nodiscard]] Stage append_stage(const Place& ring) const { return append_stage(ring, outputs_); }
  [[nodiscard]] static Stage append_stage(const Place& ring, std::span<const Place> outputs);
  void bind(Where ring) { ring_ = ring; }

  // A step was submitted. Now and then this asks for what has gathered, behind that step in the queue.
  void submitted();
  bool collect(std::span<float> outputs, bool wait);

 private:
  using Clock = std::chrono::steady_clock;

  void request();
  void finish_request(bool wait);
  [[nodiscard]] std::size_t words() const { return outputs_.size(); }

  Api& api_;
  cl_command_queue queue_;
  std::vector<Place> outputs_;
  Where ring_;
  std::vector<float> host_;
  // Steps are counted from 0: collected_ <= ready_ <= requested_ <= submitted_.
  std::int64_t submitted_ = 0;
  std::int64_t requested_ = 0;
  std::int64_t ready_ = 0;
  std::int64_t collected_ = 0;
  Handle<cl_event> request_;  // done when steps up to requested_ are in host_
  Clock::time_point last_request_ = Clock::now();
};

}  // namespace stoker::opencl
