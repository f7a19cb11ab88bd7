// ModelProfile: all that `stoker profile` tells of a model's training steps on a device.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "backends/backend.h"
#include "nn/model.h"
#include "profile/memory_profile.h"
#include "profile/profile.h"
#include "profile/report.h"
#include "stoker/stoker.hpp"

namespace stoker {

// Where and how to run as bench() takes it, but 0 steps are about a second of them, and nothing is replayed: kernels
// are launched one by one, so that each can be timed.
struct ProfileOptions : BenchOptions {
  bool ceilings = true;                              // measure the device's, unless they are known
  std::function<void(const std::string&)> on_stage;  // what is going on now, for people: "measuring ceilings"
  std::function<bool(int done, int total)> on_step;  // false: that is enough
  std::function<void()> interrupt;                   // what it throws ends the preparation
};

struct ModelProfile {
  std::string model;
  DeviceInfo device;
  std::int64_t batch = 0;
  std::int64_t parameters = 0;
  std::int64_t state_bytes = 0;
  std::int64_t input_bytes = 0;  // of one batch
  Profile profile;
  MemoryProfile memory;
  std::optional<Ceilings> ceilings;  // none: the device has none, or nobody asked
};

// Training steps on random data, submitted ahead as in training, without replay. The recorder keeps what was recorded,
// for a trace.
[[nodiscard]] ModelProfile profile_model(const nn::Model& model, const ProfileOptions& options, Recorder& recorder);

// The pages of `stoker profile`: breakdown, roofline, ops, kernels, memory, movement.
[[nodiscard]] Report to_report(const ModelProfile& profile);

}  // namespace stoker
