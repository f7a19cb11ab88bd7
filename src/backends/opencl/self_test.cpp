#include "backends/opencl/self_test.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "backends/opencl/cache.h"
#include "backends/opencl/program.h"
#include "base/error.h"

namespace stoker::opencl {
namespace {

using Json = nlohmann::json;

constexpr int kFormat = 1;

// The families of kernels with parameters that a family of cases stands for: conv2d has conv2d_weight besides.
std::vector<std::string> tuned_families(const std::string& family, const Device& device) {
  std::set<std::string> names;
  for (const Seed& seed : all_seeds()) {
    const std::string_view name = seed.kernel;
    const bool belongs = name == family || name.starts_with(family + "_");
    if (belongs && find_seed(name, device) != nullptr) names.emplace(name);
  }
  return {names.begin(), names.end()};
}

// Tested kernels are tested again when their text changes.
std::string key_of(const Device& device) {
  return str(device.key(), "\n", embedded_digest());
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += str(text.empty() ? "" : ", ", name);
  return text;
}

}  // namespace

SelfTest run_self_test(ClBackend& backend, const CheckOptions& options) {
  SelfTest test{.results = run_checks(backend, options)};
  std::set<std::string> failed;
  for (const CheckResult& result : test.results) {
    if (!result.passed) failed.insert(result.family);
  }
  for (const std::string& family : failed) {
    const std::vector<std::string> plain = tuned_families(family, backend.device());
    for (const std::string& name : plain) backend.tuning().quarantine(name);
    CheckOptions again{.brief = options.brief, .family = family};
    const bool right = !plain.empty() && std::ranges::all_of(run_checks(backend, again), &CheckResult::passed);
    if (right) {
      test.quarantine.insert(test.quarantine.end(), plain.begin(), plain.end());
    } else {
      test.broken.push_back(family);
    }
  }
  return test;
}

std::optional<SelfTest> load_self_test(const Device& device) {
  const auto bytes = Cache("self-test").load(key_of(device));
  if (!bytes) return std::nullopt;
  const Json json = Json::parse(reinterpret_cast<const char*>(bytes->data()),
                                reinterpret_cast<const char*>(bytes->data()) + bytes->size(), nullptr, false);
  try {
    if (!json.is_object() || json.at("format").get<int>() != kFormat) return std::nullopt;
    return SelfTest{.results = {},
                    .quarantine = json.at("quarantine").get<std::vector<std::string>>(),
                    .broken = json.at("broken").get<std::vector<std::string>>()};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::string store_self_test(const Device& device, const SelfTest& test) {
  const std::string text =
      Json{{"format", kFormat}, {"device", device.name}, {"quarantine", test.quarantine}, {"broken", test.broken}}.dump(
          1);
  return Cache("self-test").store(key_of(device), std::as_bytes(std::span(text)));
}

std::vector<std::string> describe(const SelfTest& test, const Device& device) {
  std::vector<std::string> lines;
  if (!test.quarantine.empty()) {
    lines.push_back(str("note: ", device.id, ": the self-test found wrong results of the kernels ",
                        joined(test.quarantine), "; plain ones take their place (stoker check --device ", device.id,
                        ")"));
  }
  if (!test.broken.empty()) {
    lines.push_back(str("warning: ", device.id, ": the self-test found wrong results of ", joined(test.broken),
                        "; do not trust what this device computes (stoker check --device ", device.id, ")"));
  }
  return lines;
}

void apply_self_test(ClBackend& backend, bool run, const std::function<std::unique_ptr<ClBackend>()>& fresh,
                     const std::function<void(const std::string&)>& note) {
  const Device& device = backend.device();
  std::optional<SelfTest> test = load_self_test(device);
  if (!test && run) {
    test = run_self_test(*fresh(), {.brief = true});
    if (const std::string why = store_self_test(device, *test); !why.empty() && note)
      note(str("note: the self-test of ", device.id, " is not remembered: ", why));
  }
  if (!test) return;
  for (const std::string& family : test->quarantine) backend.tuning().quarantine(family);
  if (!note) return;
  for (const std::string& line : describe(*test, device)) note(line);
}

}  // namespace stoker::opencl
