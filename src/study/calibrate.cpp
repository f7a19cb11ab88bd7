#include "study/calibrate.h"

#include <algorithm>
#include <map>

#include "autodiff/backward.h"
#include "backends/run_graph.h"
#include "base/random.h"
#include "graph/op_def.h"
#include "ops/ops.h"
#include "passes/pass.h"

namespace stoker {
namespace {

constexpr int kRuns = 7;

struct Sample {
  WorkKind kind;
  Cost cost;
  double seconds = 0;
};

// An op and its gradients, each alone.
Graph with_gradients(GraphBuilder& b, Value result, std::span<const Value> inputs) {
  const Value cotangent = ops::input(b, "dy", b.graph().spec(result));
  b.set_output("y", result);
  const std::vector<Value> gradients = backward(b, std::span(&result, 1), std::span(&cotangent, 1), inputs);
  for (std::size_t i = 0; i < gradients.size(); ++i) b.set_output("d" + std::to_string(i), gradients[i]);
  return std::move(b).finish();
}

Graph matmul_graph(std::int64_t rows, std::int64_t size) {
  GraphBuilder b;
  const Value inputs[] = {ops::input(b, "x", {DType::f32, {rows, size}}),
                          ops::input(b, "w", {DType::f32, {size, size}})};
  return with_gradients(b, ops::matmul(b, inputs[0], inputs[1]), inputs);
}

Graph conv_graph(std::int64_t batch, std::int64_t side, std::int64_t channels, bool depthwise) {
  GraphBuilder b;
  const std::int64_t depth = depthwise ? 1 : channels;
  const Value inputs[] = {ops::input(b, "x", {DType::f32, {batch, side, side, channels}}),
                          ops::input(b, "w", {DType::f32, {3, 3, depth, channels}})};
  ops::Window window;
  window.pad = {1, 1, 1, 1};
  return with_gradients(b, ops::conv2d(b, inputs[0], inputs[1], window, depthwise ? channels : 1), inputs);
}

Graph stream_graph(std::int64_t elements) {
  GraphBuilder b;
  const Spec spec{DType::f32, {elements}};
  b.set_output("y", ops::add(b, ops::input(b, "x", spec), ops::input(b, "w", spec)));
  return std::move(b).finish();
}

std::vector<Graph> calibration_graphs() {
  std::vector<Graph> graphs;
  for (const std::int64_t size : {32, 96, 320, 768})
    graphs.push_back(matmul_graph(std::min<std::int64_t>(size, 256), size));
  graphs.push_back(conv_graph(4, 12, 8, false));
  graphs.push_back(conv_graph(8, 16, 24, false));
  graphs.push_back(conv_graph(8, 16, 96, false));
  graphs.push_back(conv_graph(8, 8, 48, true));
  graphs.push_back(conv_graph(8, 32, 96, true));
  for (const std::int64_t elements : {256, 4096, 65536, 1 << 20, 8 << 20}) graphs.push_back(stream_graph(elements));
  return graphs;
}

std::vector<Bytes> random_inputs(const Graph& graph) {
  std::vector<Bytes> inputs;
  Random random(1);
  for (const NamedValue& input : graph.inputs) {
    Bytes& bytes = inputs.emplace_back(static_cast<std::size_t>(graph.spec(input.value).bytes()));
    for (float& value : std::span(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)))
      value = random.uniform(-1.0F, 1.0F);
  }
  return inputs;
}

// The fastest of a few runs, step by step.
void measure(Backend& backend, const Graph& graph, std::vector<Sample>& samples) {
  const Target& target = backend.target();
  GraphRun run(backend, make_plan(run_passes(graph, target), target), random_inputs(graph));
  std::vector<double> best = run.executable().timings();
  for (int i = 0; i < kRuns; ++i) {
    const std::vector<double> seconds = run.executable().timings();
    for (std::size_t step = 0; step < best.size(); ++step) best[step] = std::min(best[step], seconds[step]);
  }
  for (std::size_t i = 0; i < best.size(); ++i) {
    const Step& step = run.plan().steps[i];
    const OpDef& op = *run.plan().graph.nodes[static_cast<std::size_t>(step.node)].op;
    samples.push_back({kind_of(op.name), step.cost, best[i]});
  }
}

// Sizes and seconds, to a curve of rates. Samples of about one size (an op and its gradients) are averaged, and more
// work never takes less time.
Curve curve_of(const std::map<double, std::vector<double>>& seconds_by_size, double ceiling) {
  Curve curve;
  double longest = 0;
  for (const auto& [size, seconds] : seconds_by_size) {
    double mean = 0;
    for (const double value : seconds) mean += value / static_cast<double>(seconds.size());
    longest = std::max({longest, mean, size / ceiling});
    curve.points.emplace_back(size, size / std::max(longest, 1e-9));
  }
  if (curve.points.empty()) curve = Curve::constant(ceiling);
  return curve;
}

}  // namespace

Machine calibrated(Backend& backend, const Ceilings& ceilings) {
  std::vector<Sample> samples;
  for (const Graph& graph : calibration_graphs()) measure(backend, graph, samples);
  // What a kernel takes that does nothing is booked as its launch.
  double least = samples.front().seconds;
  for (const Sample& sample : samples) least = std::min(least, sample.seconds);
  const bool is_host = backend.describe().id == "cpu";
  const double start = is_host ? ceilings.launch_seconds : least;
  std::map<WorkKind, std::map<double, std::vector<double>>> flops;
  std::map<double, std::vector<double>> bytes;
  for (const Sample& sample : samples) {
    const double seconds = std::max(sample.seconds - start, 0.02 * sample.seconds);
    if (sample.kind == WorkKind::stream) {
      bytes[sample.cost.bytes].push_back(seconds);
    } else {
      flops[sample.kind][sample.cost.flops].push_back(seconds);
    }
  }
  Machine machine;
  for (int kind = 0; kind < kWorkKinds; ++kind)
    machine.compute[static_cast<std::size_t>(kind)] = curve_of(flops[static_cast<WorkKind>(kind)], ceilings.flops);
  // Caches are faster than memory: no ceiling but what was measured.
  machine.memory = curve_of(bytes, 1e15);
  machine.launch_seconds = ceilings.launch_seconds + (is_host ? 0 : least);
  machine.read_seconds = ceilings.read_seconds;
  machine.write_seconds = ceilings.write_seconds;
  machine.map_seconds = ceilings.map_seconds;
  if (ceilings.to_device > 0) machine.to_device = ceilings.to_device;
  if (ceilings.to_host > 0) machine.to_host = ceilings.to_host;
  machine.host_memory = ceilings.bandwidth;
  return machine;
}

}  // namespace stoker
