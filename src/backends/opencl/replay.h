// Replay: a step's launches, recorded once and enqueued as a whole: by cl_khr_command_buffer or
// cl_qcom_recordable_queues where the device has one of them, launch by launch otherwise. All give the same bits.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "backends/opencl/api.h"
#include "backends/opencl/device.h"

namespace stoker::opencl {

// A kernel with all its arguments set. They may not be set again while a recording of it lives.
struct PreparedLaunch {
  cl_kernel kernel = nullptr;
  std::array<std::size_t, 3> global{1, 1, 1};
  std::array<std::size_t, 3> local{1, 1, 1};
  double seconds = 0.0;  // estimated, on a slow device
  LaunchNumber number;   // for a recorder
};

class Recording {
 public:
  virtual ~Recording() = default;
  // Enqueues all launches, in order, and flushes. A recording that the device is still at is waited for first (counted
  // as back-pressure) where the device cannot have it twice: callers that take turns between recordings never wait.
  virtual void enqueue() = 0;
  [[nodiscard]] virtual const char* kind() const = 0;  // "command buffer", "recordable queue", "launches"
};

// `launches`' kernels must outlive the recording. `replay` false: launch by launch. A device that refuses to record
// gets its launches one by one too.
[[nodiscard]] std::unique_ptr<Recording> record(Api& api, cl_context context, cl_device_id id, cl_command_queue queue,
                                                const Device& device, std::span<const PreparedLaunch> launches,
                                                bool replay);

// Cuts launches into submissions of at most `seconds` each (0: one submission), at least a launch in each, because
// drivers' watchdogs kill long ones. Gives the number of launches in each.
[[nodiscard]] std::vector<std::size_t> cut_submissions(std::span<const PreparedLaunch> launches, double seconds);

}  // namespace stoker::opencl
