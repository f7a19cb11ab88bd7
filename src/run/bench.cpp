// bench(): times training steps on random data, completion to completion.
#include <algorithm>
#include <chrono>
#include <thread>

#include "backends/backend.h"
#include "base/error.h"
#include "base/random.h"
#include "run/api.h"

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kDefaultSeconds = 2.0;
constexpr int kFewestSteps = 5;
constexpr int kMostSteps = 1000;
constexpr int kWarmupSteps = 2;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct RandomBatch {
  std::vector<float> items;
  std::vector<std::int32_t> labels;

  RandomBatch(const nn::Model& model, std::int64_t count) {
    Random random(1);
    items.resize(static_cast<std::size_t>(count * model.item.elements()));
    labels.resize(static_cast<std::size_t>(count));
    for (float& item : items) item = random.uniform();
    for (std::int32_t& label : labels) {
      label = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(model.outputs)));
    }
  }
  [[nodiscard]] BatchView view() const {
    return {static_cast<std::int64_t>(labels.size()), items, std::as_bytes(std::span(labels))};
  }
};

// The milliseconds of each step, sorted.
std::vector<double> time_steps(Session& session, const BatchView& batch, int steps) {
  for (int i = 0; i < kWarmupSteps; ++i) session.train(batch);
  std::vector<double> times;
  const Clock::time_point start = Clock::now();
  const auto done = [&] {
    const int count = static_cast<int>(times.size());
    if (steps > 0) return count >= steps;
    return count >= kMostSteps || (count >= kFewestSteps && milliseconds_since(start) > kDefaultSeconds * 1e3);
  };
  while (!done()) {
    const Clock::time_point before = Clock::now();
    session.train(batch);
    times.push_back(milliseconds_since(before));
  }
  std::ranges::sort(times);
  return times;
}

}  // namespace

BenchRow bench(const Model& model, const BenchOptions& options) {
  require(options.batch >= 0 && options.steps >= 0, Code::bad_argument, "bench: batch and steps must not be negative");
  const nn::Model& own = ModelAccess::get(model);
  const std::int64_t batch = options.batch > 0 ? options.batch : own.default_batch;
  const RandomBatch data(own, batch);

  const Clock::time_point start = Clock::now();
  // A small rate: random labels cannot be learnt, and the weights must stay finite.
  Session session(own, to_session_options({.lr = 1e-4,
                                           .momentum = 0.9,
                                           .device = options.device == "auto" ? "cpu" : options.device,
                                           .threads = options.threads,
                                           .passes_off = options.passes_off}));
  static_cast<void>(session.train_plan(batch));
  const double setup_ms = milliseconds_since(start);

  const std::vector<double> times = time_steps(session, data.view(), options.steps);
  const double median = times[times.size() / 2];
  BenchRow row{.model = own.name,
               .device = session.device().id,
               .batch = batch,
               .threads = options.threads > 0 ? options.threads
                                              : std::max(1, static_cast<int>(std::thread::hardware_concurrency())),
               .params = session.parameters(),
               .steps = static_cast<int>(times.size()),
               .step_ms_median = median,
               .step_ms_min = times.front(),
               .step_ms_p90 = times[std::min(times.size() - 1, times.size() * 9 / 10)],
               .items_per_s = static_cast<double>(batch) / median * 1e3,
               .gflops = session.flops_per_step(batch) / median / 1e6,
               .peak_bytes = session.peak_bytes(),
               .peak_rss = peak_rss(),
               .setup_ms = setup_ms};
  return row;
}

}  // namespace stoker
