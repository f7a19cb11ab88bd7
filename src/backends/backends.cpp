#include "backends/backend.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/opencl/devices.h"
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

Ceilings Backend::measure_ceilings() {
  fail(Code::unsupported, "device ", describe().id, " has no micro-benchmarks to measure its ceilings");
}

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> list{make_cpu_backend({})->describe()};
  for (DeviceInfo& device : opencl::list_opencl_devices()) list.push_back(std::move(device));
  return list;
}

std::unique_ptr<Backend> make_backend(std::string_view device, const BackendOptions& options) {
  if (device == "cpu") return make_cpu_backend(options);
  if (device == "opencl" || device.starts_with("opencl:")) return make_opencl_backend(device, options);
  std::string known;
  for (const DeviceInfo& info : list_devices()) known += ", " + info.id;
  fail(Code::bad_argument, "no device '", device, "' on this machine or in this build; there are: auto", known);
}

}  // namespace stoker
