// Programs: builds each specialised kernel file once, in memory and in the cache on disk (saved after kernel creation:
// Mali compiles lazily; damaged entries are ignored).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/api.h"
#include "backends/opencl/cache.h"
#include "backends/opencl/device.h"
#include "backends/opencl/kernel.h"

namespace stoker::opencl {

// The text of kernels/FILE.cl, embedded at build; an Error lists the files there are.
[[nodiscard]] std::string_view embedded_source(std::string_view file);
[[nodiscard]] std::vector<std::string_view> embedded_files();
[[nodiscard]] std::string embedded_digest();  // tells one version of the kernels from another
// What clBuildProgram gets: defines, header, file.
[[nodiscard]] std::string full_source(const Program& program);
// Everywhere the same. No -cl-finite-math-only: it breaks the checks for NaN.
inline constexpr const char* kBuildOptions = "-cl-std=CL1.2 -cl-mad-enable -cl-denorms-are-zero";

// Whether the kernels see their work-group: its size may not be changed without changing what they do.
[[nodiscard]] bool sees_group(const Program& program);

class Programs {
 public:
  // `queue`, if given, is finished before a failed build is tried once more.
  Programs(Api& api, cl_context context, cl_device_id id, const Device& device, cl_command_queue queue = nullptr);

  ~Programs();
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  // Called before each build; what it throws ends that build.
  void set_interrupt(std::function<void()> interrupt) { interrupt_ = std::move(interrupt); }

  // A new kernel object: each launch has its own, so that arguments are set once. Builds the program if need be.
  [[nodiscard]] Handle<cl_kernel> kernel(const Program& program, const std::string& name);
  // Saves to disk what was built since; failures (full disk, read-only folder) only mean building again next time.
  void save();
  // Why the last save() failed, for people; empty if it did not.
  [[nodiscard]] const std::string& cache_note() const { return cache_note_; }

 private:
  struct Entry {
    Handle<cl_program> program;
    std::string source;
    bool from_cache = false;
    bool saved = false;
  };
  [[nodiscard]] Entry& entry(const Program& program);
  [[nodiscard]] Handle<cl_program> load(const std::string& source);
  [[nodiscard]] Handle<cl_program> build(const Program& program, const std::string& source);
  [[nodiscard]] std::string cache_key(const std::string& source) const;

  Api& api_;
  cl_context context_;
  cl_device_id id_;
  const Device& device_;
  cl_command_queue queue_;
  std::function<void()> interrupt_;
  Cache cache_;
  std::map<Program, Entry> entries_;
  std::string cache_note_;
};

}  // namespace stoker::opencl
