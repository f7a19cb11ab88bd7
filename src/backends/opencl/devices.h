// The OpenCL devices of this machine, over all platforms: phones' GPUs first, CPUs last. What errs in a query is left
// out and mentioned.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "backends/opencl/device.h"
#include "backends/opencl/library.h"

namespace stoker::opencl {

struct OpenedDevice {
  cl_device_id id = nullptr;
  Device info;
};

struct DeviceList {
  std::vector<OpenedDevice> devices;  // the N-th is "opencl:N"
  std::vector<std::string> notes;     // platforms and devices that were left out, and why
};

[[nodiscard]] DeviceList find_devices(const Library& library);

// Those of load_library(), for `stoker devices`; none where there is no library.
[[nodiscard]] std::vector<DeviceInfo> list_opencl_devices();
[[nodiscard]] DeviceInfo describe(const Device& device);

// "opencl" is the first, "opencl:N" the N-th; an Error says what there is, or which libraries were tried.
[[nodiscard]] OpenedDevice open_device(const LoadReport& loaded, std::string_view id);

}  // namespace stoker::opencl
