#include "backends/opencl/check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/backend.h"
#include "backends/opencl/check_cases.h"
#include "base/error.h"
#include "passes/pass.h"

namespace stoker::opencl {
namespace {

// All outputs, one after another.
std::vector<std::vector<float>> compute(Backend& backend, const Graph& graph, std::span<const Bytes> inputs) {
  GraphRun run(backend, make_plan(run_passes(graph, backend.target()), backend.target()), inputs);
  run.run();
  std::vector<std::vector<float>> outputs;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) outputs.push_back(run.output(i));
  return outputs;
}

CheckResult check(const CheckCase& test, Backend& device, Backend& cpu) {
  CheckResult result{.family = test.family, .name = test.name};
  try {
    CaseGraph built;
    test.build(built);
    built.add_gradients();
    const std::vector<Bytes> inputs = built.inputs();
    const Graph graph = std::move(built.builder()).finish();
    const auto want = compute(cpu, graph, inputs);
    const auto got = compute(device, graph, inputs);
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double error = difference(want[i], got[i]);
      if (error > test.tolerance && result.problem.empty()) result.problem = str(graph.outputs[i].name, " differs");
      result.error = std::max(result.error, error);
    }
  } catch (const Error& error) {
    if (error.code() == Code::no_memory) throw;
    result.problem = error.what();
  }
  result.passed = result.problem.empty();
  return result;
}

}  // namespace

double difference(std::span<const float> want, std::span<const float> got) {
  double largest = 1.0;
  double worst = 0.0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const auto w = static_cast<double>(want[i]);
    const auto g = static_cast<double>(got[i]);
    if (std::isnan(w) && std::isnan(g)) continue;
    if (std::isnan(w - g)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(w));
    worst = std::max(worst, std::abs(w - g));
  }
  return worst / largest;
}

std::vector<CheckResult> run_checks(Backend& device, const CheckOptions& options) {
  const std::unique_ptr<Backend> cpu = make_backend("cpu", {.threads = 1});
  std::vector<CheckResult> results;
  for (const CheckCase& test : check_cases()) {
    if ((options.brief && !test.brief) || (!options.family.empty() && options.family != test.family)) continue;
    results.push_back(check(test, device, *cpu));
    if (options.on_result) options.on_result(results.back());
  }
  return results;
}

}  // namespace stoker::opencl
