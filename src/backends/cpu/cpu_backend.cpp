#include "backends/cpu/cpu_backend.h"

#include <hwy/highway.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <string>

#include "backends/cpu/ceilings.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/pointwise.h"
#include "backends/host_memory.h"
#include "backends/recorded.h"
#include "base/error.h"
#include "base/float_mode.h"
#include "base/threads.h"
#include "graph/op_def.h"

namespace stoker {
namespace {

using cpu::Kernel;
using cpu::KernelContext;
using cpu::KernelDef;

// The kernels by op name. Pointwise ops, of which there are many, share one.
class KernelTable {
 public:
  KernelTable() {
    for (const std::span<const KernelDef> family :
         {cpu::pointwise_kernels(), cpu::reduction_kernels(), cpu::matmul_kernels(), cpu::conv2d_kernels(),
          cpu::depthwise_kernels(), cpu::pooling_kernels(), cpu::softmax_kernels(), cpu::gather_kernels(),
          cpu::movement_kernels()}) {
      for (const KernelDef& kernel : family) kernels_.emplace(kernel.op, &kernel);
    }
  }

  [[nodiscard]] const KernelDef* find(const Node& node) const {
    if (node.op->traits.pointwise) return kernels_.at("pointwise");
    const auto at = kernels_.find(node.op->name);
    return at == kernels_.end() ? nullptr : at->second;
  }

 private:
  std::map<std::string, const KernelDef*, std::less<>> kernels_;
};

class CpuTarget : public Target {
 public:
  CpuTarget(const KernelTable& kernels, int threads) : kernels_(kernels), threads_(threads) {}

  [[nodiscard]] std::string name() const override { return "cpu"; }
  [[nodiscard]] bool supports(const Graph&, const Node& node) const override { return kernels_.find(node) != nullptr; }
  [[nodiscard]] std::int64_t workspace(const Graph& graph, const Node& node) const override {
    const KernelDef* kernel = kernels_.find(node);
    return kernel && kernel->workspace ? kernel->workspace(graph, node, threads_) : 0;
  }
  [[nodiscard]] int prologue_tensors(const Graph& graph, const Node& node, int operand) const override {
    const KernelDef* kernel = kernels_.find(node);
    return kernel && kernel->prologue_tensors ? kernel->prologue_tensors(graph, node, operand) : 0;
  }
  [[nodiscard]] bool takes_epilogue(const Graph& graph, const Node& node) const override {
    const KernelDef* kernel = kernels_.find(node);
    return kernel && kernel->takes_epilogue && kernel->takes_epilogue(graph, node);
  }

 private:
  const KernelTable& kernels_;
  int threads_;
};

// The scalar outputs of the runs that nobody has collected yet.
class Results {
 public:
  explicit Results(std::vector<const std::byte*> scalars)
      : scalars_(std::move(scalars)), ring_(scalars_.size() * Executable::kUncollected) {}

  void keep() {
    if (kept_ - collected_ == Executable::kUncollected) ++collected_;
    float* to = entry(kept_++);
    for (const std::byte* scalar : scalars_) std::memcpy(to++, scalar, sizeof(float));
  }
  void collect(std::span<float> outputs) {
    DCHECK(collected_ < kept_ && outputs.size() == scalars_.size());
    std::copy_n(entry(collected_++), scalars_.size(), outputs.begin());
  }

 private:
  [[nodiscard]] float* entry(std::size_t run) {
    return ring_.data() + run % Executable::kUncollected * scalars_.size();
  }

  std::vector<const std::byte*> scalars_;
  std::vector<float> ring_;
  std::size_t kept_ = 0;  // runs
  std::size_t collected_ = 0;
};

class CpuExecutable : public Executable {
 public:
  CpuExecutable(const Plan& plan, std::vector<Kernel> kernels, std::vector<std::vector<float>> constants,
                Results results, ThreadPool& pool, Recorder* recorder)
      : kernels_(std::move(kernels)),
        constants_(std::move(constants)),
        results_(std::move(results)),
        pool_(pool),
        recorder_(recorder) {
    if (recorder_ != nullptr) register_steps(plan);
  }

  void run(int) override {
    const FlushDenormals flush;  // the pool's threads do so too
    if (recorder_ != nullptr && recorder_->is_on()) {
      run_recorded();
    } else {
      for (const Kernel& kernel : kernels_) kernel(pool_);
    }
    results_.keep();
  }

  bool collect(std::span<float> outputs, bool) override {
    results_.collect(outputs);
    return true;
  }

  [[nodiscard]] std::vector<double> timings() override {
    const FlushDenormals flush;
    std::vector<double> seconds;
    seconds.reserve(kernels_.size());
    for (const Kernel& kernel : kernels_) {
      const auto start = std::chrono::steady_clock::now();
      kernel(pool_);
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    results_.keep();
    return seconds;
  }

 private:
  // One kernel a step.
  void register_steps(const Plan& plan) {
    RecordedExecutable executable{.steps = recorded_steps(plan), .launches = {}};
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const RecordedStep& step = executable.steps[i];
      const Node& node = plan.graph.nodes[static_cast<std::size_t>(plan.steps[i].node)];
      names_.push_back(recorder_->name(node.op->name));
      executable.launches.push_back(
          {.kernel = node.op->name, .steps = {static_cast<int>(i)}, .flops = step.flops, .bytes = step.bytes});
    }
    recorded_ = recorder_->add(std::move(executable));
  }

  // The thread that trains works as well; a kernel's time is that of the device.
  void run_recorded() {
    std::int64_t begin = Recorder::now();
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      kernels_[i](pool_);
      const std::int64_t end = Recorder::now();
      recorder_->add(Interval{.activity = Activity::kernel,
                              .track = Track::device,
                              .what = names_[i],
                              .executable = recorded_,
                              .launch = static_cast<int>(i),
                              .begin = begin,
                              .end = end});
      begin = Recorder::now();
    }
  }

  std::vector<Kernel> kernels_;
  std::vector<std::vector<float>> constants_;  // what constant places point into
  Results results_;
  ThreadPool& pool_;
  Recorder* recorder_;      // null: nothing is measured
  std::vector<int> names_;  // of the kernels, in the recorder
  int recorded_ = -1;       // in the recorder's executables
};

// Before any is started: a hundred thousand of them take all the machine has.
int checked_threads(int threads) {
  require(threads >= 0 && threads <= 256, Code::bad_argument, "threads must be in 0..256, not ", threads);
  return threads;
}

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(const BackendOptions& options)
      : pool_(checked_threads(options.threads)), target_(kernels_, pool_.threads()), recorder_(options.recorder) {}

  [[nodiscard]] DeviceInfo describe() const override {
    return {"cpu", "CPU", str(numerics_key(), ", ", pool_.threads(), pool_.threads() == 1 ? " thread" : " threads"),
            true};
  }
  [[nodiscard]] const Target& target() const override { return target_; }

  [[nodiscard]] std::string numerics_key() const override {
    // The best of the targets that both this build and this CPU have: the lowest bit.
    const std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
    return hwy::TargetName(targets & -targets);
  }

  [[nodiscard]] std::unique_ptr<Memory> allocate(std::int64_t bytes, MemoryKind) override {
    return std::make_unique<HostMemory>(bytes);
  }

  void upload(Memory& memory, std::int64_t offset, std::span<const std::byte> bytes) override {
    DCHECK(offset + static_cast<std::int64_t>(bytes.size()) <= memory.bytes());
    if (!bytes.empty()) std::memcpy(dynamic_cast<HostMemory&>(memory).data() + offset, bytes.data(), bytes.size());
  }

  void download(const Memory& memory, std::int64_t offset, std::span<std::byte> bytes) override {
    DCHECK(offset + static_cast<std::int64_t>(bytes.size()) <= memory.bytes());
    if (!bytes.empty())
      std::memcpy(bytes.data(), dynamic_cast<const HostMemory&>(memory).data() + offset, bytes.size());
  }

  void copy(const Memory& from, std::int64_t from_offset, Memory& to, std::int64_t to_offset,
            std::int64_t bytes) override {
    DCHECK(from_offset + bytes <= from.bytes() && to_offset + bytes <= to.bytes());
    std::memcpy(dynamic_cast<HostMemory&>(to).data() + to_offset,
                dynamic_cast<const HostMemory&>(from).data() + from_offset, static_cast<std::size_t>(bytes));
  }

  [[nodiscard]] std::span<std::byte> map(Memory& batch) override { return dynamic_cast<HostMemory&>(batch).span(); }
  void unmap(Memory&) override {}

  [[nodiscard]] std::unique_ptr<Executable> compile(const Plan& plan, const Bindings& bindings) override {
    std::vector<std::vector<float>> constants(plan.graph.nodes.size());
    std::vector<Kernel> kernels;
    kernels.reserve(plan.steps.size());
    for (const Step& step : plan.steps) {
      const Node& node = plan.graph.nodes[static_cast<std::size_t>(step.node)];
      KernelContext context{.graph = plan.graph, .node = node, .threads = pool_.threads()};
      for (const Place& place : step.inputs) context.inputs.push_back(pointer(plan, bindings, place, constants));
      for (const Place& place : step.outputs) context.outputs.push_back(pointer(plan, bindings, place, constants));
      if (step.scratch.kind != Place::Kind::none) context.scratch = pointer(plan, bindings, step.scratch, constants);
      kernels.push_back(kernels_.find(node)->prepare(context));
    }
    std::vector<const std::byte*> scalars;
    for (const std::size_t i : scalar_outputs(plan))
      scalars.push_back(pointer(plan, bindings, plan.outputs[i], constants));
    return std::make_unique<CpuExecutable>(plan, std::move(kernels), std::move(constants), Results(std::move(scalars)),
                                           pool_, recorder_);
  }

  [[nodiscard]] Ceilings measure_ceilings() override { return cpu::measure_ceilings(pool_); }

 private:
  static std::byte* pointer(const Plan& plan, const Bindings& bindings, const Place& place,
                            std::vector<std::vector<float>>& constants) {
    const auto index = static_cast<std::size_t>(place.index);
    const auto data = [](Memory* memory) { return dynamic_cast<HostMemory&>(*memory).data(); };
    switch (place.kind) {
      case Place::Kind::arena: return data(bindings.arena) + place.offset;
      case Place::Kind::state: return data(bindings.states[index].memory) + bindings.states[index].offset;
      case Place::Kind::input: return data(bindings.batches[0][index]);
      case Place::Kind::constant:
        if (constants[index].empty()) constants[index] = plan.graph.nodes[index].attrs.floats("values");
        return reinterpret_cast<std::byte*>(constants[index].data());
      case Place::Kind::none: break;
    }
    return nullptr;
  }

  KernelTable kernels_;
  ThreadPool pool_;
  CpuTarget target_;
  Recorder* recorder_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const BackendOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

}  // namespace stoker
