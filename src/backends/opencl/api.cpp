#include "backends/opencl/api.h"

#include <algorithm>

#include "backends/opencl/errors.h"
#include "backends/opencl/timeline.h"
#include "base/error.h"

namespace stoker::opencl {
namespace {

// A call that asks for memory says so, which decides what CL_OUT_OF_RESOURCES means.
enum class Asks : std::uint8_t { nothing, memory };

template <typename... What>
void check(cl_int error, const char* call, Asks asks, const What&... what) {
  if (error == CL_SUCCESS) return;
  fail(error_code(error, asks == Asks::memory), "OpenCL: ", call, " failed with ", error_name(error), ": ", what...);
}

constexpr std::size_t kLogChars = 2000;  // of a compiler's log, in an Error

std::string sizes(const std::array<std::size_t, 3>& n) { return str(n[0], "x", n[1], "x", n[2]); }

}  // namespace

class Api::Enqueue {
 public:
  // `handle`: where the event goes; null if nobody asked for it.
  Enqueue(Api& api, Handle<cl_event>* handle, Call call, Activity activity, std::int64_t bytes = 0,
          bool blocking = false)
      : api_(api),
        handle_(handle),
        watch_(api.recorder_),
        command_{.activity = activity, .what = api.name(call), .bytes = bytes, .blocking = blocking} {}
  [[nodiscard]] cl_event* out() { return handle_ != nullptr || watch_.is_on() ? &event_ : nullptr; }
  // After the call's error was checked.
  void keep(LaunchNumber number = {}) {
    if (watch_.is_on()) record(number);
    if (handle_ == nullptr) return;
    *handle_ = Handle<cl_event>(api_, event_);
    ++api_.counters_.events_created;
  }

 private:
  void record(LaunchNumber number) {
    command_.number = number;
    command_.called = watch_.begin();
    command_.returned = Recorder::now();
    // The caller and the timeline have the event, each for itself.
    if (handle_ != nullptr && api_.functions_.clRetainEvent(event_) != CL_SUCCESS) return;
    api_.timeline_->keep(Handle<cl_event>(api_, event_), command_);
  }

  Api& api_;
  Handle<cl_event>* handle_;
  Stopwatch watch_;
  Command command_;
  cl_event event_ = nullptr;
};

Api::Api(std::shared_ptr<const Library> library) : library_(std::move(library)), functions_(library_->functions()) {}
Api::~Api() = default;

void Api::record_to(Recorder& recorder) {
  constexpr std::array<const char*, kCalls> kNames{"clEnqueueNDRangeKernel",
                                                   "clEnqueueReadBuffer",
                                                   "clEnqueueWriteBuffer",
                                                   "clEnqueueCopyBuffer",
                                                   "clEnqueueFillBuffer",
                                                   "clEnqueueMapBuffer",
                                                   "clEnqueueUnmapMemObject",
                                                   "replay",
                                                   "clSetKernelArg",
                                                   "clFlush",
                                                   "clFinish",
                                                   "clWaitForEvents",
                                                   "clGetEventInfo",
                                                   "clCreateBuffer",
                                                   "clReleaseMemObject"};
  for (std::size_t i = 0; i < kCalls; ++i) names_[i] = recorder.name(kNames[i]);
  timeline_ = std::make_unique<Timeline>(*this, recorder);
  recorder_ = &recorder;
}

template <typename T>
Handle<T> Api::created(T object, cl_int error, const char* call, std::string_view what) {
  check(error, call, Asks::memory, what);
  require(object != nullptr, Code::device, "OpenCL: ", call, " gave nothing and no error: ", what);
  ++counters_.objects_created;
  return Handle<T>(*this, object);
}

Handle<cl_context> Api::create_context(cl_device_id device) {
  cl_platform_id platform = nullptr;
  check(functions_.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(cl_platform_id), static_cast<void*>(&platform),
                                   nullptr),
        "clGetDeviceInfo", Asks::nothing, "the device's platform");
  functions_ = library_->functions_of(platform);
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform),
                                              0};
  cl_int error = CL_SUCCESS;
  cl_context context = functions_.clCreateContext(properties, 1, &device, nullptr, nullptr, &error);
  return created(context, error, "clCreateContext", "a context for the device");
}

Handle<cl_command_queue> Api::create_queue(cl_context context, cl_device_id device, bool profiling) {
  cl_int error = CL_SUCCESS;
  cl_command_queue queue =
      functions_.clCreateCommandQueue(context, device, profiling ? CL_QUEUE_PROFILING_ENABLE : 0, &error);
  return created(queue, error, "clCreateCommandQueue",
                 profiling ? "an in-order queue with profiling" : "an in-order queue");
}

Handle<cl_mem> Api::create_buffer(cl_context context, cl_mem_flags flags, std::int64_t bytes) {
  cl_int error = CL_SUCCESS;
  // OpenCL has no empty buffers; a plan may.
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 4));
  const Stopwatch watch(recorder_);
  cl_mem buffer = functions_.clCreateBuffer(context, flags, size, nullptr, &error);
  watch.stop(Activity::host, name(Call::make));
  return created(buffer, error, "clCreateBuffer", str("a buffer of ", bytes, " bytes"));
}

Handle<cl_mem> Api::create_sub_buffer(cl_mem buffer, std::int64_t offset, std::int64_t bytes) {
  const cl_buffer_region region{static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes)};
  cl_int error = CL_SUCCESS;
  cl_mem part = functions_.clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
  return created(part, error, "clCreateSubBuffer", str(bytes, " bytes of a buffer from byte ", offset, " on"));
}

Handle<cl_mem> Api::create_image_view(cl_context context, cl_mem buffer, std::int64_t bytes) {
  const cl_image_format format{CL_RGBA, CL_FLOAT};
  cl_image_desc description{};
  description.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER;
  description.image_width = static_cast<std::size_t>(bytes / 16);
  description.buffer = buffer;
  cl_int error = CL_SUCCESS;
  cl_mem image = functions_.clCreateImage(context, CL_MEM_READ_ONLY, &format, &description, nullptr, &error);
  return created(image, error, "clCreateImage", str("an image of ", bytes / 16, " texels over a buffer"));
}

std::string Api::build_log(cl_program program, cl_device_id device) {
  std::size_t size = 0;
  if (functions_.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) != CL_SUCCESS)
    return {};
  std::string log(size, '\0');
  if (functions_.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr) != CL_SUCCESS)
    return {};
  log.resize(std::min(log.find('\0') == std::string::npos ? size : log.find('\0'), kLogChars));
  return log;
}

Handle<cl_program> Api::built(Handle<cl_program> program, cl_device_id device, const std::string& options) {
  const cl_int error = functions_.clBuildProgram(program.get(), 1, &device, options.c_str(), nullptr, nullptr);
  if (error != CL_SUCCESS)
    check(error, "clBuildProgram", Asks::memory, "options '", options,
          "'; the compiler says: ", build_log(program.get(), device));
  return program;
}

Handle<cl_program> Api::build_from_source(cl_context context, cl_device_id device, const std::string& source,
                                          const std::string& options) {
  const char* text = source.data();
  const std::size_t length = source.size();
  cl_int error = CL_SUCCESS;
  cl_program program = functions_.clCreateProgramWithSource(context, 1, &text, &length, &error);
  Handle<cl_program> handle =
      built(created(program, error, "clCreateProgramWithSource", "a kernel file's program"), device, options);
  ++counters_.programs_built;
  return handle;
}

Handle<cl_program> Api::build_from_binary(cl_context context, cl_device_id device, std::span<const std::byte> binary,
                                          const std::string& options) {
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  const std::size_t size = binary.size();
  cl_int error = CL_SUCCESS;
  cl_int status = CL_SUCCESS;
  cl_program program = functions_.clCreateProgramWithBinary(context, 1, &device, &size, &data, &status, &error);
  Handle<cl_program> handle = created(program, error, "clCreateProgramWithBinary", "a program of the cache");
  check(status, "clCreateProgramWithBinary", Asks::nothing, "a program of the cache, refused by the device");
  handle = built(std::move(handle), device, options);
  ++counters_.programs_loaded;
  return handle;
}

std::vector<std::byte> Api::binary_of(cl_program program) {
  std::size_t size = 0;
  check(functions_.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr), "clGetProgramInfo",
        Asks::nothing, "the size of a program's binary");
  std::vector<std::byte> binary(size);
  if (size == 0) return binary;
  std::byte* data = binary.data();
  check(functions_.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(data), static_cast<void*>(&data), nullptr),
        "clGetProgramInfo", Asks::memory, "a program's binary of ", size, " bytes");
  return binary;
}

Handle<cl_kernel> Api::create_kernel(cl_program program, const std::string& name) {
  cl_int error = CL_SUCCESS;
  cl_kernel kernel = functions_.clCreateKernel(program, name.c_str(), &error);
  return created(kernel, error, "clCreateKernel", str("kernel '", name, "'"));
}

std::size_t Api::group_limit(cl_kernel kernel, cl_device_id device) {
  std::size_t limit = 0;
  check(functions_.clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof(limit), &limit, nullptr),
        "clGetKernelWorkGroupInfo", Asks::nothing, "a kernel's largest work-group");
  return limit;
}

void Api::set_arg(cl_kernel kernel, int index, std::size_t bytes, const void* value) {
  const Stopwatch watch(recorder_);
  check(functions_.clSetKernelArg(kernel, static_cast<cl_uint>(index), bytes, value), "clSetKernelArg", Asks::nothing,
        "argument ", index, " of ", bytes, " bytes");
  watch.stop(Activity::launch, name(Call::set_arg));
}

void Api::enqueue_kernel(cl_command_queue queue, cl_kernel kernel, const std::array<std::size_t, 3>& global,
                         const std::array<std::size_t, 3>& local, Handle<cl_event>* event, LaunchNumber number) {
  Enqueue call(*this, event, Call::kernel, Activity::kernel);
  const cl_int error =
      functions_.clEnqueueNDRangeKernel(queue, kernel, 3, nullptr, global.data(), local.data(), 0, nullptr, call.out());
  if (error != CL_SUCCESS)
    check(error, "clEnqueueNDRangeKernel", Asks::nothing, sizes(global), " work-items in groups of ", sizes(local));
  call.keep(number);
  ++counters_.launches;
}

void Api::read(cl_command_queue queue, cl_mem buffer, std::int64_t offset, std::span<std::byte> bytes, bool blocking,
               Handle<cl_event>* event) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  Enqueue call(*this, event, Call::read, Activity::copy, size, blocking && !bytes.empty());
  const cl_int error = bytes.empty() ? functions_.clEnqueueMarkerWithWaitList(queue, 0, nullptr, call.out())
                                     : functions_.clEnqueueReadBuffer(queue, buffer, blocking ? CL_TRUE : CL_FALSE,
                                                                      static_cast<std::size_t>(offset), bytes.size(),
                                                                      bytes.data(), 0, nullptr, call.out());
  check(error, "clEnqueueReadBuffer", Asks::nothing, bytes.size(), " bytes");
  call.keep();
  counters_.read += size;
  if (!bytes.empty()) ++counters_.read_calls;
  if (blocking && !bytes.empty()) ++counters_.blocking_calls;
}

void Api::write(cl_command_queue queue, cl_mem buffer, std::int64_t offset, std::span<const std::byte> bytes,
                bool blocking, Handle<cl_event>* event) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  Enqueue call(*this, event, Call::write, Activity::copy, size, blocking && !bytes.empty());
  const cl_int error = bytes.empty() ? functions_.clEnqueueMarkerWithWaitList(queue, 0, nullptr, call.out())
                                     : functions_.clEnqueueWriteBuffer(queue, buffer, blocking ? CL_TRUE : CL_FALSE,
                                                                       static_cast<std::size_t>(offset), bytes.size(),
                                                                       bytes.data(), 0, nullptr, call.out());
  check(error, "clEnqueueWriteBuffer", Asks::nothing, bytes.size(), " bytes");
  call.keep();
  counters_.written += size;
  if (!bytes.empty()) ++counters_.write_calls;
  if (blocking && !bytes.empty()) ++counters_.blocking_calls;
}

void Api::copy(cl_command_queue queue, cl_mem from, std::int64_t from_offset, cl_mem to, std::int64_t to_offset,
               std::int64_t bytes) {
  if (bytes == 0) return;
  Enqueue call(*this, nullptr, Call::copy, Activity::copy, bytes);
  check(functions_.clEnqueueCopyBuffer(queue, from, to, static_cast<std::size_t>(from_offset),
                                       static_cast<std::size_t>(to_offset), static_cast<std::size_t>(bytes), 0, nullptr,
                                       call.out()),
        "clEnqueueCopyBuffer", Asks::nothing, bytes, " bytes");
  call.keep();
  counters_.copied += bytes;
}

void Api::fill_zero(cl_command_queue queue, cl_mem buffer, std::int64_t bytes) {
  if (bytes == 0) return;
  const cl_uint zero = 0;
  const std::size_t pattern = bytes % 4 == 0 ? 4 : 1;
  Enqueue call(*this, nullptr, Call::fill, Activity::copy, bytes);
  check(functions_.clEnqueueFillBuffer(queue, buffer, &zero, pattern, 0, static_cast<std::size_t>(bytes), 0, nullptr,
                                       call.out()),
        "clEnqueueFillBuffer", Asks::memory, bytes, " bytes");
  call.keep();
}

std::byte* Api::map(cl_command_queue queue, cl_mem buffer, std::int64_t bytes, bool for_writing,
                    Handle<cl_event>& event) {
  Enqueue call(*this, &event, Call::map, Activity::copy, bytes);
  const cl_map_flags flags = for_writing ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_READ;
  cl_int error = CL_SUCCESS;
  void* pointer = functions_.clEnqueueMapBuffer(queue, buffer, CL_FALSE, flags, 0,
                                                static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)), 0, nullptr,
                                                call.out(), &error);
  check(error, "clEnqueueMapBuffer", Asks::memory, bytes, " bytes");
  call.keep();
  require(pointer != nullptr, Code::device, "OpenCL: clEnqueueMapBuffer gave nothing and no error: ", bytes, " bytes");
  (for_writing ? counters_.mapped_in : counters_.mapped_out) += bytes;
  return static_cast<std::byte*>(pointer);
}

void Api::unmap(cl_command_queue queue, cl_mem buffer, std::byte* pointer) {
  Enqueue call(*this, nullptr, Call::unmap, Activity::copy);
  check(functions_.clEnqueueUnmapMemObject(queue, buffer, pointer, 0, nullptr, call.out()), "clEnqueueUnmapMemObject",
        Asks::nothing, "a buffer that the host has filled");
  call.keep();
}

void Api::flush(cl_command_queue queue) {
  const Stopwatch watch(recorder_);
  check(functions_.clFlush(queue), "clFlush", Asks::nothing, "the queue");
  watch.stop(Activity::launch, name(Call::flush));
  ++counters_.flushes;
}

void Api::finish(cl_command_queue queue) {
  ++counters_.blocking_calls;
  const Stopwatch watch(recorder_);
  check(functions_.clFinish(queue), "clFinish", Asks::nothing, "the queue's work");
  watch.stop(Activity::wait, name(Call::finish));
}

void Api::wait(cl_event event, Wait kind) {
  if (kind == Wait::blocking) ++counters_.blocking_calls;
  if (kind == Wait::back_pressure) ++counters_.back_pressure;
  const Stopwatch watch(recorder_);
  const cl_int error = functions_.clWaitForEvents(1, &event);
  watch.stop(Activity::wait, name(Call::wait));
  if (error == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) {
    const cl_int status = status_of(event);
    check(status < 0 ? status : error, "clWaitForEvents", Asks::nothing, "a command failed on the device");
  }
  check(error, "clWaitForEvents", Asks::nothing, "waiting for a command");
}

cl_int Api::status_of(cl_event event) {
  cl_int status = CL_QUEUED;
  const Stopwatch watch(recorder_);
  check(functions_.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr),
        "clGetEventInfo", Asks::nothing, "whether a command is done");
  watch.stop(Activity::launch, name(Call::poll));
  return status;
}

bool Api::is_done(cl_event event) {
  const cl_int status = status_of(event);
  if (status < 0) check(status, "a command", Asks::nothing, "it failed on the device");
  return status == CL_COMPLETE;
}

std::pair<std::uint64_t, std::uint64_t> Api::profile(cl_event event) {
  cl_ulong start = 0;
  cl_ulong end = 0;
  check(functions_.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(start), &start, nullptr),
        "clGetEventProfilingInfo", Asks::nothing, "when a command began");
  check(functions_.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end, nullptr),
        "clGetEventProfilingInfo", Asks::nothing, "when a command ended");
  return {start, end};
}

std::array<std::uint64_t, 4> Api::times_of(cl_event event) {
  std::array<std::uint64_t, 4> times{};
  if (functions_.clWaitForEvents(1, &event) != CL_SUCCESS) return times;
  constexpr std::array<cl_profiling_info, 4> kMoments{CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT,
                                                      CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
  for (std::size_t i = 0; i < times.size(); ++i) {
    cl_ulong time = 0;
    if (functions_.clGetEventProfilingInfo(event, kMoments[i], sizeof(time), &time, nullptr) == CL_SUCCESS)
      times[i] = time;
  }
  return times;
}

void Api::release(cl_mem object) noexcept {
  const Stopwatch watch(recorder_);
  functions_.clReleaseMemObject(object);
  watch.stop(Activity::host, name(Call::release));
}

bool Api::has_command_buffers() const {
  return functions_.clCreateCommandBufferKHR != nullptr && functions_.clFinalizeCommandBufferKHR != nullptr &&
         functions_.clReleaseCommandBufferKHR != nullptr && functions_.clEnqueueCommandBufferKHR != nullptr &&
         functions_.clCommandNDRangeKernelKHR != nullptr;
}

Handle<cl_command_buffer_khr> Api::create_command_buffer(cl_command_queue queue, bool reentrant) {
  const cl_command_buffer_properties_khr properties[] = {
      CL_COMMAND_BUFFER_FLAGS_KHR, reentrant ? cl_uint{CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR} : 0, 0};
  cl_int error = CL_SUCCESS;
  cl_command_buffer_khr recording = functions_.clCreateCommandBufferKHR(1, &queue, properties, &error);
  return created(recording, error, "clCreateCommandBufferKHR", "a recording of the step");
}

void Api::record_kernel(cl_command_buffer_khr recording, cl_kernel kernel, const std::array<std::size_t, 3>& global,
                        const std::array<std::size_t, 3>& local) {
  check(functions_.clCommandNDRangeKernelKHR(recording, nullptr, nullptr, kernel, 3, nullptr, global.data(),
                                             local.data(), 0, nullptr, nullptr, nullptr),
        "clCommandNDRangeKernelKHR", Asks::memory, sizes(global), " work-items in groups of ", sizes(local));
}

void Api::end_recording(cl_command_buffer_khr recording) {
  check(functions_.clFinalizeCommandBufferKHR(recording), "clFinalizeCommandBufferKHR", Asks::memory,
        "a recording of the step");
}

void Api::enqueue_recording(cl_command_queue queue, cl_command_buffer_khr recording, std::int64_t launches,
                            Handle<cl_event>& event) {
  Enqueue call(*this, &event, Call::recording, Activity::kernel);
  check(functions_.clEnqueueCommandBufferKHR(1, &queue, recording, 0, nullptr, call.out()), "clEnqueueCommandBufferKHR",
        Asks::nothing, "a recording of ", launches, " launches");
  call.keep();
  counters_.launches += launches;
  ++counters_.replays;
}

bool Api::has_recordable_queues() const {
  return functions_.clNewRecordingQCOM != nullptr && functions_.clEndRecordingQCOM != nullptr &&
         functions_.clReleaseRecordingQCOM != nullptr && functions_.clEnqueueRecordingQCOM != nullptr;
}

Handle<cl_command_queue> Api::create_recordable_queue(cl_context context, cl_device_id device) {
  cl_int error = CL_SUCCESS;
  cl_command_queue queue = functions_.clCreateCommandQueue(context, device, CL_QUEUE_RECORDABLE_QCOM, &error);
  if (error != CL_SUCCESS && functions_.clCreateCommandQueueWithProperties != nullptr) {
    // Some drivers take a property that OpenCL 1.2 does not know in the newer call only.
    const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_RECORDABLE_QCOM, 0};
    queue = functions_.clCreateCommandQueueWithProperties(context, device, properties, &error);
  }
  return created(queue, error, "clCreateCommandQueue", "a recordable queue");
}

Handle<cl_recording_qcom> Api::begin_recording(cl_command_queue recordable) {
  cl_int error = CL_SUCCESS;
  cl_recording_qcom recording = functions_.clNewRecordingQCOM(recordable, &error);
  return created(recording, error, "clNewRecordingQCOM", "a recording of the step");
}

void Api::record_kernel(cl_command_queue recordable, cl_kernel kernel, const std::array<std::size_t, 3>& global,
                        const std::array<std::size_t, 3>& local) {
  check(functions_.clEnqueueNDRangeKernel(recordable, kernel, 3, nullptr, global.data(), local.data(), 0, nullptr,
                                          nullptr),
        "clEnqueueNDRangeKernel", Asks::memory, "recording ", sizes(global), " work-items in groups of ", sizes(local));
}

void Api::end_recording(cl_recording_qcom recording) {
  check(functions_.clEndRecordingQCOM(recording), "clEndRecordingQCOM", Asks::memory, "a recording of the step");
}

void Api::enqueue_recording(cl_command_queue queue, cl_recording_qcom recording, std::int64_t launches,
                            Handle<cl_event>& event) {
  Enqueue call(*this, &event, Call::recording, Activity::kernel);
  check(functions_.clEnqueueRecordingQCOM(queue, recording, 0, nullptr, 0, nullptr, 0, nullptr, 0, nullptr, 0, nullptr,
                                          call.out()),
        "clEnqueueRecordingQCOM", Asks::nothing, "a recording of ", launches, " launches");
  call.keep();
  counters_.launches += launches;
  ++counters_.replays;
}

}  // namespace stoker::opencl
