#include "backends/opencl/replay.h"

namespace stoker::opencl {
namespace {

// One call a launch. Flushes after so many launches, or so much estimated work, as the device's quirks say.
class PlainRecording : public Recording {
 public:
  PlainRecording(Api& api, cl_command_queue queue, const Device& device, std::span<const PreparedLaunch> launches)
      : api_(api), queue_(queue), device_(device), launches_(launches.begin(), launches.end()) {}

  void enqueue() override {
    int count = 0;
    double seconds = 0;
    for (const PreparedLaunch& launch : launches_) {
      api_.enqueue_kernel(queue_, launch.kernel, launch.global, launch.local);
      ++count;
      seconds += launch.seconds;
      const bool many = device_.quirks.launches_a_flush > 0 && count >= device_.quirks.launches_a_flush;
      const bool much = device_.quirks.submission_seconds > 0 && seconds >= device_.quirks.submission_seconds;
      if (!many && !much) continue;
      api_.flush(queue_);
      count = 0;
      seconds = 0;
    }
    if (count > 0) api_.flush(queue_);
  }
  [[nodiscard]] const char* name() const override { return "plain"; }

 private:
  Api& api_;
  cl_command_queue queue_;
  const Device& device_;
  std::vector<PreparedLaunch> launches_;
};

}  // namespace

std::unique_ptr<Recording> record(Api& api, cl_context, cl_device_id, cl_command_queue queue, const Device& device,
                                  std::span<const PreparedLaunch> launches, bool) {
  return std::make_unique<PlainRecording>(api, queue, device, launches);
}

}  // namespace stoker::opencl
