#include "backends/opencl/replay.h"

#include "base/error.h"

namespace stoker::opencl {
namespace {

class PlainLaunches final : public Recording {
 public:
  PlainLaunches(Api& api, cl_command_queue queue, const Device& device, std::span<const PreparedLaunch> launches)
      : api_(api), queue_(queue), launches_(launches.begin(), launches.end()) {
    // Flushed after each submission, and every so many launches within one.
    const auto most = static_cast<std::size_t>(device.quirks.launches_a_flush);
    flush_after_.resize(launches_.size(), false);
    std::size_t at = 0;
    for (const std::size_t count : cut_submissions(launches_, device.quirks.submission_seconds)) {
      for (std::size_t i = 1; i <= count; ++i) flush_after_[at + i - 1] = i == count || (most > 0 && i % most == 0);
      at += count;
    }
  }

  void enqueue() override {
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      const PreparedLaunch& launch = launches_[i];
      api_.enqueue_kernel(queue_, launch.kernel, launch.global, launch.local, nullptr, launch.number);
      if (flush_after_[i]) api_.flush(queue_);
    }
  }
  [[nodiscard]] const char* kind() const override { return "launches"; }

 private:
  Api& api_;
  cl_command_queue queue_;
  std::vector<PreparedLaunch> launches_;
  std::vector<bool> flush_after_;
};

// Object: cl_command_buffer_khr or cl_recording_qcom. One recording a submission.
template <typename Object>
class Replayed final : public Recording {
 public:
  struct Segment {
    Handle<Object> recording;
    std::int64_t launches;
    Handle<cl_event> last;  // of its last run
  };

  Replayed(Api& api, cl_command_queue queue, std::vector<Segment> segments, bool reentrant, const char* kind)
      : api_(api), queue_(queue), segments_(std::move(segments)), reentrant_(reentrant), kind_(kind) {}

  void enqueue() override {
    for (Segment& segment : segments_) {
      if (!reentrant_ && segment.last && !api_.is_done(segment.last.get()))
        api_.wait(segment.last.get(), Wait::back_pressure);
      api_.enqueue_recording(queue_, segment.recording.get(), segment.launches, segment.last);
      api_.flush(queue_);
    }
  }
  [[nodiscard]] const char* kind() const override { return kind_; }

 private:
  Api& api_;
  cl_command_queue queue_;
  std::vector<Segment> segments_;
  bool reentrant_;  // may be enqueued while it is pending
  const char* kind_;
};

std::unique_ptr<Recording> record_command_buffers(Api& api, cl_command_queue queue, const Device& device,
                                                  std::span<const PreparedLaunch> launches) {
  using Replay = Replayed<cl_command_buffer_khr>;
  std::vector<Replay::Segment> segments;
  for (const std::size_t count : cut_submissions(launches, device.quirks.submission_seconds)) {
    Handle<cl_command_buffer_khr> recording = api.create_command_buffer(queue, device.reentrant_command_buffers);
    for (const PreparedLaunch& launch : launches.first(count))
      api.record_kernel(recording.get(), launch.kernel, launch.global, launch.local);
    api.end_recording(recording.get());
    segments.push_back({std::move(recording), static_cast<std::int64_t>(count), {}});
    launches = launches.subspan(count);
  }
  return std::make_unique<Replay>(api, queue, std::move(segments), device.reentrant_command_buffers, "command buffer");
}

std::unique_ptr<Recording> record_on_queue(Api& api, cl_context context, cl_device_id id, cl_command_queue queue,
                                           const Device& device, std::span<const PreparedLaunch> launches) {
  using Replay = Replayed<cl_recording_qcom>;
  std::vector<Replay::Segment> segments;
  // The recording keeps what it needs of the queue it was recorded on.
  const Handle<cl_command_queue> recordable = api.create_recordable_queue(context, id);
  for (const std::size_t count : cut_submissions(launches, device.quirks.submission_seconds)) {
    Handle<cl_recording_qcom> recording = api.begin_recording(recordable.get());
    for (const PreparedLaunch& launch : launches.first(count))
      api.record_kernel(recordable.get(), launch.kernel, launch.global, launch.local);
    api.end_recording(recording.get());
    segments.push_back({std::move(recording), static_cast<std::int64_t>(count), {}});
    launches = launches.subspan(count);
  }
  return std::make_unique<Replay>(api, queue, std::move(segments), false, "recordable queue");
}

}  // namespace

std::vector<std::size_t> cut_submissions(std::span<const PreparedLaunch> launches, double seconds) {
  std::vector<std::size_t> counts;
  double sum = 0.0;
  for (const PreparedLaunch& launch : launches) {
    sum += launch.seconds;
    if (counts.empty() || (seconds > 0.0 && sum > seconds)) {
      counts.push_back(0);
      sum = launch.seconds;
    }
    ++counts.back();
  }
  return counts;
}

std::unique_ptr<Recording> record(Api& api, cl_context context, cl_device_id id, cl_command_queue queue,
                                  const Device& device, std::span<const PreparedLaunch> launches, bool replay) {
  const Quirks& quirks = device.quirks;
  // A driver that advertises recording and then refuses it is no reason not to train.
  try {
    if (replay && device.command_buffers && !quirks.no_command_buffers && api.has_command_buffers())
      return record_command_buffers(api, queue, device, launches);
  } catch (const Error&) {
  }
  try {
    if (replay && device.recordable_queues && !quirks.no_recordable_queues && api.has_recordable_queues())
      return record_on_queue(api, context, id, queue, device, launches);
  } catch (const Error&) {
  }
  return std::make_unique<PlainLaunches>(api, queue, device, launches);
}

}  // namespace stoker::opencl
