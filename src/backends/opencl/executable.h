// The OpenCL executable: a plan's launches with their arguments set once, recorded for each batch slot, and a ring on
// the device that collects the results.
#pragma once

#include <functional>
#include <memory>

#include "backends/backend.h"
#include "backends/opencl/api.h"
#include "backends/opencl/device.h"
#include "backends/opencl/kernel.h"
#include "backends/opencl/program.h"
#include "backends/opencl/tuning.h"

namespace stoker::opencl {

// What an executable borrows from its backend.
struct Runtime {
  Api& api;
  cl_device_id id;
  cl_context context;
  cl_command_queue queue;
  const Device& device;
  const Tuning& tuning;
  Programs& programs;
  bool replay = true;
  bool merge = true;
  Recorder* recorder = nullptr;     // is told of the launches
  std::function<void()> interrupt;  // called before each kernel of warm_up()
  std::int64_t piece_bytes = 0;     // Target::largest_buffer()
};

[[nodiscard]] std::unique_ptr<Executable> make_executable(const Runtime& runtime, const Plan& plan,
                                                          const Bindings& bindings);

}  // namespace stoker::opencl
