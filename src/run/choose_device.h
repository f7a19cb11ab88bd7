// What `auto` stands for: the device on which a few real training steps were fastest, on scratch state and within a
// budget of time. The choice is remembered in the cache folder for the model, the batch and the devices of the machine.
#pragma once

#include <cstdint>
#include <string>

#include "run/session.h"

namespace stoker {

inline constexpr const char* kAutoDevice = "auto";

struct DeviceChoice {
  std::string device;  // for SessionOptions::device
  std::string line;    // for people: what was chosen, and why
};

// `budget`: seconds in all, compiling included; 0: nothing is measured, and what is not remembered is the CPU's. A
// device that is not ready in time is not chosen. `options.device` is not looked at.
[[nodiscard]] DeviceChoice choose_device(const nn::Model& model, const SessionOptions& options, std::int64_t batch,
                                         double budget);

}  // namespace stoker
