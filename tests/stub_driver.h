// A stub OpenCL driver inside the test program: strict about the rules, and it executes nothing, so buffers hold what
// the host has put there. Commands are done only when somebody waits for them or has polled a while.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/opencl/library.h"

namespace stoker::testing {

struct StubDevice {
  std::string name = "QUALCOMM Adreno(TM) 640";
  std::string vendor = "QUALCOMM";
  std::string version = "OpenCL 2.0 Adreno(TM) 640";
  std::string extensions = "cl_khr_fp16";
  cl_device_type type = CL_DEVICE_TYPE_GPU;
  cl_version command_buffer_version = 0;  // of cl_khr_command_buffer, if `extensions` has it
  cl_command_queue_properties required_queue = 0;
  cl_device_info broken_query = 0;  // fails
};

struct StubConfig {
  std::vector<StubDevice> devices{StubDevice{}};
  int polls_until_done = 3;             // clGetEventInfo calls until a queue's next command is done
  long commands_until_lost = -1;        // commands from that one on fail on the device; -1: never
  bool recordable_by_property = false;  // a recordable queue comes from clCreateCommandQueueWithProperties only
};

// What has happened since the library was made.
struct StubReport {
  std::map<std::string, long> live;  // objects not released yet, by kind; empty if there is none
  std::vector<std::string> misuse;   // what broke OpenCL's rules
  std::vector<std::string> log;      // recording calls: "new recording", "record k", "end recording", "replay 2"
  long launches = 0;                 // kernels run, those of recordings included
};

// One at a time: the functions that it gives share one state.
[[nodiscard]] std::shared_ptr<const opencl::Library> make_stub_library(StubConfig config = {});
[[nodiscard]] StubReport stub_report();

}  // namespace stoker::testing
