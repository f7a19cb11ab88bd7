// Counters: what a device's step has cost besides computing. Filled by the OpenCL layer, through which all calls go;
// tests hold the training step to them.
#pragma once

#include <cstdint>

namespace stoker {

struct Counters {
  // Bytes, host and device being two sides even where they share memory.
  std::int64_t written = 0;     // host to device by copies (clEnqueueWriteBuffer)
  std::int64_t read = 0;        // device to host by copies
  std::int64_t mapped_in = 0;   // filled by the host through a mapping
  std::int64_t mapped_out = 0;  // looked at by the host through a mapping
  std::int64_t copied = 0;      // device to device
  // Calls.
  std::int64_t read_calls = 0;
  std::int64_t write_calls = 0;
  std::int64_t blocking_calls = 0;  // finish, wait, blocking read, write or map
  std::int64_t back_pressure = 0;   // waits for the batch buffer of two steps ago: apart
  std::int64_t launches = 0;        // kernels, those of a replayed recording included
  std::int64_t replays = 0;         // recordings enqueued
  std::int64_t flushes = 0;
  std::int64_t objects_created = 0;  // buffers, images, programs, kernels, queues, recordings; events apart
  std::int64_t events_created = 0;
  std::int64_t programs_built = 0;   // compiled from source
  std::int64_t programs_loaded = 0;  // from the cache on disk

  friend bool operator==(const Counters&, const Counters&) = default;
};

[[nodiscard]] inline Counters operator-(const Counters& a, const Counters& b) {
  return {a.written - b.written,
          a.read - b.read,
          a.mapped_in - b.mapped_in,
          a.mapped_out - b.mapped_out,
          a.copied - b.copied,
          a.read_calls - b.read_calls,
          a.write_calls - b.write_calls,
          a.blocking_calls - b.blocking_calls,
          a.back_pressure - b.back_pressure,
          a.launches - b.launches,
          a.replays - b.replays,
          a.flushes - b.flushes,
          a.objects_created - b.objects_created,
          a.events_created - b.events_created,
          a.programs_built - b.programs_built,
          a.programs_loaded - b.programs_loaded};
}

}  // namespace stoker
