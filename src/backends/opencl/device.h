// Device: what the engine asks of an OpenCL device before it plans for it. Filled once by queries; plain data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::opencl {

// Whose kernels' seeds fit. `cpu` is any OpenCL device that is really the CPU; `other` an unknown GPU.
enum class Family : std::uint8_t { cpu, adreno, mali, powervr, other };
[[nodiscard]] const char* to_string(Family family);
// From CL_DEVICE_NAME and CL_DEVICE_VENDOR; `is_cpu`: CL_DEVICE_TYPE says so.
[[nodiscard]] std::optional<Family> family_of(std::string_view name);  // the inverse of to_string
[[nodiscard]] Family classify(std::string_view name, std::string_view vendor, bool is_cpu);
// Is `extension` one of the words of `list`?
[[nodiscard]] bool has_extension(std::string_view list, std::string_view extension);

// What a device does wrong or badly; the table of quirks.cpp says which device, and on what evidence.
struct Quirks {
  bool no_images = false;           // image views are broken or slower than buffers
  bool no_command_buffers = false;  // cl_khr_command_buffer is broken
  bool no_recordable_queues = false;
  bool no_binary_cache = false;       // clCreateProgramWithBinary crashes or gives wrong kernels
  bool no_group_limits = false;       // CL_KERNEL_WORK_GROUP_SIZE is less than what a kernel runs with
  bool short_loops = false;           // long loops are broken off: a CPU that gets the small work-items of GPUs
  int launches_a_flush = 0;           // 0: leave it to the driver until the step's end
  double submission_seconds = 0.0;    // 0: no cap on a submission's estimated time
  std::vector<std::string> families;  // kernel families that only the plain kernel computes rightly
};

struct Device {
  std::string id;        // "opencl:0"
  std::string name;      // CL_DEVICE_NAME
  std::string vendor;    // CL_DEVICE_VENDOR
  std::string version;   // CL_DEVICE_VERSION
  std::string driver;    // CL_DRIVER_VERSION
  std::string platform;  // CL_PLATFORM_NAME and CL_PLATFORM_VERSION
  std::string extensions;
  Family family = Family::other;
  bool type_is_cpu = false;  // CL_DEVICE_TYPE, whatever STOKER_OPENCL_FAMILY takes it for
  int compute_units = 1;
  int native_width = 4;  // floats of a native vector register; 4 on phones' GPUs
  std::size_t max_group = 1;
  std::array<std::size_t, 3> max_item_sizes{1, 1, 1};
  std::int64_t local_bytes = 0;
  bool local_is_real = false;  // not plain memory under another name
  std::int64_t global_bytes = 0;
  std::int64_t largest_buffer = 0;    // CL_DEVICE_MAX_MEM_ALLOC_SIZE
  std::int64_t base_alignment = 128;  // bytes; where a sub-buffer may begin
  std::int64_t image_texels = 0;      // of an image1d_buffer; 0: no images
  bool fp16 = false;
  bool command_buffers = false;            // cl_khr_command_buffer, of a version that we know
  bool reentrant_command_buffers = false;  // a recording may be enqueued while it is pending
  bool recordable_queues = false;          // cl_qcom_recordable_queues
  Quirks quirks;

  [[nodiscard]] bool is_cpu() const { return family == Family::cpu; }
  // Identifies device and driver in caches, tuning tables and reports of the self-test.
  [[nodiscard]] std::string key() const;
};

}  // namespace stoker::opencl
