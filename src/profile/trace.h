// A profile as a trace in Chrome's JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open: tracks for host,
// queue and device, and a curve of how many commands are under way.
#pragma once

#include <string>

#include "profile/profile.h"

namespace stoker {

// What the recorder still holds of the profile's time. A queue holds many commands at once: its track shows the one at
// its head, from when it got there to its start; the time since submission is in its arguments.
[[nodiscard]] std::string to_trace(const Recorder& recorder, const Profile& profile, const std::string& title);

}  // namespace stoker
