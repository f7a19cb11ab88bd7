// A library like those of Google's phones: no OpenCL function is exported; they come from loadOpenCLPointer, and only
// after enableOpenCL.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

namespace {

bool enabled = false;
cl_int finish(cl_command_queue /*queue*/) { return -1; }

}  // namespace

extern "C" {
__attribute__((visibility("default"))) void enableOpenCL() { enabled = true; }
__attribute__((visibility("default"))) void* loadOpenCLPointer(const char* /*name*/) {
  return enabled ? reinterpret_cast<void*>(&finish) : nullptr;
}
}
