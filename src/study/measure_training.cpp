// Steps of training: the baseline's with its movement, the parts of a step on CPU and device, and each cure by itself.
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "profile/profile.h"
#include "run/random_batch.h"
#include "run/step_graph.h"
#include "run/step_times.h"
#include "study/baseline.h"
#include "study/bound_plan.h"
#include "study/measure.h"

namespace stoker {
namespace {

constexpr int kComparedSteps = 5;
constexpr int kFewestProfiled = 5;
constexpr int kMostProfiled = 200;

int steps_within(double seconds, double milliseconds) {
  return std::clamp(static_cast<int>(seconds * 1e3 / milliseconds), kFewestProfiled, kMostProfiled);
}

double median(const std::function<void()>& step, double seconds) {
  return time_steps(step, {.seconds = seconds}).median();
}

// The largest difference between the losses of the first steps in both ways.
double loss_gap(BaselineSession& baseline, const nn::Model& model, const SessionOptions& options,
                const BatchView& batch) {
  Session resident(model, options);
  double gap = 0;
  for (int i = 0; i < kComparedSteps; ++i)
    gap = std::max(gap, std::abs(baseline.train(batch).loss - resident.train(batch).loss));
  return gap;
}

// Forward alone and forward with backward, on a device, from states of their own.
struct Halves {
  double forward = 0;
  double gradients = 0;
};

Halves measure_halves(const nn::Model& model, const SessionOptions& options, const BatchView& batch, double seconds) {
  const std::unique_ptr<Backend> backend = make_backend(options.device, {.threads = options.threads,
                                                                         .self_test = options.self_test,
                                                                         .replay = options.replay,
                                                                         .merge = options.merge,
                                                                         .interrupt = options.interrupt,
                                                                         .note = options.note});
  const StepGraph evaluate = build_step(model, options, StepKind::evaluate, batch.count);
  const StepGraph gradients = build_step(model, options, StepKind::gradients, batch.count);
  const StateMemory states(*backend, gradients.graph.states);
  StateMap map;
  map.add(states);
  initialise_states(*backend, gradients, map, options.seed);
  const MemoryKind kind = options.zero_copy ? MemoryKind::batch : MemoryKind::plain;
  const auto timed = [&](const Graph& graph) {
    BoundPlan plan(*backend, graph, options.passes_off, map, kind);
    return median(
        [&] {
          plan.fill(batch);
          plan.run();
          static_cast<void>(plan.collect());
        },
        seconds);
  };
  return {.forward = timed(evaluate.graph), .gradients = timed(gradients.graph)};
}

PartTimes measure_session(const nn::Model& model, const SessionOptions& options, const BatchView& batch,
                          double seconds) {
  const Halves halves = measure_halves(model, options, batch, seconds);
  Session session(model, options);
  return {.forward = halves.forward,
          .backward = std::max(halves.gradients - halves.forward, 0.0),
          .step = time_steps(session, batch, {.seconds = seconds}).median()};
}

PartTimes measure_baseline(const nn::Model& model, SessionOptions options, const BatchView& batch, double seconds) {
  options.passes_off = fusion_passes();
  options.replay = options.merge = options.zero_copy = false;
  const Halves halves = measure_halves(model, options, batch, seconds);
  BaselineSession baseline(model, options, {}, batch.count);
  const double gradients = median([&] { baseline.compute_gradients(batch); }, seconds);
  return {.forward = halves.forward,
          .backward = std::max(gradients - halves.forward, 0.0),
          .step = median([&] { baseline.train(batch); }, seconds)};
}

}  // namespace

SessionOptions study_session(const MeasureOptions& options) {
  SessionOptions session;
  session.schedule.rate = 1e-4;
  session.device = options.device;
  session.threads = options.threads;
  session.self_test = options.self_test;
  session.interrupt = options.interrupt;
  session.note = options.note;
  return session;
}

CallCounts counts_of(const Counters& counted, int steps) {
  const auto a_step = [&](std::int64_t count) { return static_cast<double>(count) / steps; };
  return {.launches = a_step(counted.launches),
          .reads = a_step(counted.read_calls),
          .writes = a_step(counted.write_calls),
          .blocking = a_step(counted.blocking_calls),
          .objects = a_step(counted.objects_created),
          .host_bytes = a_step(counted.written + counted.read + counted.mapped_in + counted.mapped_out)};
}

MovementRow measure_movement(const nn::Model& model, std::int64_t batch, const MeasureOptions& options) {
  SessionOptions session = study_session(options);
  const RandomBatch data(model, session.target, batch);
  Recorder recorder;
  SessionOptions recorded = session;
  recorded.recorder = &recorder;
  BaselineSession baseline(model, recorded, {}, batch);
  MovementRow row{.model = model.name,
                  .batch = batch,
                  .parameters = baseline.parameters(),
                  .parameter_bytes = baseline.parameter_bytes(),
                  .loss_gap = loss_gap(baseline, model, session, data.view())};
  const auto step = [&] { baseline.train(data.view()); };
  const int steps = steps_within(options.seconds, median(step, options.seconds / 4));
  const Counters before = baseline.counters();
  const Profile profile = profile_steps(recorder, step, steps);
  row.counts = counts_of(baseline.counters() - before, steps);
  row.breakdown = profile.breakdown;
  return row;
}

TrainingRow measure_training(const nn::Model& model, std::int64_t batch, const MeasureOptions& options) {
  const SessionOptions device = study_session(options);
  SessionOptions cpu = device;
  cpu.device = "cpu";
  const RandomBatch data(model, device.target, batch);
  TrainingRow row{.model = model.name, .batch = batch};
  Session session(model, cpu);
  row.parameters = session.parameters();
  row.flops = session.flops_per_step(batch);
  for (const Step& step : session.train_plan(batch).steps) row.bytes += step.cost.bytes;
  row.cpu = measure_session(model, cpu, data.view(), options.seconds);
  row.resident = measure_session(model, device, data.view(), options.seconds);
  row.baseline = measure_baseline(model, device, data.view(), options.seconds);
  return row;
}

BatchRow measure_batch(const nn::Model& model, std::int64_t batch, const MeasureOptions& options) {
  SessionOptions session_options = study_session(options);
  const RandomBatch data(model, session_options.target, batch);
  const auto step_of = [&](const std::string& device) {
    session_options.device = device;
    Session session(model, session_options);
    return time_steps(session, data.view(), {.seconds = options.seconds}).median();
  };
  return {.model = model.name, .batch = batch, .cpu = step_of("cpu"), .resident = step_of(options.device)};
}

const std::vector<Cure>& cures() {
  static const std::vector<Cure> list{
      {"as MNN",
       "kernels in MNN 1.1's shape; gradients and parameters cross one by one with blocking calls, converted, "
       "through new buffers; optimizer on the host"},
      {"tuned kernels", "our kernels, still unfused"},
      {"one transfer", "the same bytes in one transfer each way: one read that is waited for, one write that is not"},
      {"resident", "state and optimizer on the device; results are collected later"},
      {"zero-copy input", "the host fills the batch in place, two steps under way"},
      {"fusion", "pointwise work inside the kernels, small pieces of work in common launches"},
      {"replay", "the step is recorded once and replayed, where the device can"}};
  return list;
}

CureRow measure_cure(std::size_t cure, const nn::Model& model, std::int64_t batch, const MeasureOptions& options) {
  DCHECK(cure < cures().size());
  SessionOptions session_options = study_session(options);
  const RandomBatch data(model, session_options.target, batch);
  CureRow row{.model = model.name, .batch = batch, .name = cures()[cure].name, .change = cures()[cure].change};
  const StepTiming timing{.seconds = options.seconds};
  if (cure <= 2) {
    if (cure == 0) session_options.kernels = KernelChoice::mnn;
    BaselineSession baseline(model, session_options, {.one_by_one = cure < 2}, batch);
    const StepTimes times = time_steps([&] { baseline.train(data.view()); }, timing);
    const Counters before = baseline.counters();
    for (int i = 0; i < kComparedSteps; ++i) baseline.train(data.view());
    row.counts = counts_of(baseline.counters() - before, kComparedSteps);
    row.milliseconds = times.median();
    return row;
  }
  session_options.zero_copy = cure >= 4;
  session_options.merge = cure >= 5;
  if (cure < 5) session_options.passes_off = fusion_passes();
  session_options.replay = cure >= 6;
  Session session(model, session_options);
  const StepTimes times = time_steps(session, data.view(), timing);
  row.counts = counts_of(times.counted, times.steps);
  row.milliseconds = times.median();
  return row;
}

}  // namespace stoker
