#include "profile/model_profile.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "profile/known_ceilings.h"
#include "run/api.h"
#include "run/random_batch.h"

namespace stoker {
namespace {

constexpr int kWarmupSteps = 3;
constexpr double kSeconds = 1.0;
constexpr int kFewestSteps = 10;
constexpr int kMostSteps = 200;  // more would only make the trace larger

SessionOptions recorded_session(const nn::Model& model, const ProfileOptions& options, Recorder& recorder) {
  SessionOptions own = measured_session(model, options);
  own.recorder = &recorder;
  if (options.interrupt) own.interrupt = options.interrupt;
  return own;
}

void tell(const ProfileOptions& options, const std::string& stage) {
  if (options.interrupt) options.interrupt();
  if (options.on_stage) options.on_stage(stage);
}

int warm_up(Session& session, const BatchView& batch, int wanted) {
  session.warm_up(batch);
  const std::int64_t start = Recorder::now();
  for (int i = 0; i < kWarmupSteps; ++i) static_cast<void>(session.train(batch));
  if (wanted > 0) return wanted;
  const double seconds = static_cast<double>(Recorder::now() - start) * 1e-9 / kWarmupSteps;
  return std::clamp(static_cast<int>(std::lround(kSeconds / seconds)), kFewestSteps, kMostSteps);
}

// A device that refuses to be measured is profiled without a roofline.
std::optional<Ceilings> ceilings_of(const std::string& device, int threads) {
  try {
    const std::unique_ptr<Backend> backend =
        make_backend(device, {.threads = threads, .self_test = false, .tuned = false});
    const Ceilings ceilings = known_or_measured(*backend);
    if (ceilings.flops > 0) return ceilings;
  } catch (const Error& error) {
    if (error.code() != Code::unsupported) throw;
  }
  return std::nullopt;
}

}  // namespace

ModelProfile profile_model(const nn::Model& model, const ProfileOptions& options, Recorder& recorder) {
  require(options.batch >= 0 && options.steps >= 0, Code::bad_argument,
          "profile: batch and steps must not be negative");
  const std::int64_t batch = options.batch > 0 ? options.batch : model.default_batch;
  tell(options, "preparing " + model.name);
  Session session(model, recorded_session(model, options, recorder));
  const RandomBatch data(model, session.options().target, batch);
  session.prepare_training(batch);
  tell(options, "warming up");
  const int steps = warm_up(session, data.view(), options.steps);
  tell(options, "profiling");
  const auto step = [&] {
    session.submit(data.view());
    while (session.collect(false)) {
    }
  };
  ProfiledSteps profiled{.steps = steps,
                         .step = step,
                         .finish = [&] { session.settle(); },
                         .counters = [&] { return session.counters(); },
                         .progress = {}};
  if (options.on_step) profiled.progress = [&](int done) { return options.on_step(done, steps); };
  const Plan& plan = session.train_plan(batch);
  ModelProfile result{.model = model.name,
                      .device = session.device(),
                      .batch = batch,
                      .parameters = session.parameters(),
                      .state_bytes = plan.state_bytes,
                      .input_bytes = plan.input_bytes,
                      .profile = profile_steps(recorder, profiled),
                      .memory = profile_memory(plan),
                      .ceilings = {}};
  // Who has stopped it wants to see what there is, and at once; and it must not be lost by another interrupt.
  if (options.ceilings && result.profile.steps == steps) {
    if (options.on_stage) options.on_stage("measuring the device's ceilings");
    result.ceilings = ceilings_of(result.device.id, options.threads);
  }
  return result;
}

}  // namespace stoker
