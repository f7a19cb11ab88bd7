// The public functions about one OpenCL device: its self-test and its tuning.
#include "backends/opencl/self_test.h"
#include "backends/opencl/tuner.h"
#include "base/error.h"
#include "run/api.h"

namespace stoker {
namespace {

void require_opencl(const char* what, const std::string& device) {
  require(device.starts_with("opencl"), Code::bad_argument, what,
          ": expected an OpenCL device (opencl, opencl:N), not '", device, "'");
}

KernelCheck to_public(const opencl::CheckResult& r) {
  return {.kernel = r.family, .name = r.name, .error = r.error, .passed = r.passed, .problem = r.problem};
}

TunedKernel to_public(const opencl::TuneResult& r) {
  return {.kernel = r.kernel,
          .problem = r.problem,
          .before = opencl::to_string(r.before),
          .after = opencl::to_string(r.after),
          .ms_before = 1e3 * r.seconds_before,
          .ms_after = 1e3 * r.seconds_after,
          .tried = r.tried,
          .wrong = r.wrong,
          .failed = r.failed};
}

}  // namespace

DeviceCheck check_device(const std::string& device, const std::function<void(const KernelCheck&)>& on_check) {
  require_opencl("check", device);
  const std::unique_ptr<opencl::ClBackend> backend = opencl::make_seeded_backend(device, {});
  DeviceCheck check{.passed = true};
  const opencl::SelfTest test = opencl::run_self_test(*backend, {.on_result = [&](const opencl::CheckResult& result) {
    check.checks.push_back(to_public(result));
    check.passed = check.passed && result.passed;
    if (on_check) on_check(check.checks.back());
  }});
  check.notes = opencl::describe(test, backend->device());
  if (const std::string why = opencl::store_self_test(backend->device(), test); !why.empty())
    check.notes.push_back("note: this is not remembered: " + why);
  return check;
}

std::vector<TunedKernel> tune_kernels(const Model& model, const TuneOptions& options) {
  require_opencl("tune", options.device);
  const nn::Model& net = ModelAccess::get(model);
  Session session(net, {.device = options.device, .self_test = false, .note = options.on_note});
  const Plan& plan = session.train_plan(options.batch > 0 ? options.batch : net.default_batch);
  const std::unique_ptr<opencl::ClBackend> backend = opencl::make_seeded_backend(options.device, {});
  opencl::load_tuning(backend->device(), backend->tuning());
  std::vector<TunedKernel> results;
  std::string stored;
  const auto keep = [&](const opencl::TuneResult& result) {
    stored = opencl::store_tuning(backend->device(), backend->tuning());
    results.push_back(to_public(result));
    if (options.on_result) options.on_result(results.back());
  };
  static_cast<void>(opencl::tune(
      *backend, plan.graph,
      {.seconds = options.seconds, .candidates = {}, .on_progress = options.on_progress, .on_result = keep}));
  if (!stored.empty() && options.on_note) options.on_note("note: the result is not stored: " + stored);
  return results;
}

}  // namespace stoker
