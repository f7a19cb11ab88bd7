// Programs: builds each specialised kernel file once, in memory and in the cache on disk (docs/adr, MOBILE_GPU: save
// after kernel creation, temporary file and rename, damaged entries ignored).
#pragma once

#include <map>
#include <string>

#include "backends/opencl/api.h"
#include "backends/opencl/device.h"
#include "backends/opencl/kernel.h"

namespace stoker::opencl {

// The text of kernels/FILE.cl, embedded at build; an Error lists the files there are.
[[nodiscard]] std::string_view embedded_source(std::string_view file);
[[nodiscard]] std::vector<std::string_view> embedded_files();
// What clBuildProgram gets: header, defines, file.
[[nodiscard]] std::string full_source(const Program& program);

class Programs {
 public:
  Programs(Api& api, cl_context context, cl_device_id id, const Device& device);

  // A new kernel object: each launch has its own, so that arguments are set once. Builds the program if need be.
  [[nodiscard]] Handle<cl_kernel> kernel(const Program& program, const std::string& name);
  // Saves to disk what was built since; failures (full disk, read-only folder) only mean building again next time.
  void save();

 private:
  struct Entry {
    Handle<cl_program> program;
    std::string cache_key;
    bool saved = false;
  };
  Api& api_;
  cl_context context_;
  cl_device_id id_;
  const Device& device_;
  std::map<Program, Entry> entries_;
};

}  // namespace stoker::opencl
