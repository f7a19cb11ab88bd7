// Api: the one place through which all OpenCL calls go. Each call is checked (an Error names the call, the OpenCL error
// and what it was for) and counted. It knows nothing of plans or kernels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/opencl/library.h"
#include "base/counters.h"
#include "base/recorder.h"

namespace stoker::opencl {

class Api;

// Owns an OpenCL object of type T; released through the Api, which must outlive it.
template <typename T>
class Handle {
 public:
  Handle() = default;
  Handle(Api& api, T object) : api_(&api), object_(object) {}
  Handle(Handle&& other) noexcept : api_(other.api_), object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(object_, other.object_);
    return *this;
  }
  ~Handle();

  [[nodiscard]] T get() const { return object_; }
  [[nodiscard]] explicit operator bool() const { return object_ != nullptr; }

 private:
  Api* api_ = nullptr;
  T object_ = nullptr;
};

enum class Wait : std::uint8_t {
  blocking,       // counted as a blocking call
  back_pressure,  // for the batch buffer of two steps ago
  finished,       // known to be done: counted as nothing
};

// What a launch is to a recorder (Interval).
struct LaunchNumber {
  int executable = -1;
  int launch = -1;
};

class Timeline;

class Api {
 public:
  explicit Api(std::shared_ptr<const Library> library);
  ~Api();
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  // Every call from now on is told to the recorder, which must outlive the Api, as are the commands of queues that were
  // made with profiling.
  void record_to(Recorder& recorder);

  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] const Library& library() const { return *library_; }

  // The first call: it also looks up the extensions' functions of the device's platform. One context an Api.
  [[nodiscard]] Handle<cl_context> create_context(cl_device_id device);
  [[nodiscard]] Handle<cl_command_queue> create_queue(cl_context context, cl_device_id device, bool profiling);
  [[nodiscard]] Handle<cl_mem> create_buffer(cl_context context, cl_mem_flags flags, std::int64_t bytes);
  [[nodiscard]] Handle<cl_mem> create_sub_buffer(cl_mem buffer, std::int64_t offset, std::int64_t bytes);
  // image1d_buffer_t, float4 texels.
  [[nodiscard]] Handle<cl_mem> create_image_view(cl_context context, cl_mem buffer, std::int64_t bytes);
  // Built from source or binary with `options`; an Error carries the head of the compiler's log.
  [[nodiscard]] Handle<cl_program> build_from_source(cl_context context, cl_device_id device, const std::string& source,
                                                     const std::string& options);
  [[nodiscard]] Handle<cl_program> build_from_binary(cl_context context, cl_device_id device,
                                                     std::span<const std::byte> binary, const std::string& options);
  [[nodiscard]] std::vector<std::byte> binary_of(cl_program program);
  [[nodiscard]] Handle<cl_kernel> create_kernel(cl_program program, const std::string& name);
  [[nodiscard]] std::size_t group_limit(cl_kernel kernel, cl_device_id device);  // CL_KERNEL_WORK_GROUP_SIZE

  void set_arg(cl_kernel kernel, int index, std::size_t bytes, const void* value);
  // `event` may be null; an event given back belongs to the caller.
  void enqueue_kernel(cl_command_queue queue, cl_kernel kernel, const std::array<std::size_t, 3>& global,
                      const std::array<std::size_t, 3>& local, Handle<cl_event>* event = nullptr,
                      LaunchNumber number = {});
  void read(cl_command_queue queue, cl_mem buffer, std::int64_t offset, std::span<std::byte> bytes, bool blocking,
            Handle<cl_event>* event = nullptr);
  void write(cl_command_queue queue, cl_mem buffer, std::int64_t offset, std::span<const std::byte> bytes,
             bool blocking, Handle<cl_event>* event = nullptr);
  void copy(cl_command_queue queue, cl_mem from, std::int64_t from_offset, cl_mem to, std::int64_t to_offset,
            std::int64_t bytes);
  void fill_zero(cl_command_queue queue, cl_mem buffer, std::int64_t bytes);
  // Never blocks: the pointer may be used once `event` is done. `for_writing`: the old contents are given up.
  [[nodiscard]] std::byte* map(cl_command_queue queue, cl_mem buffer, std::int64_t bytes, bool for_writing,
                               Handle<cl_event>& event);
  void unmap(cl_command_queue queue, cl_mem buffer, std::byte* pointer);
  void flush(cl_command_queue queue);
  void finish(cl_command_queue queue);
  void wait(cl_event event, Wait kind);
  [[nodiscard]] bool is_done(cl_event event);
  // Start and end of the command, in nanoseconds of the device's clock; the queue must be a profiling one.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> profile(cl_event event);

  // Queued, submitted, start and end of a command, which is waited for; not counted. Zeros: the driver does not say.
  [[nodiscard]] std::array<std::uint64_t, 4> times_of(cl_event event);

  // Keeps the host's memory that a failed command may yet write to, for as long as the Api lives.
  void keep(std::shared_ptr<const void> memory) { kept_.push_back(std::move(memory)); }

  // Recordings (replay.h): cl_khr_command_buffer ...
  [[nodiscard]] bool has_command_buffers() const;
  [[nodiscard]] Handle<cl_command_buffer_khr> create_command_buffer(cl_command_queue queue, bool reentrant);
  void record_kernel(cl_command_buffer_khr recording, cl_kernel kernel, const std::array<std::size_t, 3>& global,
                     const std::array<std::size_t, 3>& local);
  void end_recording(cl_command_buffer_khr recording);
  // `launches`: how many kernels were recorded. `event` takes the run's event.
  void enqueue_recording(cl_command_queue queue, cl_command_buffer_khr recording, std::int64_t launches,
                         Handle<cl_event>& event);
  // ... and cl_qcom_recordable_queues, whose kernels are enqueued to a recordable queue between the two calls.
  [[nodiscard]] bool has_recordable_queues() const;
  [[nodiscard]] Handle<cl_command_queue> create_recordable_queue(cl_context context, cl_device_id device);
  [[nodiscard]] Handle<cl_recording_qcom> begin_recording(cl_command_queue recordable);
  void record_kernel(cl_command_queue recordable, cl_kernel kernel, const std::array<std::size_t, 3>& global,
                     const std::array<std::size_t, 3>& local);
  void end_recording(cl_recording_qcom recording);
  void enqueue_recording(cl_command_queue queue, cl_recording_qcom recording, std::int64_t launches,
                         Handle<cl_event>& event);

  // What Handle calls; failures are ignored, as nothing can be done about them.
  void release(cl_context object) noexcept { functions_.clReleaseContext(object); }
  void release(cl_command_queue object) noexcept { functions_.clReleaseCommandQueue(object); }
  void release(cl_mem object) noexcept;
  void release(cl_program object) noexcept { functions_.clReleaseProgram(object); }
  void release(cl_kernel object) noexcept { functions_.clReleaseKernel(object); }
  void release(cl_event object) noexcept { functions_.clReleaseEvent(object); }
  void release(cl_command_buffer_khr object) noexcept { functions_.clReleaseCommandBufferKHR(object); }
  void release(cl_recording_qcom object) noexcept { functions_.clReleaseRecordingQCOM(object); }

 private:
  // A call that enqueues a command, its event, and what a recorder is told of it.
  class Enqueue;
  // The calls that a recorder sees, by name.
  enum class Call : std::uint8_t {
    kernel,
    read,
    write,
    copy,
    fill,
    map,
    unmap,
    recording,
    set_arg,
    flush,
    finish,
    wait,
    poll,
    make,
    release
  };
  static constexpr std::size_t kCalls = 15;

  template <typename T>
  [[nodiscard]] Handle<T> created(T object, cl_int error, const char* call, std::string_view what);
  [[nodiscard]] Handle<cl_program> built(Handle<cl_program> program, cl_device_id device, const std::string& options);
  [[nodiscard]] std::string build_log(cl_program program, cl_device_id device);
  [[nodiscard]] cl_int status_of(cl_event event);
  [[nodiscard]] int name(Call call) const { return names_[static_cast<std::size_t>(call)]; }

  std::shared_ptr<const Library> library_;
  Functions functions_;
  Counters counters_;
  Recorder* recorder_ = nullptr;
  std::array<int, kCalls> names_{};  // of the recorder
  std::unique_ptr<Timeline> timeline_;
  std::vector<std::shared_ptr<const void>> kept_;
};

template <typename T>
Handle<T>::~Handle() {
  if (object_ != nullptr) api_->release(object_);
}

}  // namespace stoker::opencl
