// Library: the OpenCL library, loaded at run time (a phone has none to link against), as a table of functions. The only
// file that includes OpenCL's headers: the others include this one.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
// clCreateCommandQueue: what replaced it is missing from OpenCL 1.2, which is enough for us.
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/opencl/qcom.h"

namespace stoker::opencl {

// Every entry point that we use, one member each, under OpenCL's own name (functions.inc lists them); those of
// extensions may be null. Tests put a fault-injecting table in between.
struct Functions {
#define CORE(name) decltype(&::name) name = nullptr;
#define EXTENSION(name, type) type name = nullptr;
#include "backends/opencl/functions.inc"
#undef CORE
#undef EXTENSION
};

class Library {
 public:
  virtual ~Library() = default;
  // Without extensions: their functions differ from platform to platform.
  [[nodiscard]] virtual const Functions& functions() const = 0;
  [[nodiscard]] virtual Functions functions_of(cl_platform_id platform) const;
};

// What was tried, for `stoker devices` and errors.
struct LoadReport {
  std::shared_ptr<const Library> library;  // null: none found
  std::string path;                        // of the one that was loaded
  std::vector<std::string> tried;          // "libOpenCL.so: cannot open shared object file"
};

// In the order that phones need (library.cpp); STOKER_OPENCL_LIBRARY, if set, is the only one tried. Loaded once a
// process.
[[nodiscard]] const LoadReport& load_library();

// The names that load_library() tries, and the trying itself. The first that opens and has every function wins.
[[nodiscard]] std::vector<std::string> library_names();
[[nodiscard]] LoadReport try_libraries(std::span<const std::string> names);

// What load_library() gives from now on; null ends that. For tests alone: a stub, or a layer that injects faults.
void set_library_for_tests(std::shared_ptr<const Library> library);

}  // namespace stoker::opencl
