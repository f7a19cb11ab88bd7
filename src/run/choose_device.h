// What `auto` stands for: the device on which a few real training steps were fastest, on scratch state and within a
// budget of time. The choice is remembered in the cache folder for the model, the batch and the devices of the machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "run/session.h"

namespace stoker {

inline constexpr const char* kAutoDevice = "auto";

struct DeviceChoice {
  std::string device;  // for SessionOptions::device
  std::string line;    // for people: what was chosen, and why
};

// What a choice is remembered by. It is measured anew for another model, batch or number of threads, another version of
// Stoker or of its kernels, and other devices or drivers.
[[nodiscard]] std::string choice_key(const nn::Model& model, std::int64_t batch, int threads,
                                     std::span<const DeviceInfo> devices);

// `budget`: seconds in all, compiling included; 0: nothing is measured, and what is not remembered is the CPU's. A
// device that is not ready in time is not chosen. `options.device` is not looked at.
[[nodiscard]] DeviceChoice choose_device(const nn::Model& model, const SessionOptions& options, std::int64_t batch,
                                         double budget);

}  // namespace stoker
