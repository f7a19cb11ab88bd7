#include "backends/opencl/executable.h"

#include <algorithm>

#include "backends/opencl/binder.h"
#include "backends/opencl/plan_work.h"
#include "backends/opencl/replay.h"
#include "backends/opencl/ring.h"
#include "backends/opencl/stages.h"
#include "backends/recorded.h"
#include "base/error.h"

namespace stoker::opencl {
namespace {

// A cautious guess at a launch's seconds, to cut submissions before a driver's watchdog does: a slow phone's GPU.
double estimated_seconds(const Cost& cost) { return cost.flops / 10e9 + cost.bytes / 4e9 + 50e-6; }

// The work of all steps in order, and the results' way into the ring.
std::vector<StepWork> work_of(const Runtime& runtime, const Plan& plan, const Ring& ring) {
  std::vector<StepWork> all = plan_work(plan, runtime.device, runtime.tuning);
  if (ring.bytes() > 0) {
    const Place place{.kind = Place::Kind::constant, .index = Binder::kRing, .bytes = ring.bytes()};
    all.push_back({static_cast<int>(plan.steps.size()) - 1, ring.append_stage(place), {}, {}});
  }
  return all;
}

// The launch's work-group, or a smaller one where this kernel on this device cannot have that (it needs too many
// registers) and does not look at it.
std::array<std::size_t, 3> fitting_group(const Launch& launch, std::size_t limit) {
  std::array<std::size_t, 3> local = launch.local;
  const auto items = [&] { return local[0] * local[1] * local[2]; };
  if (items() <= limit) return local;
  require(!sees_group(launch.program), Code::device, "kernel ", launch.kernel, " needs a work-group of ", items(),
          ", but this device runs it with at most ", limit);
  while (items() > limit) {
    std::size_t& largest = *std::ranges::max_element(local);
    largest = largest % 2 == 0 ? largest / 2 : 1;
  }
  return local;
}

RecordedExecutable recorded(const Plan& plan, std::span<const MergedLaunch> launches) {
  RecordedExecutable executable{.steps = recorded_steps(plan), .launches = {}};
  for (const MergedLaunch& merged : launches) {
    const Launch& launch = merged.launch;
    executable.launches.push_back(
        {.kernel = launch.kernel, .steps = merged.steps, .flops = launch.cost.flops, .bytes = launch.cost.bytes});
  }
  return executable;
}

class ClExecutable : public Executable {
 public:
  ClExecutable(const Runtime& runtime, const Plan& plan, const Bindings& bindings)
      : runtime_(runtime),
        bindings_(bindings),
        steps_(plan.steps.size()),
        ring_(runtime.api, runtime.queue, scalar_results(plan)),
        binder_(runtime.api, runtime.context, runtime.queue, runtime.device, plan, bindings_, runtime.piece_bytes) {
    launches_ = merge_stages(
        work_of(runtime, plan, ring_), runtime.device, [&](const Place& place) { return binder_.buffer_number(place); },
        runtime.merge);
    for (const MergedLaunch& launch : launches_) binder_.announce(launch.launch);
    binder_.reserve_ring(ring_.bytes());
    binder_.allocate();
    if (ring_.bytes() > 0) ring_.bind(binder_.ring());
    if (runtime.recorder != nullptr) recorded_ = runtime.recorder->add(recorded(plan, launches_));
    const int slots = std::max(1, static_cast<int>(bindings.batches.size()));
    for (int slot = 0; slot < slots; ++slot) bind_slot(slot);
    runtime.programs.save();
  }

  void run(int slot) override {
    map_next_batch(slot);
    recordings_[static_cast<std::size_t>(slot)]->enqueue();
    ring_.submitted();
  }

  void warm_up(int slot) override {
    for (const PreparedLaunch& prepared : prepared_[static_cast<std::size_t>(slot)]) {
      if (runtime_.interrupt) runtime_.interrupt();
      runtime_.api.enqueue_kernel(runtime_.queue, prepared.kernel, prepared.global, prepared.local, nullptr,
                                  prepared.number);
      runtime_.api.finish(runtime_.queue);
    }
    ring_.submitted();
  }

  bool collect(std::span<float> outputs, bool wait) override { return ring_.collect(outputs, wait); }

  [[nodiscard]] std::int64_t launches() const override { return static_cast<std::int64_t>(launches_.size()); }

  // On a queue of its own, with profiling on, one launch after the other. A merged launch's time is shared out among
  // its steps.
  [[nodiscard]] std::vector<double> timings() override {
    Api& api = runtime_.api;
    api.finish(runtime_.queue);
    if (!profiling_) profiling_ = api.create_queue(runtime_.context, runtime_.id, true);
    std::vector<Handle<cl_event>> events(launches_.size());
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      const PreparedLaunch& prepared = prepared_[0][i];
      api.enqueue_kernel(profiling_.get(), prepared.kernel, prepared.global, prepared.local, &events[i]);
    }
    api.finish(profiling_.get());
    ring_.submitted();
    std::vector<double> seconds(steps_, 0.0);
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      const auto [start, end] = api.profile(events[i].get());
      const std::vector<int>& steps = launches_[i].steps;
      for (const int step : steps) {
        seconds[static_cast<std::size_t>(step)] +=
            static_cast<double>(end - start) * 1e-9 / static_cast<double>(steps.size());
      }
    }
    return seconds;
  }

 private:
  [[nodiscard]] std::size_t group_limit(cl_kernel kernel) const {
    const Device& device = runtime_.device;
    return device.quirks.no_group_limits ? device.max_group : runtime_.api.group_limit(kernel, runtime_.id);
  }

  // Launches that read no batch have the same arguments in every slot, and one kernel object.
  void bind_slot(int slot) {
    std::vector<PreparedLaunch> prepared;
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      const Launch& launch = launches_[i].launch;
      if (slot > 0 && !Binder::reads_batch(launch)) {
        prepared.push_back(prepared_[0][i]);
        continue;
      }
      Handle<cl_kernel>& kernel = kernels_.emplace_back(runtime_.programs.kernel(launch.program, launch.kernel));
      binder_.set_args(kernel.get(), launch, slot);
      prepared.push_back({.kernel = kernel.get(),
                          .global = launch.global,
                          .local = fitting_group(launch, group_limit(kernel.get())),
                          .seconds = estimated_seconds(launch.cost),
                          .number = {recorded_, static_cast<int>(i)}});
    }
    recordings_.push_back(record(runtime_.api, runtime_.context, runtime_.id, runtime_.queue, runtime_.device, prepared,
                                 runtime_.replay));
    prepared_.push_back(std::move(prepared));
  }

  // Asked for before this step's kernels, the mapping waits for the step before only, and the host fills the next batch
  // while this one is worked on.
  void map_next_batch(int slot) {
    const std::size_t slots = bindings_.batches.size();
    if (slots < 2) return;
    for (Memory* memory : bindings_.batches[(static_cast<std::size_t>(slot) + 1) % slots])
      dynamic_cast<DeviceMemory&>(*memory).begin_map();
  }

  Runtime runtime_;
  Bindings bindings_;
  std::size_t steps_;
  int recorded_ = -1;  // in the recorder's executables
  std::vector<MergedLaunch> launches_;
  Ring ring_;
  Binder binder_;
  std::vector<Handle<cl_kernel>> kernels_;
  std::vector<std::vector<PreparedLaunch>> prepared_;   // for each slot
  std::vector<std::unique_ptr<Recording>> recordings_;  // for each slot
  Handle<cl_command_queue> profiling_;
};

}  // namespace

std::unique_ptr<Executable> make_executable(const Runtime& runtime, const Plan& plan, const Bindings& bindings) {
  return std::make_unique<ClExecutable>(runtime, plan, bindings);
}

}  // namespace stoker::opencl
