// The devices that tests run on, by parameter: the CPU, and every OpenCL device that there is.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "backends/backend.h"

namespace stoker::testing {

[[nodiscard]] inline std::vector<std::string> device_ids() {
  std::vector<std::string> ids;
  for (const DeviceInfo& info : list_devices()) ids.push_back(info.id);
  return ids;
}

[[nodiscard]] inline std::vector<std::string> opencl_ids() {
  std::vector<std::string> ids = device_ids();
  std::erase(ids, "cpu");
  return ids;
}

// A test's name may hold letters and digits alone.
[[nodiscard]] inline std::string as_test_name(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return text;
}

}  // namespace stoker::testing
