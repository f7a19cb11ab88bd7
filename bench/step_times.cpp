// Where a training step's time goes on a device: each step's median time, GFLOP/s and GB/s, the longest first. On
// OpenCL steps that share a launch share its time.
//   bench_step_times MODEL [BATCH] [THREADS] [ROUNDS] [DEVICE]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "graph/op_def.h"
#include "nn/model.h"
#include "run/session.h"

namespace {

using namespace stoker;

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

void print_row(const char* what, double seconds, double total, const Cost& cost) {
  std::printf("%9.1f us %5.1f %%  %8.1f GFLOP/s %7.1f GB/s  %s\n", 1e6 * seconds, 100 * seconds / total,
              cost.flops / seconds * 1e-9, cost.bytes / seconds * 1e-9, what);
}

std::string describe(const Plan& plan, const Step& step) {
  const Node& node = plan.graph.nodes[static_cast<std::size_t>(step.node)];
  std::string text = node.op->name + (node.fusion ? "*" : "") + " " + node.name + " " + to_string(step.phase);
  for (const Value input : node.inputs) text += " " + to_string(plan.graph.spec(input).shape);
  text += " ->";
  for (const Spec& output : node.outputs) text += " " + to_string(output.shape);
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_step_times MODEL [BATCH] [THREADS] [ROUNDS] [DEVICE]\n");
    return 2;
  }
  const nn::Model& model = nn::find_model(argv[1]);
  const std::int64_t batch = argc > 2 ? std::atoll(argv[2]) : model.default_batch;
  SessionOptions options;
  options.optimizer.momentum = 0.9;
  options.threads = argc > 3 ? std::atoi(argv[3]) : 2;
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 20;
  options.device = argc > 5 ? argv[5] : "cpu";
  options.self_test = false;
  Session session(model, options);
  Random random(1);
  std::vector<float> items(static_cast<std::size_t>(batch * model.item.elements()));
  std::vector<std::int32_t> labels(static_cast<std::size_t>(batch));
  for (float& value : items) value = random.normal();
  for (std::int32_t& label : labels) label = static_cast<std::int32_t>(random.below(10));
  static_cast<void>(session.train({batch, items, std::as_bytes(std::span(labels))}));

  const Plan& plan = session.train_plan(batch);
  std::vector<std::vector<double>> times(plan.steps.size());
  for (int round = 0; round < rounds; ++round) {
    const std::vector<double> seconds = session.train_timings(batch);
    for (std::size_t i = 0; i < seconds.size(); ++i) times[i].push_back(seconds[i]);
  }
  std::vector<std::pair<double, std::size_t>> sorted;
  std::map<std::string, std::pair<double, Cost>> by_op;
  double total = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double seconds = median(times[i]);
    total += seconds;
    sorted.emplace_back(seconds, i);
    auto& [op_seconds, cost] = by_op[plan.graph.nodes[static_cast<std::size_t>(plan.steps[i].node)].op->name];
    op_seconds += seconds;
    cost.flops += plan.steps[i].cost.flops;
    cost.bytes += plan.steps[i].cost.bytes;
  }
  std::ranges::sort(sorted, std::greater{});
  for (std::size_t i = 0; i < std::min<std::size_t>(sorted.size(), 40); ++i) {
    const Step& step = plan.steps[sorted[i].second];
    print_row(describe(plan, step).c_str(), sorted[i].first, total, step.cost);
  }
  std::printf("\n");
  for (const auto& [op, sum] : by_op) print_row(op.c_str(), sum.first, total, sum.second);
  std::printf("\n%s, batch %lld, %d threads: %.3f ms a step (sum of medians)\n", model.name.c_str(),
              static_cast<long long>(batch), options.threads, 1e3 * total);
}
