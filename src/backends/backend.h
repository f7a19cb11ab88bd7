// Backend: what a device must offer. Adding one is adding a folder here and a line in backends.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/target.h"
#include "plan/plan.h"

namespace stoker {

struct DeviceInfo {
  std::string id;       // what --device takes: "cpu"
  std::string name;     // for people
  std::string details;  // instruction set, threads
};

// Memory on the device. Freed with the object, which must not outlive its backend.
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual std::int64_t bytes() const = 0;
};

// The memory that a plan's places refer to. Several executables may share any of it, and run one at a time.
struct Bindings {
  Memory* arena = nullptr;      // at least Plan::arena_bytes
  std::vector<Memory*> states;  // one for each of Plan::graph.states
  std::vector<Memory*> inputs;  // one for each of Plan::graph.inputs
};

// A plan made ready: run() does one step, without allocation, string, log or object creation.
class Executable {
 public:
  virtual ~Executable() = default;
  virtual void run() = 0;
  // Runs once more and gives each step's seconds.
  [[nodiscard]] virtual std::vector<double> timings() = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual DeviceInfo describe() const = 0;
  [[nodiscard]] virtual const Target& target() const = 0;
  // What decides the bits of a result: instruction set, later the tuning table.
  [[nodiscard]] virtual std::string numerics_key() const = 0;

  // Zeroed; an Error (Code::no_memory) names the size if there is none.
  [[nodiscard]] virtual std::unique_ptr<Memory> allocate(std::int64_t bytes) = 0;
  virtual void upload(Memory& memory, std::int64_t offset, std::span<const std::byte> bytes) = 0;
  virtual void download(const Memory& memory, std::int64_t offset, std::span<std::byte> bytes) = 0;
  // `plan` and the bound memory must outlive the executable.
  [[nodiscard]] virtual std::unique_ptr<Executable> compile(const Plan& plan, const Bindings& bindings) = 0;
};

struct BackendOptions {
  int threads = 0;  // cpu: 0 means one a core
};

// The devices of this machine that this build can use.
[[nodiscard]] std::vector<DeviceInfo> list_devices();
// "auto" takes the first; an Error lists the devices there are.
[[nodiscard]] std::unique_ptr<Backend> make_backend(std::string_view device, const BackendOptions& options = {});

}  // namespace stoker
