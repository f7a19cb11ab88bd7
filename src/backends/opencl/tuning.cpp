// Tuning: looks up what was tuned, else the seed; quarantine goes before both.
#include "backends/opencl/tuning.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"

namespace stoker::opencl {

int param(const Params& params, std::string_view name) {
  const auto row = std::ranges::find(params, name, &Params::value_type::first);
  DCHECK(row != params.end());
  return row->second;
}

std::string to_string(const Params& params) {
  std::string text;
  for (const auto& [name, value] : params) text += str(text.empty() ? "" : " ", name, "=", value);
  return text;
}

bool has_names_of(const Params& params, const Params& other) {
  return std::ranges::equal(params, other, {}, &Params::value_type::first, &Params::value_type::first);
}

const Seed* find_seed(std::string_view kernel, const Device& device) {
  const Seed* best = nullptr;
  for (const Seed& seed : all_seeds()) {
    if (seed.kernel != kernel || seed.width > device.native_width) continue;
    const bool exact = seed.device == device.family;
    if (!exact && (seed.device != Family::other || device.is_cpu())) continue;
    const bool better = best == nullptr || (exact && best->device != device.family) ||
                        (exact == (best->device == device.family) && seed.width > best->width);
    if (better) best = &seed;
  }
  return best;
}

const Params& Tuning::params(std::string_view kernel, std::string_view problem) const {
  static const Params plain;
  if (asked_ != nullptr) asked_->emplace(kernel, problem);
  if (is_plain(kernel)) return plain;
  for (const std::string_view key : {problem, std::string_view()}) {
    const auto tuned = tuned_.find(std::pair(std::string(kernel), std::string(key)));
    if (tuned != tuned_.end()) return tuned->second;
  }
  const Seed* seed = find_seed(kernel, *device_);
  return seed == nullptr ? plain : seed->params;
}

void Tuning::set(std::string_view kernel, std::string_view problem, Params params) {
  tuned_.insert_or_assign(std::pair(std::string(kernel), std::string(problem)), std::move(params));
}

void Tuning::reset(std::string_view kernel, std::string_view problem) { tuned_.erase(TuningKey(kernel, problem)); }

std::string Tuning::key() const {
  if (tuned_.empty() && quarantine_.empty()) return "seeds";
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    hash = (hash ^ 0xffU) * 0x100000001b3U;
  };
  for (const auto& [name, params] : tuned_) {
    add(name.first);
    add(name.second);
    add(to_string(params));
  }
  for (const std::string& kernel : quarantine_) add(kernel);
  return str("tuned-", std::hex, hash);
}

}  // namespace stoker::opencl
