#include "study/simulate.h"

#include <algorithm>

#include "base/error.h"

namespace stoker {
namespace {

std::string key_of(const nn::Model& model, std::int64_t batch) { return str(model.name, " ", batch); }

Range share(double part_fast, double rest_fast, double part_slow, double rest_slow) {
  const auto of = [](double part, double rest) { return part + rest > 0 ? part / (part + rest) : 0; };
  return {of(part_fast, rest_slow), of(part_slow, rest_fast)};
}

}  // namespace

const char* to_string(StepMode mode) { return mode == StepMode::resident ? "resident" : "baseline"; }

PredictionRange predict(const StepCounts& counts, const MachineRange& machines) {
  return {predict(counts, machines.fast), predict(counts, machines.slow)};
}

Range seconds(const PredictionRange& range) { return {range.fast.total(), range.slow.total()}; }

Range ratio(const PredictionRange& a, const PredictionRange& b) {
  return {a.fast.total() / b.slow.total(), a.slow.total() / b.fast.total()};
}

// The low end has fast transfers beside slow kernels, the high end the reverse.
Range movement_share(const PredictionRange& range) {
  const auto rest = [](const Prediction& p) { return p.total() - p.movement; };
  return share(range.fast.movement, rest(range.fast), range.slow.movement, rest(range.slow));
}

Range share_with_wait(const PredictionRange& range) {
  const auto waited = [](const Prediction& p) { return p.movement + p.kernels + p.launches; };
  return share(waited(range.fast), range.fast.host, waited(range.slow), range.slow.host);
}

const Simulator::Counts& Simulator::gpu_counts(const nn::Model& model, std::int64_t batch, opencl::Family family) {
  const auto [at, added] = gpu_.try_emplace(key_of(model, batch) + " " + to_string(family));
  if (!added) return at->second;
  std::unique_ptr<opencl::DescribedDevice>& device = devices_[family];
  if (!device) device = std::make_unique<opencl::DescribedDevice>(opencl::typical_gpu(family));
  at->second = {resident_counts(model, batch, *device), baseline_counts(model, batch, *device)};
  return at->second;
}

const StepCounts& Simulator::host_counts(const nn::Model& model, std::int64_t batch) {
  const auto [at, added] = host_.try_emplace(key_of(model, batch));
  if (added) at->second = cpu_counts(model, batch);
  return at->second;
}

PhoneStep Simulator::step(const nn::Model& model, std::int64_t batch, const Chip& chip) {
  const Counts& counts = gpu_counts(model, batch, chip.family);
  const StepCounts& host = host_counts(model, batch);
  const MachineRange gpu = gpu_of(chip);
  const Filled spec = figures_of(chip).cpu_gflops;
  return {.resident_counts = counts.resident,
          .baseline_counts = counts.baseline,
          .resident = predict(counts.resident, gpu),
          .baseline = predict(counts.baseline, gpu),
          .cpu_study = predict(host, cpu_of(chip, kStudyCpu)),
          .cpu_spec = predict(host, cpu_of(chip, {spec.low, spec.high}))};
}

std::vector<SimulatedNet> study_nets() {
  std::vector<SimulatedNet> nets;
  for (const char* name : {"mlp:16-16", "mlp:16-16-16-16", "mlp:256-256", "mlp:784-256-128-16"})
    nets.push_back({nn::find_model(name), 32});
  return nets;
}

}  // namespace stoker
