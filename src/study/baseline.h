// The baseline: a training step that moves data as MNN 1.1's does, as far as its source tells. Gradients are read back
// one by one with blocking calls, the optimizer runs on the host, the parameters are uploaded again, each tensor
// changes its layout on the way, through buffers made for the step. The kernels and the arithmetic are our own, so that
// against the resident step the difference is the movement alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "run/session.h"

namespace stoker {

// Each behaviour of the baseline can be switched off by itself.
struct BaselineSwitches {
  bool one_by_one = true;   // each gradient and each parameter crosses by a blocking call of its own; else all of them
                            // in one transfer, which does not block on the way up
  bool convert = true;      // a kernel changes each tensor's layout, on the way out and on the way in
  bool new_buffers = true;  // through buffers made for this step; only where tensors cross one by one
};

// The passes that join kernels: MNN has none of them in training.
[[nodiscard]] std::vector<std::string> fusion_passes();

class BaselineSession {
 public:
  // Of the options, optimizer, schedule, seed, device, threads and what concerns the backend count. Replay is off.
  BaselineSession(nn::Model model, const SessionOptions& options, const BaselineSwitches& switches, std::int64_t batch);
  ~BaselineSession();
  BaselineSession(const BaselineSession&) = delete;
  BaselineSession& operator=(const BaselineSession&) = delete;

  // One step, from the batch to the parameters on the device. A loss that is not finite throws Code::not_finite.
  StepResult train(const BatchView& batch);
  // Its first half: up to the gradients on the host.
  StepResult compute_gradients(const BatchView& batch);

  [[nodiscard]] Counters counters() const;  // of the device, since it was opened
  [[nodiscard]] const Plan& plan() const;   // of forward and backward
  [[nodiscard]] int parameters() const;     // tensors
  [[nodiscard]] std::int64_t parameter_bytes() const;
  [[nodiscard]] std::int64_t launches() const;  // a step
  [[nodiscard]] DeviceInfo device() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
