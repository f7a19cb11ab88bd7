#include "run/session.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "backends/backend.h"
#include "base/error.h"
#include "passes/pass.h"
#include "run/step_graph.h"

namespace stoker {
namespace {

// The step counter takes part in fp32 expressions, which count exactly up to here.
constexpr std::int64_t kMostSteps = std::int64_t{1} << 24;
constexpr std::int64_t kPredictBatch = 256;  // predict() works in pieces of this many items

// A graph planned and compiled. The plan is kept on the heap: the executable refers to it.
struct Compiled {
  std::unique_ptr<Plan> plan;
  std::unique_ptr<Executable> executable;
};

// A piece of memory that grows with the largest plan that uses it.
struct Shared {
  std::unique_ptr<Memory> memory;
  std::int64_t bytes = 0;
};

}  // namespace

struct Session::Impl {
  Impl(nn::Model the_model, SessionOptions the_options) : model(std::move(the_model)), options(std::move(the_options)) {
    require(options.accumulate >= 1, Code::bad_argument, "accumulate must be at least 1, not ", options.accumulate);
    require(options.clip >= 0, Code::bad_argument, "clip must not be negative: ", options.clip);
    require(options.label_smoothing >= 0 && options.label_smoothing < 1, Code::bad_argument,
            "label smoothing must be in [0, 1), not ", options.label_smoothing);
    backend = make_backend(options.device, {.threads = options.threads});
    const StepGraph step = build_step(model, options, options.accumulate > 1 ? StepKind::apply : StepKind::train, 1);
    states = step.graph.states;
    for (std::size_t i = 0; i < states.size(); ++i) {
      memories.push_back(backend->allocate(states[i].spec.bytes()));
      initialise(i, step.inits[i]);
    }
  }

  void initialise(std::size_t i, const nn::Init& init) {
    const std::vector<float> values = nn::initial_values(init, states[i], options.seed);
    if (states[i].spec.dtype == DType::f32) {
      backend->upload(*memories[i], 0, std::as_bytes(std::span(values)));
      return;
    }
    require(states[i].spec.dtype == DType::i32, Code::bad_argument, "state ", states[i].name,
            ": only f32 and i32 are kept");
    const std::vector<std::int32_t> integers(values.begin(), values.end());
    backend->upload(*memories[i], 0, std::as_bytes(std::span(integers)));
  }

  [[nodiscard]] std::size_t find_state(std::string_view name) const {
    const auto at = std::ranges::find(states, name, &StateVar::name);
    require(at != states.end(), Code::bad_argument, "there is no state named '", name, "'");
    return static_cast<std::size_t>(at - states.begin());
  }

  Compiled& compiled(StepKind kind, std::int64_t batch) {
    const auto key = std::pair(kind, batch);
    if (const auto at = cache.find(key); at != cache.end()) return at->second;
    const StepGraph step = build_step(model, options, kind, batch);
    const PassOptions passes{.off = options.passes_off};
    Graph graph = run_passes(step.graph, backend->target(), passes);
    Plan plan = make_plan(std::move(graph), backend->target(),
                          {.in_place = passes.is_on(kInPlace), .early_update = passes.is_on(kEarlyUpdate)});
    Compiled entry{std::make_unique<Plan>(std::move(plan)), nullptr};
    const bool moved = make_room(*entry.plan);
    Compiled& stored = cache.emplace(key, std::move(entry)).first->second;
    if (moved) {
      for (auto& [other, existing] : cache) bind(existing);
    } else {
      bind(stored);
    }
    return stored;
  }

  // Grows arena and batch buffers; returns whether any moved, so that earlier executables must be bound again.
  bool make_room(const Plan& plan) {
    bool moved = grow(arena, plan.arena_bytes);
    for (const NamedValue& input : plan.graph.inputs) {
      moved |= grow(inputs[input.name], plan.graph.spec(input.value).bytes());
    }
    return moved;
  }

  bool grow(Shared& shared, std::int64_t bytes) {
    if (shared.memory && shared.bytes >= bytes) return false;
    shared.memory.reset();  // first, so that both never exist at once
    shared.memory = backend->allocate(bytes);
    shared.bytes = bytes;
    return true;
  }

  void bind(Compiled& entry) {
    Bindings bindings{.arena = arena.memory.get()};
    for (const StateVar& state : entry.plan->graph.states)
      bindings.states.push_back(memories[find_state(state.name)].get());
    for (const NamedValue& input : entry.plan->graph.inputs)
      bindings.inputs.push_back(inputs.at(input.name).memory.get());
    entry.executable = backend->compile(*entry.plan, bindings);
  }

  void fill(const BatchView& batch, bool with_targets) {
    const std::int64_t items = batch.count * model.item.elements();
    require(static_cast<std::int64_t>(batch.items.size()) == items, Code::bad_argument, "model ", model.name, " needs ",
            batch.count, " items of shape ", model.item, ", ", items, " values, but got ", batch.items.size());
    backend->upload(*inputs.at("items").memory, 0, std::as_bytes(batch.items));
    if (!with_targets) return;
    const std::int64_t bytes = batch.count * options.target.bytes();
    require(static_cast<std::int64_t>(batch.targets.size()) == bytes, Code::bad_argument, "the targets must be ", bytes,
            " bytes, but are ", batch.targets.size());
    check_labels(batch);
    backend->upload(*inputs.at("targets").memory, 0, batch.targets);
  }

  // Class numbers out of range would make a NaN loss; the caller deserves to hear which one it was.
  void check_labels(const BatchView& batch) const {
    if (options.loss || options.target.dtype != DType::i32 || options.target.shape.rank() != 0) return;
    for (std::int64_t i = 0; i < batch.count; ++i) {
      std::int32_t label = 0;
      std::memcpy(&label, batch.targets.data() + i * 4, 4);
      require(label >= 0 && label < model.outputs, Code::bad_argument, "label ", label, " of item ", i,
              " of the batch is not in 0..", model.outputs - 1, ", the outputs of model ", model.name);
    }
  }

  float scalar_output(const Compiled& entry, std::string_view name) const {
    const std::vector<NamedValue>& outputs = entry.plan->graph.outputs;
    const auto at = std::ranges::find(outputs, name, &NamedValue::name);
    const Place& place = entry.plan->outputs[static_cast<std::size_t>(at - outputs.begin())];
    float value = 0;
    if (place.kind == Place::Kind::constant)
      return entry.plan->graph.nodes[static_cast<std::size_t>(place.index)].attrs.floats("values")[0];
    DCHECK(place.kind == Place::Kind::arena);
    backend->download(*arena.memory, place.offset, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

  StepResult result_of(const Compiled& entry, const BatchView& batch) const {
    return {.loss = scalar_output(entry, "loss"),
            .correct = std::lround(scalar_output(entry, "correct")),
            .count = batch.count,
            .step = steps_done()};
  }

  void require_finite(const Compiled& entry, double loss) const {
    if (scalar_output(entry, "bad") == 0.0F) return;
    fail(Code::not_finite, "step ", steps_done() + 1, ": the ", std::isfinite(loss) ? "gradient" : "loss",
         " is not finite (loss ", loss,
         "). Lower the learning rate, clip the gradients, or look for bad values in the data.");
  }

  [[nodiscard]] std::int64_t steps_done() const {
    std::int32_t step = 0;
    backend->download(*memories[find_state("optimizer.step")], 0, std::as_writable_bytes(std::span(&step, 1)));
    return step;
  }

  nn::Model model;
  SessionOptions options;
  std::unique_ptr<Backend> backend;
  std::vector<StateVar> states;
  std::vector<std::unique_ptr<Memory>> memories;  // one for each state
  Shared arena;
  std::map<std::string, Shared> inputs;
  std::map<std::pair<StepKind, std::int64_t>, Compiled> cache;
  int accumulated = 0;  // micro-batches since the last update
};

Session::Session(nn::Model model, SessionOptions options)
    : impl_(std::make_unique<Impl>(std::move(model), std::move(options))) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

StepResult Session::train(const BatchView& batch, bool last) {
  const bool accumulates = impl_->options.accumulate > 1;
  require(impl_->steps_done() < kMostSteps, Code::bad_argument, "a training has at most ", kMostSteps, " steps");
  Compiled& step = impl_->compiled(accumulates ? StepKind::accumulate : StepKind::train, batch.count);
  impl_->fill(batch, true);
  step.executable->run();
  StepResult result = impl_->result_of(step, batch);
  impl_->require_finite(step, result.loss);
  if (accumulates && (++impl_->accumulated == impl_->options.accumulate || last)) {
    Compiled& apply = impl_->compiled(StepKind::apply, 1);
    apply.executable->run();
    impl_->accumulated = 0;
    impl_->require_finite(apply, result.loss);
    result.step = impl_->steps_done();
  }
  return result;
}

StepResult Session::evaluate(const BatchView& batch) {
  Compiled& step = impl_->compiled(StepKind::evaluate, batch.count);
  impl_->fill(batch, true);
  step.executable->run();
  return impl_->result_of(step, batch);
}

void Session::predict(const BatchView& batch, std::span<float> outputs) {
  const std::int64_t item = impl_->model.item.elements();
  require(static_cast<std::int64_t>(batch.items.size()) == batch.count * item, Code::bad_argument, "model ",
          impl_->model.name, " needs ", batch.count * item, " values for ", batch.count, " items, but got ",
          batch.items.size());
  for (std::int64_t done = 0; done < batch.count; done += kPredictBatch) {
    const std::int64_t count = std::min(kPredictBatch, batch.count - done);
    Compiled& step = impl_->compiled(StepKind::predict, count);
    const Place& place = step.plan->outputs[0];
    const std::int64_t floats = place.bytes / 4;
    require(static_cast<std::int64_t>(outputs.size()) == floats / count * batch.count, Code::bad_argument,
            "predict: the outputs need room for ", floats / count * batch.count, " values, not ", outputs.size());
    impl_->fill(
        {.count = count,
         .items = batch.items.subspan(static_cast<std::size_t>(done * item), static_cast<std::size_t>(count * item))},
        false);
    step.executable->run();
    require(place.kind == Place::Kind::arena, Code::bad_argument, "predict: the model's output is no computed value");
    impl_->backend->download(*impl_->arena.memory, place.offset,
                             std::as_writable_bytes(outputs.subspan(static_cast<std::size_t>(done * floats / count),
                                                                    static_cast<std::size_t>(floats))));
  }
}

const std::vector<StateVar>& Session::states() const { return impl_->states; }

void Session::read_state(std::string_view name, std::span<std::byte> bytes) const {
  const std::size_t i = impl_->find_state(name);
  require(static_cast<std::int64_t>(bytes.size()) == impl_->states[i].spec.bytes(), Code::bad_argument, "state ", name,
          " is ", impl_->states[i].spec, ", ", impl_->states[i].spec.bytes(), " bytes, not ", bytes.size());
  impl_->backend->download(*impl_->memories[i], 0, bytes);
}

void Session::write_state(std::string_view name, std::span<const std::byte> bytes) {
  const std::size_t i = impl_->find_state(name);
  require(static_cast<std::int64_t>(bytes.size()) == impl_->states[i].spec.bytes(), Code::bad_argument, "state ", name,
          " is ", impl_->states[i].spec, ", ", impl_->states[i].spec.bytes(), " bytes, not ", bytes.size());
  impl_->backend->upload(*impl_->memories[i], 0, bytes);
}

std::int64_t Session::steps_done() const { return impl_->steps_done(); }
const nn::Model& Session::model() const { return impl_->model; }
const SessionOptions& Session::options() const { return impl_->options; }

const Plan& Session::train_plan(std::int64_t batch) {
  return *impl_->compiled(impl_->options.accumulate > 1 ? StepKind::accumulate : StepKind::train, batch).plan;
}

const Plan& Session::predict_plan(std::int64_t batch) { return *impl_->compiled(StepKind::predict, batch).plan; }

std::vector<double> Session::train_timings(std::int64_t batch) {
  return impl_->compiled(impl_->options.accumulate > 1 ? StepKind::accumulate : StepKind::train, batch)
      .executable->timings();
}

std::int64_t Session::parameters() const {
  std::int64_t count = 0;
  for (const StateVar& state : impl_->states) {
    if (state.role == StateRole::parameter) count += state.spec.shape.elements();
  }
  return count;
}

std::int64_t Session::peak_bytes() const {
  std::int64_t bytes = impl_->arena.bytes;
  for (const StateVar& state : impl_->states) bytes += state.spec.bytes();
  for (const auto& [name, input] : impl_->inputs) bytes += input.bytes;
  return bytes;
}

double Session::flops_per_step(std::int64_t batch) {
  double flops = 0;
  for (const Step& step : train_plan(batch).steps) flops += step.cost.flops;
  return flops;
}

std::string Session::numerics_key() const { return impl_->backend->numerics_key(); }

}  // namespace stoker
