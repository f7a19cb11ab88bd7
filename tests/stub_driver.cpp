#include "stub_driver.h"

#include <algorithm>
#include <cstring>

#include "stub_state.h"

namespace stoker::testing {
namespace stub {
namespace {

cl_int CL_API_CALL stub_clGetPlatformIDs(cl_uint count, cl_platform_id* platforms, cl_uint* found) {
  if (found != nullptr) *found = state().config.devices.empty() ? 0 : 1;
  if (count > 0 && platforms != nullptr) platforms[0] = reinterpret_cast<cl_platform_id>(&state());
  return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clGetPlatformInfo(cl_platform_id, cl_platform_info what, std::size_t size, void* value,
                                          std::size_t* needed) {
  return answer_text(what == CL_PLATFORM_VERSION ? "OpenCL 3.0 stub" : "Stub", size, value, needed);
}

cl_int CL_API_CALL stub_clGetDeviceIDs(cl_platform_id, cl_device_type, cl_uint count, cl_device_id* devices,
                                       cl_uint* found) {
  std::vector<StubDevice>& all = state().config.devices;
  if (found != nullptr) *found = static_cast<cl_uint>(all.size());
  for (cl_uint i = 0; devices != nullptr && i < count; ++i) devices[i] = reinterpret_cast<cl_device_id>(&all[i]);
  return all.empty() ? CL_DEVICE_NOT_FOUND : CL_SUCCESS;
}

std::string device_text(const StubDevice& device, cl_device_info what) {
  switch (what) {
    case CL_DEVICE_NAME: return device.name;
    case CL_DEVICE_VENDOR: return device.vendor;
    case CL_DEVICE_VERSION: return device.version;
    case CL_DRIVER_VERSION: return "stub 1";
    default: return device.extensions;
  }
}

template <typename T>
cl_int answer_value(T number, std::size_t size, void* value, std::size_t* needed) {
  return answer(&number, sizeof(number), size, value, needed);
}

cl_int CL_API_CALL stub_clGetDeviceInfo(cl_device_id id, cl_device_info what, std::size_t size, void* value,
                                        std::size_t* needed) {
  const StubDevice& device = *reinterpret_cast<const StubDevice*>(id);
  if (what == device.broken_query && what != 0) return CL_OUT_OF_HOST_MEMORY;
  const std::size_t item_sizes[3] = {kMaxGroup, kMaxGroup, 64};
  cl_name_version version{device.command_buffer_version, "cl_khr_command_buffer"};
  switch (what) {
    case CL_DEVICE_NAME:
    case CL_DEVICE_VENDOR:
    case CL_DEVICE_VERSION:
    case CL_DRIVER_VERSION:
    case CL_DEVICE_EXTENSIONS: return answer_text(device_text(device, what), size, value, needed);
    case CL_DEVICE_TYPE: return answer_value(device.type, size, value, needed);
    case CL_DEVICE_PLATFORM: return answer_value(reinterpret_cast<cl_platform_id>(&state()), size, value, needed);
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE:
    case CL_DEVICE_IMAGE_SUPPORT: return answer_value(cl_bool{CL_TRUE}, size, value, needed);
    case CL_DEVICE_MAX_COMPUTE_UNITS: return answer_value(cl_uint{2}, size, value, needed);
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT: return answer_value(cl_uint{1}, size, value, needed);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE: return answer_value(kMaxGroup, size, value, needed);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES: return answer(item_sizes, sizeof(item_sizes), size, value, needed);
    case CL_DEVICE_LOCAL_MEM_SIZE: return answer_value(cl_ulong{32768}, size, value, needed);
    case CL_DEVICE_LOCAL_MEM_TYPE: return answer_value(cl_device_local_mem_type{CL_LOCAL}, size, value, needed);
    case CL_DEVICE_GLOBAL_MEM_SIZE: return answer_value(cl_ulong{1} << 32U, size, value, needed);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE: return answer_value(cl_ulong{1} << 30U, size, value, needed);
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN: return answer_value(cl_uint{8 * kBaseAlignment}, size, value, needed);
    case CL_DEVICE_IMAGE_MAX_BUFFER_SIZE: return answer_value(std::size_t{1} << 27U, size, value, needed);
    case CL_DEVICE_EXTENSIONS_WITH_VERSION:
      if (device.command_buffer_version == 0) return CL_INVALID_VALUE;
      return answer(&version, sizeof(version), size, value, needed);
    case CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR:
      return answer_value(device.required_queue, size, value, needed);
    case CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR:
      return answer_value(cl_device_command_buffer_capabilities_khr{0}, size, value, needed);
    default: return CL_INVALID_VALUE;
  }
}

cl_context CL_API_CALL stub_clCreateContext(const cl_context_properties*, cl_uint, const cl_device_id*,
                                            void(CL_CALLBACK*)(const char*, const void*, std::size_t, void*), void*,
                                            cl_int* error) {
  return give<cl_context>(std::make_shared<Context>(), error);
}

cl_command_queue make_queue(cl_context context, cl_command_queue_properties properties, bool may_record,
                            cl_int* error) {
  if (!find<Context>(context)) return refuse<cl_command_queue>(error, CL_INVALID_CONTEXT);
  const bool recordable = (properties & CL_QUEUE_RECORDABLE_QCOM) != 0;
  if (recordable && !may_record) return refuse<cl_command_queue>(error, CL_INVALID_VALUE);
  auto queue = std::make_shared<Queue>();
  queue->recordable = recordable;
  return give<cl_command_queue>(std::move(queue), error);
}

cl_command_queue CL_API_CALL stub_clCreateCommandQueue(cl_context context, cl_device_id,
                                                       cl_command_queue_properties properties, cl_int* error) {
  return make_queue(context, properties, !state().config.recordable_by_property, error);
}

cl_command_queue CL_API_CALL stub_clCreateCommandQueueWithProperties(cl_context context, cl_device_id,
                                                                     const cl_queue_properties* properties,
                                                                     cl_int* error) {
  return make_queue(context, properties[0] == CL_QUEUE_PROPERTIES ? properties[1] : 0, true, error);
}

cl_mem CL_API_CALL stub_clCreateBuffer(cl_context context, cl_mem_flags, std::size_t size, void*, cl_int* error) {
  if (!find<Context>(context)) return refuse<cl_mem>(error, CL_INVALID_CONTEXT);
  if (size == 0) return refuse<cl_mem>(error, CL_INVALID_BUFFER_SIZE);
  auto buffer = std::make_shared<Memory>("buffer", size);
  buffer->bytes.resize(size, std::byte{0xcd});
  return give<cl_mem>(std::move(buffer), error);
}

cl_mem CL_API_CALL stub_clCreateSubBuffer(cl_mem handle, cl_mem_flags, cl_buffer_create_type, const void* info,
                                          cl_int* error) {
  const auto parent = find<Memory>(handle);
  const auto& region = *static_cast<const cl_buffer_region*>(info);
  if (!parent || parent->parent) return refuse<cl_mem>(error, CL_INVALID_MEM_OBJECT);
  if (region.size == 0) return refuse<cl_mem>(error, CL_INVALID_BUFFER_SIZE);
  if (region.origin + region.size > parent->size) return refuse<cl_mem>(error, CL_INVALID_VALUE);
  if (region.origin % kBaseAlignment != 0) return refuse<cl_mem>(error, CL_MISALIGNED_SUB_BUFFER_OFFSET);
  auto part = std::make_shared<Memory>("buffer", region.size);
  part->parent = parent;
  part->offset = region.origin;
  return give<cl_mem>(std::move(part), error);
}

cl_mem CL_API_CALL stub_clCreateImage(cl_context, cl_mem_flags, const cl_image_format*, const cl_image_desc* about,
                                      void*, cl_int* error) {
  const auto buffer = find<Memory>(about->buffer);
  if (!buffer || about->image_width == 0 || about->image_width * 16 > buffer->size)
    return refuse<cl_mem>(error, CL_INVALID_IMAGE_SIZE);
  auto image = std::make_shared<Memory>("image", about->image_width * 16);
  image->parent = buffer;
  return give<cl_mem>(std::move(image), error);
}

cl_program CL_API_CALL stub_clCreateProgramWithSource(cl_context, cl_uint, const char** texts,
                                                      const std::size_t* lengths, cl_int* error) {
  auto program = std::make_shared<ProgramObject>();
  program->source.assign(texts[0], lengths[0]);
  return give<cl_program>(std::move(program), error);
}

// A binary is the source behind a word.
constexpr std::string_view kBinaryWord = "STUB";

cl_program CL_API_CALL stub_clCreateProgramWithBinary(cl_context, cl_uint, const cl_device_id*,
                                                      const std::size_t* lengths, const unsigned char** binaries,
                                                      cl_int* status, cl_int* error) {
  const std::string_view binary(reinterpret_cast<const char*>(binaries[0]), lengths[0]);
  if (!binary.starts_with(kBinaryWord)) {
    if (status != nullptr) *status = CL_INVALID_BINARY;
    return refuse<cl_program>(error, CL_INVALID_BINARY);
  }
  if (status != nullptr) *status = CL_SUCCESS;
  auto program = std::make_shared<ProgramObject>();
  program->source = binary.substr(kBinaryWord.size());
  return give<cl_program>(std::move(program), error);
}

cl_int CL_API_CALL stub_clBuildProgram(cl_program handle, cl_uint, const cl_device_id*, const char*,
                                       void(CL_CALLBACK*)(cl_program, void*), void*) {
  const auto program = find<ProgramObject>(handle);
  if (!program) return CL_INVALID_PROGRAM;
  program->built = program->source.find("STUB_REFUSES") == std::string::npos;
  return program->built ? CL_SUCCESS : CL_BUILD_PROGRAM_FAILURE;
}

cl_int CL_API_CALL stub_clGetProgramInfo(cl_program handle, cl_program_info what, std::size_t size, void* value,
                                         std::size_t* needed) {
  const auto program = find<ProgramObject>(handle);
  if (!program) return CL_INVALID_PROGRAM;
  const std::string binary = std::string(kBinaryWord) + program->source;
  if (what == CL_PROGRAM_BINARY_SIZES) return answer_value(binary.size(), size, value, needed);
  if (what != CL_PROGRAM_BINARIES) return CL_INVALID_VALUE;
  std::memcpy(*static_cast<unsigned char**>(value), binary.data(), binary.size());
  return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clGetProgramBuildInfo(cl_program, cl_device_id, cl_program_build_info, std::size_t size,
                                              void* value, std::size_t* needed) {
  return answer_text("the stub does not like this", size, value, needed);
}

cl_kernel CL_API_CALL stub_clCreateKernel(cl_program handle, const char* name, cl_int* error) {
  const auto program = find<ProgramObject>(handle);
  if (!program || !program->built) return refuse<cl_kernel>(error, CL_INVALID_PROGRAM_EXECUTABLE);
  if (std::string_view(name).starts_with("absent")) return refuse<cl_kernel>(error, CL_INVALID_KERNEL_NAME);
  auto kernel = std::make_shared<Kernel>();
  kernel->name = name;
  kernel->program = program;
  return give<cl_kernel>(std::move(kernel), error);
}

cl_int CL_API_CALL stub_clGetKernelWorkGroupInfo(cl_kernel, cl_device_id, cl_kernel_work_group_info, std::size_t size,
                                                 void* value, std::size_t* needed) {
  return answer_value(kMaxGroup, size, value, needed);
}

cl_int CL_API_CALL stub_clSetKernelArg(cl_kernel handle, cl_uint index, std::size_t size, const void* value) {
  const auto kernel = find<Kernel>(handle);
  if (!kernel) return CL_INVALID_KERNEL;
  if (size != sizeof(cl_mem) || value == nullptr) return CL_SUCCESS;
  cl_mem memory = nullptr;
  std::memcpy(static_cast<void*>(&memory), value, sizeof(memory));
  if (find<Memory>(memory)) kernel->memories[index] = memory;
  return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clEnqueueNDRangeKernel(cl_command_queue handle, cl_kernel kernel_handle, cl_uint dimensions,
                                               const std::size_t*, const std::size_t* global, const std::size_t* local,
                                               cl_uint, const cl_event*, cl_event* event) {
  const auto kernel = find<Kernel>(kernel_handle);
  const auto queue = find<Queue>(handle);
  if (!kernel || !queue) return CL_INVALID_KERNEL;
  if (const cl_int error = check_sizes(dimensions, global, local); error != CL_SUCCESS) return error;
  if (queue->recordable) return queue->open != nullptr ? record_launch(*queue->open, kernel) : CL_INVALID_COMMAND_QUEUE;
  check_launch(*kernel);
  return command(handle, event);
}

// A transfer between host and buffer, done at the end of its command, or now if it blocks.
cl_int transfer(cl_command_queue queue, cl_mem handle, cl_bool blocking, std::size_t offset, std::size_t size,
                cl_event* event, const std::function<void(std::byte*)>& move) {
  const auto memory = find<Memory>(handle);
  if (!memory) return CL_INVALID_MEM_OBJECT;
  if (size == 0 || offset + size > memory->size) return CL_INVALID_VALUE;
  const cl_int error = command(queue, event, [=] { move(memory->data() + offset); });
  return error == CL_SUCCESS && blocking == CL_TRUE ? finish(queue) : error;
}

cl_int CL_API_CALL stub_clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, std::size_t offset,
                                            std::size_t size, void* to, cl_uint, const cl_event*, cl_event* event) {
  return transfer(queue, buffer, blocking, offset, size, event, [=](std::byte* at) { std::memcpy(to, at, size); });
}

cl_int CL_API_CALL stub_clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                             std::size_t offset, std::size_t size, const void* from, cl_uint,
                                             const cl_event*, cl_event* event) {
  return transfer(queue, buffer, blocking, offset, size, event, [=](std::byte* at) { std::memcpy(at, from, size); });
}

cl_int CL_API_CALL stub_clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void* pattern,
                                            std::size_t pattern_size, std::size_t offset, std::size_t size, cl_uint,
                                            const cl_event*, cl_event* event) {
  const int byte = *static_cast<const unsigned char*>(pattern);
  if (size % pattern_size != 0 || offset % pattern_size != 0) return CL_INVALID_VALUE;
  return transfer(queue, buffer, CL_FALSE, offset, size, event, [=](std::byte* at) { std::memset(at, byte, size); });
}

cl_int CL_API_CALL stub_clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, std::size_t from_offset,
                                            std::size_t to_offset, std::size_t size, cl_uint, const cl_event*,
                                            cl_event* event) {
  const auto source = find<Memory>(from);
  if (!source || from_offset + size > source->size) return CL_INVALID_VALUE;
  return transfer(queue, to, CL_FALSE, to_offset, size, event,
                  [=](std::byte* at) { std::memmove(at, source->data() + from_offset, size); });
}

void* CL_API_CALL stub_clEnqueueMapBuffer(cl_command_queue queue, cl_mem handle, cl_bool blocking, cl_map_flags,
                                          std::size_t offset, std::size_t size, cl_uint, const cl_event*,
                                          cl_event* event, cl_int* error) {
  const auto memory = find<Memory>(handle);
  if (!memory || size == 0 || offset + size > memory->size) return refuse<void*>(error, CL_INVALID_VALUE);
  ++memory->root().mappings;
  const cl_int enqueued = command(queue, event);
  if (error != nullptr) *error = enqueued == CL_SUCCESS && blocking == CL_TRUE ? finish(queue) : enqueued;
  return memory->data() + offset;
}

cl_int CL_API_CALL stub_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem handle, void*, cl_uint, const cl_event*,
                                                cl_event* event) {
  const auto memory = find<Memory>(handle);
  if (!memory) return CL_INVALID_MEM_OBJECT;
  if (memory->root().mappings-- == 0) misuse("a buffer is unmapped that is not mapped");
  return command(queue, event);
}

cl_int CL_API_CALL stub_clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint, const cl_event*, cl_event* event) {
  return command(queue, event);
}

cl_int CL_API_CALL stub_clFlush(cl_command_queue queue) {
  return find<Queue>(queue) ? CL_SUCCESS : CL_INVALID_COMMAND_QUEUE;
}

cl_int CL_API_CALL stub_clFinish(cl_command_queue queue) { return finish(queue); }

cl_int CL_API_CALL stub_clWaitForEvents(cl_uint count, const cl_event* events) {
  cl_int result = CL_SUCCESS;
  for (cl_uint i = 0; i < count; ++i) {
    const auto event = find<Event>(events[i]);
    if (!event) return CL_INVALID_EVENT;
    event->queue->complete(event->number);
    if (event->error != CL_SUCCESS) result = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  }
  return result;
}

cl_int CL_API_CALL stub_clGetEventInfo(cl_event handle, cl_event_info, std::size_t size, void* value,
                                       std::size_t* needed) {
  const auto event = find<Event>(handle);
  if (!event) return CL_INVALID_EVENT;
  Queue& queue = *event->queue;
  if (++queue.polls % state().config.polls_until_done == 0)
    queue.complete(std::min(queue.completed + 1, queue.enqueued));
  const bool done = event->number <= queue.completed;
  return answer_value(done ? event->error : cl_int{CL_SUBMITTED}, size, value, needed);
}

cl_int CL_API_CALL stub_clGetEventProfilingInfo(cl_event handle, cl_profiling_info what, std::size_t size, void* value,
                                                std::size_t* needed) {
  const auto event = find<Event>(handle);
  if (!event || event->number > event->queue->completed) return CL_PROFILING_INFO_NOT_AVAILABLE;
  return answer_value(static_cast<cl_ulong>(event->number) * 1000 + (what == CL_PROFILING_COMMAND_END ? 500 : 0), size,
                      value, needed);
}

cl_command_buffer_khr CL_API_CALL stub_clCreateCommandBufferKHR(cl_uint, const cl_command_queue*,
                                                                const cl_command_buffer_properties_khr* properties,
                                                                cl_int* error) {
  auto recording = std::make_shared<Recording>();
  recording->reentrant = properties != nullptr && properties[0] == CL_COMMAND_BUFFER_FLAGS_KHR && properties[1] != 0;
  state().report.log.emplace_back("new recording");
  return give<cl_command_buffer_khr>(std::move(recording), error);
}

cl_int CL_API_CALL stub_clCommandNDRangeKernelKHR(cl_command_buffer_khr handle, cl_command_queue,
                                                  const cl_ndrange_kernel_command_properties_khr*, cl_kernel kernel,
                                                  cl_uint dimensions, const std::size_t*, const std::size_t* global,
                                                  const std::size_t* local, cl_uint, const cl_sync_point_khr*,
                                                  cl_sync_point_khr*, cl_mutable_command_khr*) {
  const auto recording = find<Recording>(handle);
  const auto launched = find<Kernel>(kernel);
  if (!recording || !launched) return CL_INVALID_KERNEL;
  const cl_int error = check_sizes(dimensions, global, local);
  return error != CL_SUCCESS ? error : record_launch(*recording, launched);
}

cl_int end_recording(const std::shared_ptr<Recording>& recording) {
  if (!recording || recording->ended) return CL_INVALID_OPERATION;
  recording->ended = true;
  state().report.log.emplace_back("end recording");
  return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clFinalizeCommandBufferKHR(cl_command_buffer_khr handle) {
  return end_recording(find<Recording>(handle));
}

cl_int CL_API_CALL stub_clEnqueueCommandBufferKHR(cl_uint, cl_command_queue* queues, cl_command_buffer_khr handle,
                                                  cl_uint, const cl_event*, cl_event* event) {
  const auto recording = find<Recording>(handle);
  return recording ? replay(queues[0], *recording, event) : CL_INVALID_COMMAND_BUFFER_KHR;
}

cl_recording_qcom CL_API_CALL stub_clNewRecordingQCOM(cl_command_queue handle, cl_int* error) {
  const auto queue = find<Queue>(handle);
  if (!queue || !queue->recordable || queue->open != nullptr)
    return refuse<cl_recording_qcom>(error, CL_INVALID_COMMAND_QUEUE);
  auto recording = std::make_shared<Recording>();
  queue->open = recording.get();
  state().report.log.emplace_back("new recording");
  return give<cl_recording_qcom>(std::move(recording), error);
}

cl_int CL_API_CALL stub_clEndRecordingQCOM(cl_recording_qcom handle) {
  const auto recording = find<Recording>(handle);
  for (auto& [at, object] : state().live)
    if (auto* queue = dynamic_cast<Queue*>(object.get()); queue != nullptr && queue->open == recording.get())
      queue->open = nullptr;
  return end_recording(recording);
}

cl_int CL_API_CALL stub_clEnqueueRecordingQCOM(cl_command_queue queue, cl_recording_qcom handle, std::size_t args,
                                               const cl_array_arg_qcom*, std::size_t,
                                               const cl_array_kernel_exec_info_qcom*, std::size_t,
                                               const cl_array_kernel_exec_info_qcom*, std::size_t,
                                               const cl_array_kernel_exec_info_qcom*, cl_uint, const cl_event*,
                                               cl_event* event) {
  const auto recording = find<Recording>(handle);
  if (!recording || args != 0) return CL_INVALID_VALUE;
  return replay(queue, *recording, event);
}

cl_int CL_API_CALL stub_clReleaseContext(cl_context object) { return release<Context>(object); }
cl_int CL_API_CALL stub_clReleaseCommandQueue(cl_command_queue object) { return release<Queue>(object); }
cl_int CL_API_CALL stub_clReleaseMemObject(cl_mem object) { return release<Memory>(object); }
cl_int CL_API_CALL stub_clReleaseProgram(cl_program object) { return release<ProgramObject>(object); }
cl_int CL_API_CALL stub_clReleaseKernel(cl_kernel object) { return release<Kernel>(object); }
cl_int CL_API_CALL stub_clRetainEvent(cl_event object) { return retain<Event>(object); }
cl_int CL_API_CALL stub_clReleaseEvent(cl_event object) { return release<Event>(object); }
cl_int CL_API_CALL stub_clReleaseCommandBufferKHR(cl_command_buffer_khr object) { return release<Recording>(object); }
cl_int CL_API_CALL stub_clReleaseRecordingQCOM(cl_recording_qcom object) { return release<Recording>(object); }

// Extensions' functions, as far as a device has the extension.
void* CL_API_CALL stub_clGetExtensionFunctionAddressForPlatform(cl_platform_id, const char* name) {
  const std::string_view wanted = name;
  const auto has = [](std::string_view extension) {
    return std::ranges::any_of(state().config.devices, [&](const StubDevice& device) {
      return device.extensions.find(extension) != std::string::npos;
    });
  };
  if (wanted.ends_with("KHR") && !has("cl_khr_command_buffer")) return nullptr;
  if (wanted.ends_with("QCOM") && !has("cl_qcom_recordable_queues")) return nullptr;
#define CORE(function)
#define EXTENSION(function, type) \
  if (wanted == #function) return reinterpret_cast<void*>(&stub_##function);
#include "backends/opencl/functions.inc"
#undef CORE
#undef EXTENSION
  return nullptr;
}

class StubLibrary final : public opencl::Library {
 public:
  StubLibrary() {
#define CORE(function) functions_.function = &stub_##function;
#define EXTENSION(function, type)
#include "backends/opencl/functions.inc"
#undef CORE
#undef EXTENSION
  }
  [[nodiscard]] const opencl::Functions& functions() const override { return functions_; }

 private:
  opencl::Functions functions_;
};

}  // namespace
}  // namespace stub

std::shared_ptr<const opencl::Library> make_stub_library(StubConfig config) {
  stub::state() = stub::State{.config = std::move(config)};
  return std::make_shared<stub::StubLibrary>();
}

StubReport stub_report() {
  StubReport report = stub::state().report;
  for (const auto& [handle, object] : stub::state().live) ++report.live[object->kind];
  return report;
}

}  // namespace stoker::testing
