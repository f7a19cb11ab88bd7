#include "backends/null/null_backend.h"

#include <algorithm>
#include <cstring>

#include "backends/host_memory.h"
#include "base/error.h"
#include "graph/op_def.h"

namespace stoker {
namespace {

class NullTarget : public Target {
 public:
  explicit NullTarget(const NullOptions& options) : options_(options) {}

  [[nodiscard]] std::string name() const override { return "null"; }
  [[nodiscard]] bool supports(const Graph&, const Node& node) const override {
    return node.op->name != options_.unsupported_op;
  }
  [[nodiscard]] std::int64_t workspace(const Graph&, const Node&) const override { return options_.workspace; }
  [[nodiscard]] int prologue_tensors(const Graph&, const Node&, int) const override {
    return options_.prologue_tensors;
  }
  [[nodiscard]] bool takes_epilogue(const Graph&, const Node&) const override { return options_.epilogues; }
  [[nodiscard]] bool is_small(const Graph&, const Node& node) const override {
    return std::ranges::all_of(node.outputs, [&](const Spec& spec) { return spec.shape.elements() <= options_.small; });
  }

 private:
  NullOptions options_;
};

class NullExecutable : public Executable {
 public:
  explicit NullExecutable(std::size_t steps) : steps_(steps) {}
  void run(int) override {}
  bool collect(std::span<float> outputs, bool) override {
    std::ranges::fill(outputs, 0.0F);
    return true;
  }
  [[nodiscard]] std::vector<double> timings() override { return std::vector<double>(steps_, 0.0); }

 private:
  std::size_t steps_;
};

class NullBackend : public Backend {
 public:
  explicit NullBackend(const NullOptions& options) : target_(options) {}

  [[nodiscard]] DeviceInfo describe() const override { return {"null", "null", "plans everything, runs nothing"}; }
  [[nodiscard]] const Target& target() const override { return target_; }
  [[nodiscard]] std::string numerics_key() const override { return "null"; }
  [[nodiscard]] std::unique_ptr<Memory> allocate(std::int64_t bytes, MemoryKind) override {
    return std::make_unique<HostMemory>(bytes);
  }
  void upload(Memory&, std::int64_t, std::span<const std::byte>) override {}
  void download(const Memory&, std::int64_t, std::span<std::byte> bytes) override {
    std::memset(bytes.data(), 0, bytes.size());
  }
  void copy(const Memory&, std::int64_t, Memory&, std::int64_t, std::int64_t) override {}
  [[nodiscard]] std::span<std::byte> map(Memory& batch) override { return dynamic_cast<HostMemory&>(batch).span(); }
  void unmap(Memory&) override {}
  [[nodiscard]] std::unique_ptr<Executable> compile(const Plan& plan, const Bindings&) override {
    return std::make_unique<NullExecutable>(plan.steps.size());
  }

 private:
  NullTarget target_;
};

}  // namespace

std::unique_ptr<Backend> make_null_backend(const NullOptions& options) {
  return std::make_unique<NullBackend>(options);
}

}  // namespace stoker
