#include "backends/opencl/devices.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "backends/opencl/errors.h"
#include "backends/opencl/quirks.h"
#include "backends/opencl/tuner.h"
#include "base/error.h"

namespace stoker::opencl {
namespace {

void check(cl_int error, std::string_view what) {
  require(error == CL_SUCCESS, Code::device, what, ": ", error_name(error));
}

// A text that a query gives in two calls: its size, itself.
template <typename Query>
std::string text_of(const Query& query) {
  std::size_t size = 0;
  query(0, nullptr, &size);
  std::string text(size, '\0');
  if (size > 0) query(size, text.data(), nullptr);
  if (const std::size_t end = text.find('\0'); end != std::string::npos) text.resize(end);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string platform_text(const Functions& cl, cl_platform_id platform, cl_platform_info what) {
  return text_of([&](std::size_t size, void* value, std::size_t* needed) {
    check(cl.clGetPlatformInfo(platform, what, size, value, needed), "clGetPlatformInfo");
  });
}

// Queries of one device.
class Queries {
 public:
  Queries(const Functions& cl, cl_device_id id) : cl_(cl), id_(id) {}

  [[nodiscard]] std::string text(cl_device_info what) const {
    return text_of([&](std::size_t size, void* value, std::size_t* needed) {
      check(cl_.clGetDeviceInfo(id_, what, size, value, needed), str("clGetDeviceInfo ", what));
    });
  }
  template <typename T>
  [[nodiscard]] T value(cl_device_info what) const {
    T value{};
    check(cl_.clGetDeviceInfo(id_, what, sizeof(T), &value, nullptr), str("clGetDeviceInfo ", what));
    return value;
  }
  // Of a query that a device may not know.
  template <typename T>
  [[nodiscard]] T value_or(cl_device_info what, T otherwise) const {
    T value{};
    return cl_.clGetDeviceInfo(id_, what, sizeof(T), &value, nullptr) == CL_SUCCESS ? value : otherwise;
  }
  // Likewise, of any length.
  template <typename T>
  [[nodiscard]] std::vector<T> list(cl_device_info what) const {
    std::size_t size = 0;
    if (cl_.clGetDeviceInfo(id_, what, 0, nullptr, &size) != CL_SUCCESS) return {};
    std::vector<T> rows(size / sizeof(T));
    if (cl_.clGetDeviceInfo(id_, what, rows.size() * sizeof(T), rows.data(), nullptr) != CL_SUCCESS) return {};
    return rows;
  }

 private:
  const Functions& cl_;
  cl_device_id id_;
};

std::int64_t to_int64(std::uint64_t value) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(value, std::numeric_limits<std::int64_t>::max()));
}

void fill_limits(Device& device, const Queries& ask) {
  device.compute_units = std::max(1, static_cast<int>(ask.value<cl_uint>(CL_DEVICE_MAX_COMPUTE_UNITS)));
  device.max_group = std::max<std::size_t>(1, ask.value<std::size_t>(CL_DEVICE_MAX_WORK_GROUP_SIZE));
  // A device may have more than three dimensions; then the query for three fails.
  device.max_item_sizes = ask.value_or(
      CL_DEVICE_MAX_WORK_ITEM_SIZES, std::array<std::size_t, 3>{device.max_group, device.max_group, device.max_group});
  device.local_bytes = to_int64(ask.value<cl_ulong>(CL_DEVICE_LOCAL_MEM_SIZE));
  device.local_is_real = ask.value<cl_device_local_mem_type>(CL_DEVICE_LOCAL_MEM_TYPE) == CL_LOCAL;
  device.global_bytes = to_int64(ask.value<cl_ulong>(CL_DEVICE_GLOBAL_MEM_SIZE));
  device.largest_buffer = to_int64(ask.value<cl_ulong>(CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  // In bits. At least 64 bytes: a float16 must be aligned at the beginning of each tensor.
  device.base_alignment = std::max<std::int64_t>(64, ask.value<cl_uint>(CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8);
  if (ask.value<cl_bool>(CL_DEVICE_IMAGE_SUPPORT) == CL_TRUE)
    device.image_texels = to_int64(ask.value_or<std::size_t>(CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, 0));
  const int width = static_cast<int>(ask.value_or<cl_uint>(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, 4));
  // GPUs often say 1, being scalar within a work-item; their loads are of four words all the same.
  device.native_width = device.is_cpu() && width > 0 ? std::min(width, 16) : 4;
}

// The version of an extension as the device reports it; 0 where it does not.
cl_version extension_version(const Queries& ask, std::string_view extension) {
  for (const cl_name_version& row : ask.list<cl_name_version>(CL_DEVICE_EXTENSIONS_WITH_VERSION))
    if (extension == row.name) return row.version;
  return 0;
}

// What we call of cl_khr_command_buffer is the same from the first provisional version to 1.0 (later provisional ones
// changed the recording of copies only). A device may ask for queues of a kind that ours are not.
void fill_command_buffers(Device& device, const Queries& ask) {
  const cl_version version = extension_version(ask, "cl_khr_command_buffer");
  if (version < CL_MAKE_VERSION(0, 9, 0) || version >= CL_MAKE_VERSION(2, 0, 0)) return;
  constexpr cl_command_queue_properties kUnknown = ~cl_command_queue_properties{0};
  device.command_buffers = ask.value_or(CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR, kUnknown) == 0;
  const auto abilities =
      ask.value_or<cl_device_command_buffer_capabilities_khr>(CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, 0);
  device.reentrant_command_buffers = (abilities & CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR) != 0;
}

// STOKER_OPENCL_FAMILY, for tests and contributors: takes every device for one of that family, so that kernels with the
// seeds of a phone's GPU are executed, and checked, where there is none.
Family family_to_use(Family found) {
  const char* name = std::getenv("STOKER_OPENCL_FAMILY");
  if (name == nullptr || *name == '\0') return found;
  const std::optional<Family> given = family_of(name);
  require(given.has_value(), Code::bad_argument, "STOKER_OPENCL_FAMILY is '", name,
          "'; expected cpu, adreno, mali, powervr or other");
  return *given;
}

Device query_device(const Functions& cl, cl_device_id id, const std::string& platform) {
  const Queries ask(cl, id);
  Device device;
  device.name = ask.text(CL_DEVICE_NAME);
  device.vendor = ask.text(CL_DEVICE_VENDOR);
  device.version = ask.text(CL_DEVICE_VERSION);
  device.driver = ask.text(CL_DRIVER_VERSION);
  device.platform = platform;
  device.extensions = ask.text(CL_DEVICE_EXTENSIONS);
  require(ask.value<cl_bool>(CL_DEVICE_AVAILABLE) == CL_TRUE, Code::device, device.name, " is not available");
  require(ask.value<cl_bool>(CL_DEVICE_COMPILER_AVAILABLE) == CL_TRUE, Code::device, device.name, " has no compiler");
  require(device.version >= "OpenCL 1.2", Code::device, device.name, " is ", device.version, "; 1.2 is needed");
  device.type_is_cpu = (ask.value<cl_device_type>(CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  device.family = family_to_use(classify(device.name, device.vendor, device.type_is_cpu));
  fill_limits(device, ask);
  device.fp16 = has_extension(device.extensions, "cl_khr_fp16");
  if (has_extension(device.extensions, "cl_khr_command_buffer")) fill_command_buffers(device, ask);
  device.recordable_queues = has_extension(device.extensions, "cl_qcom_recordable_queues");
  device.quirks = quirks_of(device);
  if (device.quirks.no_images) device.image_texels = 0;
  if (device.quirks.short_loops) {
    device.family = Family::other;
    device.native_width = 4;
  }
  return device;
}

void add_devices(const Functions& cl, cl_platform_id platform, DeviceList& list) {
  const std::string name =
      str(platform_text(cl, platform, CL_PLATFORM_NAME), " ", platform_text(cl, platform, CL_PLATFORM_VERSION));
  cl_uint count = 0;
  constexpr cl_device_type kTypes = CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CPU;
  const cl_int error = cl.clGetDeviceIDs(platform, kTypes, 0, nullptr, &count);
  if (error == CL_DEVICE_NOT_FOUND || (error == CL_SUCCESS && count == 0)) {
    list.notes.push_back(str(name, ": no devices"));
    return;
  }
  check(error, "clGetDeviceIDs");
  std::vector<cl_device_id> ids(count);
  check(cl.clGetDeviceIDs(platform, kTypes, count, ids.data(), nullptr), "clGetDeviceIDs");
  for (cl_device_id id : ids) {
    try {
      list.devices.push_back({id, query_device(cl, id, name)});
    } catch (const Error& failure) {
      list.notes.push_back(str("a device of ", name, " is left out: ", failure.what()));
    }
  }
}

std::string listing(const DeviceList& list) {
  std::string text;
  for (const OpenedDevice& device : list.devices)
    text += str(text.empty() ? "" : ", ", device.info.id, " (", device.info.name, ")");
  return text.empty() ? "none" : text;
}

template <typename Parts>
std::string joined(const Parts& parts) {
  std::string text;
  for (const std::string& part : parts) text += str("\n  ", part);
  return text;
}

// As replay.cpp chooses.
const char* replay_of(const Device& device) {
  if (device.command_buffers && !device.quirks.no_command_buffers) return "replays command buffers";
  if (device.recordable_queues && !device.quirks.no_recordable_queues) return "replays recordable queues";
  return "no replay: launch by launch";
}

// Whether a kernel reads through image views: where there are none, every one reads buffers.
const char* images_of(const Device& device) {
  if (device.image_texels == 0) return "no images";
  Tuning tuning(device);
  load_tuning(device, tuning);
  const auto reads = [](const Params& params) {
    return std::ranges::any_of(params, [](const auto& row) { return row.first == "IMAGE" && row.second != 0; });
  };
  const bool tuned = std::ranges::any_of(tuning.tuned(), [&](const auto& row) { return reads(row.second); });
  const bool seeded = std::ranges::any_of(
      all_seeds(), [&](const Seed& seed) { return find_seed(seed.kernel, device) == &seed && reads(seed.params); });
  return tuned || seeded ? "images" : "images unused";
}

}  // namespace

DeviceList find_devices(const Library& library) {
  const Functions& cl = library.functions();
  DeviceList list;
  cl_uint count = 0;
  const cl_int error = cl.clGetPlatformIDs(0, nullptr, &count);
  std::vector<cl_platform_id> platforms(error == CL_SUCCESS ? count : 0);
  if (platforms.empty() || cl.clGetPlatformIDs(count, platforms.data(), nullptr) != CL_SUCCESS) {
    list.notes.push_back(str("the library has no platforms", error != CL_SUCCESS ? ": " + error_name(error) : ""));
    return list;
  }
  for (cl_platform_id platform : platforms) {
    try {
      add_devices(cl, platform, list);
    } catch (const Error& failure) {
      list.notes.push_back(str("a platform is left out: ", failure.what()));
    }
  }
  std::stable_partition(list.devices.begin(), list.devices.end(), [](const OpenedDevice& device) {
    return !device.info.is_cpu() && !device.info.quirks.short_loops;
  });
  for (std::size_t i = 0; i < list.devices.size(); ++i) list.devices[i].info.id = str("opencl:", i);
  return list;
}

DeviceInfo describe(const Device& device) {
  return {.id = device.id,
          .name = device.name,
          .details = str(device.version, ", driver ", device.driver, ", ", to_string(device.family), ", ",
                         device.compute_units, " compute units, ", device.global_bytes >> 20, " MiB, ",
                         replay_of(device), ", ", images_of(device)),
          .is_cpu = device.type_is_cpu,
          .identity = device.key()};
}

std::vector<DeviceInfo> list_opencl_devices() {
  const LoadReport& loaded = load_library();
  if (loaded.library == nullptr) return {};
  std::vector<DeviceInfo> all;
  for (const OpenedDevice& device : find_devices(*loaded.library).devices) all.push_back(describe(device.info));
  return all;
}

OpenedDevice open_device(const LoadReport& loaded, std::string_view id) {
  require(loaded.library != nullptr, Code::device, "no OpenCL library was found; tried:", joined(loaded.tried));
  const DeviceList list = find_devices(*loaded.library);
  require(!list.devices.empty(), Code::device, "OpenCL (", loaded.path,
          ") has no device that can be used:", joined(list.notes));
  if (id == "opencl") return list.devices.front();
  constexpr std::string_view kPrefix = "opencl:";
  require(id.starts_with(kPrefix), Code::bad_argument, "'", id, "' is no OpenCL device: opencl or opencl:N is");
  const std::string_view digits = id.substr(kPrefix.size());
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  require(error == std::errc() && end == digits.data() + digits.size() && index < list.devices.size(),
          Code::bad_argument, "no device '", id, "'; OpenCL's are: ", listing(list));
  return list.devices[index];
}

}  // namespace stoker::opencl
