// Timeline: the commands given to a device while a recorder is on. It keeps their events until they are done, and puts
// the device's times on the host's clock. OpenCL 1.2 has no call that relates the clocks; but a command's QUEUED is
// stamped inside our call that enqueues it, so each command bounds the offset between them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/opencl/api.h"
#include "base/recorder.h"

namespace stoker::opencl {

// When a command was queued, submitted, started and ended, by the device's clock. Zeros: the driver does not say.
using DeviceTimes = std::array<std::uint64_t, 4>;

// A command as the host saw it, and its times. Moments are nanoseconds of the steady clock.
struct Command {
  Activity activity = Activity::kernel;
  int what = 0;
  LaunchNumber number;
  std::int64_t bytes = 0;
  bool blocking = false;
  std::int64_t called = 0;    // the call that enqueued it began
  std::int64_t returned = 0;  // and ended
  DeviceTimes times{};
};

// Tells the recorder of each command: the call on the host (a blocking one is a wait, and a copy only while the copy
// itself runs), its time in the queue and on the device. Times that cannot be are told as untimed. `gathered`: when all
// of them were known to be done. In the order of the calls.
void record_commands(Recorder& recorder, std::span<const Command> commands, std::int64_t gathered);

class Timeline final : public Recorder::Source {
 public:
  Timeline(Api& api, Recorder& recorder) : api_(api), recorder_(recorder) { recorder.attach(*this); }
  ~Timeline() override { recorder_.detach(*this); }
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  void keep(Handle<cl_event> event, const Command& command) {
    events_.push_back(std::move(event));
    commands_.push_back(command);
  }
  void gather() override;

 private:
  Api& api_;
  Recorder& recorder_;
  std::vector<Handle<cl_event>> events_;
  std::vector<Command> commands_;  // of events_
};

}  // namespace stoker::opencl
