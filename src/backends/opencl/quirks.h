// Quirks of devices and drivers: one table, each row with its evidence.
#pragma once

#include <span>
#include <string_view>

#include "backends/opencl/device.h"

namespace stoker::opencl {

struct QuirkRow {
  Family family;         // Family::other: of any
  const char* platform;  // words of Device::platform, "" for any; '*' stands for any text
  const char* name;      // words of Device::name, as above
  const char* driver;    // words of Device::driver, as above
  const char* what;      // in words, for people
  void (*apply)(Quirks& quirks);
  const char* evidence;  // where it was seen or is advised
};

[[nodiscard]] std::span<const QuirkRow> all_quirks();
// Every row that fits the device's family, platform, name and driver, in the table's order.
[[nodiscard]] Quirks quirks_of(const Device& device);
// Does `pattern` occur in `text`? Upper and lower case are the same.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view text);

}  // namespace stoker::opencl
