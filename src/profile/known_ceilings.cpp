#include "profile/known_ceilings.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "backends/opencl/cache.h"
#include "backends/opencl/opencl_backend.h"
#include "base/error.h"

namespace stoker {
namespace {

using Json = nlohmann::json;

struct Field {
  const char* name;
  double Ceilings::*value;

  [[nodiscard]] bool is_time() const { return std::string_view(name).ends_with("seconds"); }
};

constexpr Field kFields[] = {
    {"flops", &Ceilings::flops},
    {"bandwidth", &Ceilings::bandwidth},
    {"to_device", &Ceilings::to_device},
    {"to_host", &Ceilings::to_host},
    {"map_seconds", &Ceilings::map_seconds},
    {"launch_seconds", &Ceilings::launch_seconds},
    {"sync_seconds", &Ceilings::sync_seconds},
    {"read_seconds", &Ceilings::read_seconds},
    {"write_seconds", &Ceilings::write_seconds},
};

// A home folder may be seen from several machines. x86 names its processors, Arm numbers them.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string text;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name") || line.starts_with("CPU part")) text += line + "\n";
  }
  return text;
}

// An OpenCL device's details hold what may change from one start to the next: PoCL's memory is what is free.
std::string key(const Backend& backend) {
  const DeviceInfo device = backend.describe();
  const auto* opencl = dynamic_cast<const opencl::ClBackend*>(&backend);
  return str("ceilings 1\n", device.name, "\n", opencl != nullptr ? opencl->device().key() : device.details, "\n",
             processor());
}

std::optional<Ceilings> load(const opencl::Cache& cache, const std::string& key) {
  const auto bytes = cache.load(key);
  if (!bytes) return std::nullopt;
  const auto* text = reinterpret_cast<const char*>(bytes->data());
  const Json json = Json::parse(text, text + bytes->size(), nullptr, false);
  Ceilings ceilings;
  for (const Field& field : kFields) {
    if (!json.is_object() || !json.contains(field.name) || !json[field.name].is_number()) return std::nullopt;
    ceilings.*field.value = json[field.name].get<double>();
    if (!std::isfinite(ceilings.*field.value) || ceilings.*field.value < 0) return std::nullopt;
  }
  if (ceilings.flops <= 0 || ceilings.bandwidth <= 0) return std::nullopt;
  return ceilings;
}

// A ceiling is a maximum: what was once reached can be reached.
Ceilings best_of(const Ceilings& a, const Ceilings& b) {
  Ceilings best;
  for (const Field& field : kFields) {
    best.*field.value =
        field.is_time() ? std::min(a.*field.value, b.*field.value) : std::max(a.*field.value, b.*field.value);
  }
  return best;
}

}  // namespace

Ceilings known_or_measured(Backend& backend, Measure measure) {
  const opencl::Cache cache("ceilings");
  const std::string name = key(backend);
  const std::optional<Ceilings> known = load(cache, name);
  if (known && measure == Measure::if_unknown) return *known;
  Ceilings ceilings = backend.measure_ceilings();
  if (known) ceilings = best_of(*known, ceilings);
  if (ceilings.flops > 0) {
    Json json;
    for (const Field& field : kFields) json[field.name] = ceilings.*field.value;
    const std::string text = json.dump(1);
    static_cast<void>(cache.store(name, std::as_bytes(std::span(text))));
  }
  return ceilings;
}

}  // namespace stoker
