// Recording: a step's launches, ready to be enqueued as one. Replayed by the driver where it can, enqueued one by one
// otherwise.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "backends/opencl/api.h"
#include "backends/opencl/device.h"

namespace stoker::opencl {

// A launch whose arguments are set. The kernel belongs to the caller and outlives the recording.
struct PreparedLaunch {
  cl_kernel kernel = nullptr;
  std::array<std::size_t, 3> global{1, 1, 1};
  std::array<std::size_t, 3> local{1, 1, 1};
  double seconds = 0;  // a cautious estimate, for cutting submissions
};

class Recording {
 public:
  virtual ~Recording() = default;
  // Submits all launches in order, flushing at the end and where a submission gets too long. Waits (back-pressure) for
  // the run before of this same recording if it is not done: a pending recording is never enqueued again.
  virtual void enqueue() = 0;
  [[nodiscard]] virtual const char* name() const = 0;  // "command buffer", "recordable queue", "plain"
};

[[nodiscard]] std::unique_ptr<Recording> record(Api& api, cl_context context, cl_device_id id, cl_command_queue queue,
                                                const Device& device, std::span<const PreparedLaunch> launches,
                                                bool replay);

}  // namespace stoker::opencl
