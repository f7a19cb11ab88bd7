// The OpenCL backend: one device, its queue, programs and tuning. See docs/opencl.md.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "backends/backend.h"
#include "backends/opencl/device.h"
#include "backends/opencl/tuning.h"

namespace stoker {

namespace opencl {

// What the self-test and the tuner see of an OpenCL backend besides.
class ClBackend : public Backend {
 public:
  [[nodiscard]] virtual const Device& device() const = 0;
  // What is changed here counts for plans made from then on.
  [[nodiscard]] virtual Tuning& tuning() = 0;
};

// With the seeds alone: no self-test is run, nothing that was stored is used.
[[nodiscard]] std::unique_ptr<ClBackend> make_seeded_backend(std::string_view device, const BackendOptions& options);

}  // namespace opencl

// `device` is "opencl" (the first) or "opencl:N"; an Error says which devices there are, or which libraries were tried.
[[nodiscard]] std::unique_ptr<Backend> make_opencl_backend(std::string_view device, const BackendOptions& options);

}  // namespace stoker
