// Tuned parameters as JSON in the cache folder, by device and driver.
#include <nlohmann/json.hpp>
#include <span>

#include "backends/opencl/cache.h"
#include "backends/opencl/tuner.h"

namespace stoker::opencl {
namespace {

using Json = nlohmann::json;

constexpr int kFormat = 1;

}  // namespace

void load_tuning(const Device& device, Tuning& tuning) {
  const auto bytes = Cache("tuning").load(device.key());
  if (!bytes) return;
  const auto* text = reinterpret_cast<const char*>(bytes->data());
  const Json json = Json::parse(text, text + bytes->size(), nullptr, false);
  try {
    if (!json.is_object() || json.at("format").get<int>() != kFormat) return;
    for (const Json& entry : json.at("entries")) {
      const auto kernel = entry.at("kernel").get<std::string>();
      auto params = entry.at("params").get<Params>();
      const Seed* seed = find_seed(kernel, device);
      if (seed == nullptr || !has_names_of(params, seed->params)) continue;  // of another version
      tuning.set(kernel, entry.at("problem").get<std::string>(), std::move(params));
    }
  } catch (const Json::exception&) {
    return;  // damaged: the rest is left at the seeds
  }
}

std::string store_tuning(const Device& device, const Tuning& tuning) {
  Json entries = Json::array();
  for (const auto& [key, params] : tuning.tuned())
    entries.push_back({{"kernel", key.first}, {"problem", key.second}, {"params", params}});
  const std::string text =
      Json{{"format", kFormat}, {"device", device.name}, {"driver", device.driver}, {"entries", entries}}.dump(1);
  return Cache("tuning").store(device.key(), std::as_bytes(std::span(text)));
}

}  // namespace stoker::opencl
