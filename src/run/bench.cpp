// bench(): times training steps on random data, completion to completion.
#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "backends/backend.h"
#include "base/error.h"
#include "run/api.h"
#include "run/random_batch.h"
#include "run/step_times.h"

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void add_counts(BenchRow& row, const Counters& counted) {
  const auto a_step = [&](std::int64_t count) { return static_cast<double>(count) / row.steps; };
  row.host_bytes_per_step = a_step(counted.written + counted.read + counted.mapped_in + counted.mapped_out);
  row.blocking_calls_per_step = a_step(counted.blocking_calls);
  row.back_pressure_per_step = a_step(counted.back_pressure);
  row.launches_per_step = a_step(counted.launches);
  row.replays_per_step = a_step(counted.replays);
  row.flushes_per_step = a_step(counted.flushes);
  row.objects_created_per_step = a_step(counted.objects_created);
}

}  // namespace

SessionOptions measured_session(const nn::Model& model, const BenchOptions& options) {
  // A small rate: random labels cannot be learnt, and the weights must stay finite.
  const TrainOptions training{.lr = 1e-4,
                              .momentum = 0.9,
                              .device = options.device,
                              .auto_batch = options.batch,
                              .threads = options.threads,
                              .self_test = options.self_test,
                              .replay = options.replay,
                              .on_note = options.on_note,
                              .passes_off = options.passes_off};
  SessionOptions own = to_session_options(training);
  resolve_device(model, training, own);
  return own;
}

BenchRow bench(const Model& model, const BenchOptions& options) {
  require(options.batch >= 0 && options.steps >= 0, Code::bad_argument, "bench: batch and steps must not be negative");
  const nn::Model& own = ModelAccess::get(model);
  const std::int64_t batch = options.batch > 0 ? options.batch : own.default_batch;
  const SessionOptions session_options = measured_session(own, options);
  const RandomBatch data(own, session_options.target, batch);

  const Clock::time_point start = Clock::now();
  Session session(own, session_options);
  session.prepare_training(batch);
  const double setup_ms = milliseconds_since(start);
  session.train(data.view());
  const double first_step_ms = milliseconds_since(start);

  const StepTimes timed = time_steps(session, data.view(), {.steps = options.steps});
  const std::vector<double>& times = timed.milliseconds;
  const double median = timed.median();
  const int threads =
      options.threads > 0 ? options.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  BenchRow row{.model = own.name,
               .device = session.device().id,
               .batch = batch,
               .threads = session.device().id == "cpu" ? threads : 0,
               .params = session.parameters(),
               .steps = timed.steps,
               .step_ms_median = median,
               .step_ms_min = times.front(),
               .step_ms_p90 = times[std::min(times.size() - 1, times.size() * 9 / 10)],
               .items_per_s = static_cast<double>(batch) / median * 1e3,
               .gflops = session.flops_per_step(batch) / median / 1e6,
               .peak_bytes = session.peak_bytes(),
               .peak_rss = peak_rss(),
               .setup_ms = setup_ms,
               .first_step_ms = first_step_ms};
  add_counts(row, timed.counted);
  if (row.device != "cpu") row.movement_share = std::numeric_limits<double>::quiet_NaN();
  return row;
}

}  // namespace stoker
