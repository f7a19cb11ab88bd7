#include "backends/backend.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/opencl/opencl_backend.h"
#include "base/error.h"

namespace stoker {

std::vector<std::size_t> scalar_outputs(const Plan& plan) {
  std::vector<std::size_t> list;
  for (std::size_t i = 0; i < plan.graph.outputs.size(); ++i) {
    const Spec& spec = plan.graph.spec(plan.graph.outputs[i].value);
    if (spec.dtype == DType::f32 && spec.shape.rank() == 0) list.push_back(i);
  }
  return list;
}

std::vector<DeviceInfo> list_devices() { return {make_cpu_backend({})->describe()}; }

std::unique_ptr<Backend> make_backend(std::string_view device, const BackendOptions& options) {
  if (device == "cpu" || device == "auto") return make_cpu_backend(options);
  if (device == "opencl" || device.starts_with("opencl:")) return make_opencl_backend(device, options);
  std::string known;
  for (const DeviceInfo& info : list_devices()) known += (known.empty() ? "" : ", ") + info.id;
  fail(Code::bad_argument, "no device '", device, "' on this machine or in this build; there are: auto, ", known);
}

}  // namespace stoker
