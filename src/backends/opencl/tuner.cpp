#include "backends/opencl/tuner.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "backends/opencl/check.h"
#include "backends/opencl/target.h"
#include "backends/run_graph.h"
#include "base/error.h"
#include "base/random.h"
#include "ops/cost.h"
#include "ops/ops.h"
#include "plan/plan.h"

namespace stoker::opencl {
namespace {

using Clock = std::chrono::steady_clock;
using Outputs = std::vector<std::vector<float>>;

constexpr int kRounds = 5;           // of alternating timing
constexpr double kTolerance = 1e-3;  // of the largest value
constexpr double kClearGain = 0.97;  // of the time: less is noise

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// A node alone: its inputs are the graph's, and its outputs too.
Graph isolated(const Graph& graph, const Node& node) {
  GraphBuilder b;
  std::map<Value, Value> inputs;
  Node alone = node;
  for (Value& value : alone.inputs) {
    const auto [at, added] = inputs.try_emplace(value);
    if (added) at->second = ops::input(b, str("x", inputs.size()), graph.spec(value));
    value = at->second;
  }
  const auto outputs = static_cast<int>(node.outputs.size());
  const Value first = b.add_node(std::move(alone));
  for (int i = 0; i < outputs; ++i) b.set_output(str("y", i), {first.node, i});
  return std::move(b).finish();
}

// Reals in [-1, 1], zeros of any other type.
std::vector<Bytes> random_inputs(const Graph& graph) {
  std::vector<Bytes> inputs;
  for (const NamedValue& input : graph.inputs) {
    const Spec& spec = graph.spec(input.value);
    Bytes& bytes = inputs.emplace_back(static_cast<std::size_t>(spec.bytes()));
    if (spec.dtype != DType::f32) continue;
    Random random(inputs.size());
    for (float& value : std::span(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)))
      value = random.uniform(-1.0F, 1.0F);
  }
  return inputs;
}

bool agree(const Outputs& a, const Outputs& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (difference(a[i], b[i]) > kTolerance) return false;
  }
  return true;
}

// One problem of one family, with a node that has it.
class Duel {
 public:
  Duel(ClBackend& backend, TuningKey key, const Graph& graph)
      : backend_(backend), key_(std::move(key)), graph_(graph), inputs_(random_inputs(graph)) {}

  TuneResult run(std::span<const Params> candidates) {
    TuneResult result{.kernel = key_.first, .problem = key_.second};
    const Params start = backend_.tuning().params(key_.first, key_.second);
    const bool was_set = backend_.tuning().tuned().contains(key_);
    backend_.tuning().quarantine(key_.first);
    const Outputs right = outputs(*prepared());
    backend_.tuning().release(key_.first);
    result.before = result.after = start;
    std::unique_ptr<GraphRun> best = prepared();
    for (const Params& params : candidates) {
      ++result.tried;
      try_out(params, right, best, result);
    }
    if (result.after != start) confirm(start, *best, result);
    if (was_set || result.after != start) {
      backend_.tuning().set(key_.first, key_.second, result.after);
    } else {
      backend_.tuning().reset(key_.first, key_.second);
    }
    return result;
  }

 private:
  [[nodiscard]] std::unique_ptr<GraphRun> prepared() const {
    return std::make_unique<GraphRun>(backend_, make_plan(graph_, backend_.target()), inputs_);
  }

  static Outputs outputs(GraphRun& run) {
    run.run();
    Outputs list;
    for (std::size_t i = 0; i < run.plan().outputs.size(); ++i) list.push_back(run.output(i));
    return list;
  }

  static double seconds(GraphRun& run) {
    const std::vector<double> steps = run.executable().timings();
    return std::reduce(steps.begin(), steps.end());
  }

  // The medians of both, measured in turns.
  static std::pair<double, double> measure(GraphRun& a, GraphRun& b) {
    std::vector<double> first;
    std::vector<double> second;
    for (int round = 0; round < kRounds; ++round) {
      first.push_back(seconds(a));
      second.push_back(seconds(b));
    }
    std::ranges::sort(first);
    std::ranges::sort(second);
    return {first[kRounds / 2], second[kRounds / 2]};
  }

  void try_out(const Params& params, const Outputs& right, std::unique_ptr<GraphRun>& best, TuneResult& result) {
    backend_.tuning().set(key_.first, key_.second, params);
    try {
      std::unique_ptr<GraphRun> run = prepared();
      if (!agree(right, outputs(*run))) {
        ++result.wrong;
        return;
      }
      const auto [old_seconds, new_seconds] = measure(*best, *run);
      if (result.seconds_before == 0.0) result.seconds_before = result.seconds_after = old_seconds;
      if (new_seconds >= kClearGain * old_seconds) return;
      result.after = params;
      best = std::move(run);
    } catch (const Error& error) {
      if (error.code() == Code::cancelled) throw;
      ++result.failed;
    }
  }

  // Among many candidates one is lucky: the winner meets the first parameters once more.
  void confirm(const Params& start, GraphRun& best, TuneResult& result) {
    backend_.tuning().set(key_.first, key_.second, start);
    const std::unique_ptr<GraphRun> first = prepared();
    std::tie(result.seconds_before, result.seconds_after) = measure(*first, best);
    if (result.seconds_after < kClearGain * result.seconds_before) return;
    result.after = start;
    result.seconds_after = result.seconds_before;
  }

  ClBackend& backend_;
  TuningKey key_;
  const Graph& graph_;
  std::vector<Bytes> inputs_;
};

struct Problem {
  TuningKey key;
  const Node* node = nullptr;  // the first that has it
  double weight = 0.0;         // of all that have it: bytes moved, and flops as bytes
};

// The heaviest first, so that time that runs out was well spent.
std::vector<Problem> problems_of(ClBackend& backend, const Graph& graph) {
  constexpr double kFlopsPerByte = 8.0;
  std::map<TuningKey, Problem> problems;
  std::set<TuningKey> asked;
  backend.tuning().record(&asked);
  for (const Node& node : graph.nodes) {
    asked.clear();
    if (find_kernel(node) != nullptr) static_cast<void>(backend.target().workspace(graph, node));
    for (const TuningKey& key : asked) {
      Problem& problem = problems.try_emplace(key, Problem{.key = key, .node = &node}).first->second;
      const Cost cost = cost_of(graph, node);
      problem.weight += cost.bytes + cost.flops / kFlopsPerByte;
    }
  }
  backend.tuning().record(nullptr);
  std::vector<Problem> list;
  for (auto& [key, problem] : problems) list.push_back(std::move(problem));
  std::ranges::stable_sort(list, std::greater<>(), &Problem::weight);
  return list;
}

// What is worth trying: not what is used already.
std::vector<Params> challengers(ClBackend& backend, const TuningKey& key, const TuneOptions& options) {
  std::vector<Params> list;
  if (backend.tuning().is_plain(key.first)) return list;
  const Params& used = backend.tuning().params(key.first, key.second);
  for (Params& params : options.candidates ? options.candidates(key.first) : candidates(key.first, backend.device())) {
    if (params != used && std::ranges::find(list, params) == list.end()) list.push_back(std::move(params));
  }
  return list;
}

}  // namespace

std::vector<TuneResult> tune(ClBackend& backend, const Graph& graph, const TuneOptions& options) {
  const Clock::time_point start = Clock::now();
  std::vector<Problem> problems = problems_of(backend, graph);
  std::erase_if(problems, [&](const Problem& p) { return challengers(backend, p.key, options).empty(); });
  std::vector<TuneResult> results;
  for (const Problem& problem : problems) {
    if (seconds_since(start) > options.seconds && !results.empty()) break;
    const auto done = static_cast<int>(results.size());
    if (options.on_progress && !options.on_progress(done, static_cast<int>(problems.size()))) break;
    const Graph alone = isolated(graph, *problem.node);
    results.push_back(Duel(backend, problem.key, alone).run(challengers(backend, problem.key, options)));
    if (options.on_result) options.on_result(results.back());
  }
  return results;
}

}  // namespace stoker::opencl
