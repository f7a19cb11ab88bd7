// The model of step time, checked where it can be: predicted against measured on the devices of this machine.
#pragma once

#include <functional>
#include <string>

#include "profile/report.h"

namespace stoker {

// `progress` is told what is measured next. Takes some minutes.
[[nodiscard]] Section validation_section(const std::function<void(const std::string&)>& progress);

}  // namespace stoker
