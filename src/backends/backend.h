// Backend: what a device must offer. Adding one is adding a folder here and a line in backends.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/ceilings.h"
#include "base/counters.h"
#include "base/recorder.h"
#include "graph/target.h"
#include "plan/plan.h"

namespace stoker {

struct DeviceInfo {
  std::string id;       // what --device takes: "cpu"
  std::string name;     // for people
  std::string details;  // instruction set, threads
  bool is_cpu = false;  // an OpenCL device may be the CPU, too (PoCL): it tells nothing of GPUs
  // What tells it from others, driver included; empty: the details do. Those may hold what changes by the minute, as
  // PoCL's memory does.
  std::string identity = {};
};

// Memory on the device. Freed with the object, which must not outlive its backend.
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual std::int64_t bytes() const = 0;
};

// A piece of memory: State is one Memory, each state a part of it.
struct MemoryRef {
  Memory* memory = nullptr;
  std::int64_t offset = 0;  // bytes
};

// The memory that a plan's places refer to. Several executables may share any of it, and run one at a time.
struct Bindings {
  Memory* arena = nullptr;                    // at least Plan::arena_bytes
  std::vector<MemoryRef> states;              // one for each of Plan::graph.states
  std::vector<std::vector<Memory*>> batches;  // for each batch slot, one for each of Plan::graph.inputs
};

// Which of Plan::outputs are scalar f32: what Executable::collect gives.
[[nodiscard]] std::vector<std::size_t> scalar_outputs(const Plan& plan);

// A plan made ready. run() does one step, without allocation, string, log or object creation. On an asynchronous device
// it returns before the step is done; steps are done in the order of their submission, whatever executable they are of.
class Executable {
 public:
  virtual ~Executable() = default;
  // Reads the inputs from batch slot `slot`.
  virtual void run(int slot = 0) = 0;
  // The plan's scalar f32 outputs (in the order of Plan::outputs) of the oldest run that was not collected yet. False:
  // that run is not done yet, and `wait` is false. Runs that nobody collects are forgotten after kUncollected of them.
  virtual bool collect(std::span<float> outputs, bool wait) = 0;
  // A run that gives each step's seconds. Its outputs are collected like any other's.
  [[nodiscard]] virtual std::vector<double> timings() = 0;
  // A run that waits for each kernel, with BackendOptions::interrupt in between: some devices compile a kernel when it
  // first runs.
  virtual void warm_up(int slot) { run(slot); }
  // Work of one run, for reports: kernel launches.
  [[nodiscard]] virtual std::int64_t launches() const { return 0; }

  static constexpr int kUncollected = 64;
};

enum class MemoryKind : std::uint8_t {
  plain,    // arena, State: the host reads and writes it by copies only
  batch,    // filled by the host through map() while the device works on another
  staging,  // for bytes on their way between host and device: not zeroed
};

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual DeviceInfo describe() const = 0;
  [[nodiscard]] virtual const Target& target() const = 0;
  // What decides the bits of a result: instruction set or device and driver, tuning table.
  [[nodiscard]] virtual std::string numerics_key() const = 0;
  // How many batches may be under way: a step's inputs come from one of so many slots.
  [[nodiscard]] virtual int batch_slots() const { return 1; }

  // Zeroed, but for staging; an Error (Code::no_memory) names the size if there is none.
  [[nodiscard]] virtual std::unique_ptr<Memory> allocate(std::int64_t bytes, MemoryKind kind = MemoryKind::plain) = 0;
  // Both wait for everything submitted before.
  virtual void upload(Memory& memory, std::int64_t offset, std::span<const std::byte> bytes) = 0;
  virtual void download(const Memory& memory, std::int64_t offset, std::span<std::byte> bytes) = 0;
  // As upload(), but returns at once: `bytes` must stay as they are until a later download() has returned.
  virtual void upload_async(Memory& memory, std::int64_t offset, std::span<const std::byte> bytes) {
    upload(memory, offset, bytes);
  }
  virtual void copy(const Memory& from, std::int64_t from_offset, Memory& to, std::int64_t to_offset,
                    std::int64_t bytes) = 0;
  // The bytes of a batch memory, for the host to fill. Waits (asleep) only for the last run that reads this memory.
  [[nodiscard]] virtual std::span<std::byte> map(Memory& batch) = 0;
  virtual void unmap(Memory& batch) = 0;  // before the run that reads it
  // `plan` and the bound memory must outlive the executable.
  [[nodiscard]] virtual std::unique_ptr<Executable> compile(const Plan& plan, const Bindings& bindings) = 0;
  // What has moved and waited so far. Zeros on devices that share the host's memory and thread.
  [[nodiscard]] virtual Counters counters() const { return {}; }
  // Micro-benchmarks, a few seconds.
  [[nodiscard]] virtual Ceilings measure_ceilings();
};

enum class KernelChoice : std::uint8_t {
  tuned,
  mnn,  // opencl: matrix products in the shape of MNN 1.1's kernel, everything else plain; for the study
};

struct BackendOptions {
  int threads = 0;        // cpu: 0 means one a core
  bool self_test = true;  // opencl: check the kernels the first time a device is seen
  bool replay = true;     // opencl: record the step and replay it where the device can
  bool tuned = true;      // opencl: use the stored results of `stoker tune`
  bool merge = true;      // opencl: small pieces of work share launches
  KernelChoice kernels = KernelChoice::tuned;
  Recorder* recorder = nullptr;     // is told what happens in a step, and when; plain enqueueing, no replay
  std::int64_t largest_buffer = 0;  // opencl: the arena is cut at so many bytes; 0: what the device allows
  // opencl: called before each kernel is compiled. What it throws ends the preparation.
  std::function<void()> interrupt;
  // Told, a line at a time, what the user should know: a kernel in quarantine, a cache that cannot be written.
  std::function<void(const std::string&)> note;
};

// The devices of this machine that this build can use.
[[nodiscard]] std::vector<DeviceInfo> list_devices();
// "cpu", "opencl" (the first), "opencl:N"; an Error lists the devices there are. ("auto" is resolved in run/.)
[[nodiscard]] std::unique_ptr<Backend> make_backend(std::string_view device, const BackendOptions& options = {});

}  // namespace stoker
