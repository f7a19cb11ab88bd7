// Library: the OpenCL library, loaded at run time (a phone has none to link against), as a table of functions.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <memory>
#include <string>
#include <vector>

namespace stoker::opencl {

// Every entry point that we use, one member each, under OpenCL's own name (functions.inc lists them); those of later
// versions and extensions may be null. Tests put a fault-injecting table in between.
struct Functions;

class Library {
 public:
  virtual ~Library() = default;
  [[nodiscard]] virtual const Functions& functions() const = 0;
};

// What was tried, for `stoker devices` and errors.
struct LoadReport {
  std::shared_ptr<const Library> library;  // null: none found
  std::string path;                        // of the one that was loaded
  std::vector<std::string> tried;          // "libOpenCL.so: cannot open shared object file"
};

// In MOBILE_GPU's order; STOKER_OPENCL_LIBRARY, if set, is the only one tried. Loaded once a process.
[[nodiscard]] const LoadReport& load_library();

}  // namespace stoker::opencl
