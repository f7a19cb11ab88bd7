#include "run/session.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "backends/backend.h"
#include "base/error.h"
#include "passes/pass.h"
#include "run/state_memory.h"
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

// The inputs by name: the host fills those of one slot while the device works on another's.
using BatchSlot = std::map<std::string, Shared>;

// The scalar outputs of a plan.
struct Outcome {
  float loss = 0;
  float correct = 0;
  float bad = 0;
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
    state.emplace(*backend, step.graph.states);
    for (std::size_t i = 0; i < state->states().size(); ++i) initialise(i, step.inits[i]);
    slots.resize(static_cast<std::size_t>(backend->batch_slots()));
  }

  void initialise(std::size_t i, const nn::Init& init) {
    const StateVar& var = state->states()[i];
    const std::vector<float> values = nn::initial_values(init, var, options.seed);
    if (var.spec.dtype == DType::f32) {
      state->write(i, std::as_bytes(std::span(values)));
      return;
    }
    require(var.spec.dtype == DType::i32, Code::bad_argument, "state ", var.name, ": only f32 and i32 are kept");
    const std::vector<std::int32_t> integers(values.begin(), values.end());
    state->write(i, std::as_bytes(std::span(integers)));
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
    bool moved = grow(arena, plan.arena_bytes, MemoryKind::plain);
    for (const NamedValue& input : plan.graph.inputs) {
      for (BatchSlot& batch : slots)
        moved |= grow(batch[input.name], plan.graph.spec(input.value).bytes(), MemoryKind::batch);
    }
    return moved;
  }

  bool grow(Shared& shared, std::int64_t bytes, MemoryKind kind) {
    if (shared.memory && shared.bytes >= bytes) return false;
    shared.memory.reset();  // first, so that both never exist at once
    shared.memory = backend->allocate(bytes, kind);
    shared.bytes = bytes;
    return true;
  }

  void bind(Compiled& entry) {
    Bindings bindings{.arena = arena.memory.get()};
    for (const StateVar& var : entry.plan->graph.states) bindings.states.push_back(state->ref(state->find(var.name)));
    for (BatchSlot& batch : slots) {
      std::vector<Memory*>& bound = bindings.batches.emplace_back();
      for (const NamedValue& input : entry.plan->graph.inputs) bound.push_back(batch.at(input.name).memory.get());
    }
    entry.executable = backend->compile(*entry.plan, bindings);
  }

  void fill(const BatchView& batch, bool with_targets) {
    const std::int64_t items = batch.count * model.item.elements();
    require(static_cast<std::int64_t>(batch.items.size()) == items, Code::bad_argument, "model ", model.name, " needs ",
            batch.count, " items of shape ", model.item, ", ", items, " values, but got ", batch.items.size());
    const std::int64_t bytes = with_targets ? batch.count * options.target.bytes() : 0;
    require(!with_targets || static_cast<std::int64_t>(batch.targets.size()) == bytes, Code::bad_argument,
            "the targets must be ", bytes, " bytes, but are ", batch.targets.size());
    if (with_targets) check_labels(batch);
    slot = (slot + 1) % slots.size();
    copy_in("items", std::as_bytes(batch.items));
    if (with_targets) copy_in("targets", batch.targets);
  }

  void copy_in(const std::string& input, std::span<const std::byte> bytes) {
    Memory& memory = *slots[slot].at(input).memory;
    std::ranges::copy(bytes, backend->map(memory).begin());
    backend->unmap(memory);
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

  // Runs the plan on the batch filled last and waits for its scalar outputs: loss, correct, bad, as far as it has them.
  Outcome run(Compiled& entry) {
    std::vector<float> values(scalar_outputs(*entry.plan).size());
    entry.executable->run(static_cast<int>(slot));
    static_cast<void>(entry.executable->collect(values, true));
    Outcome outcome;
    for (std::size_t i = 0; const std::size_t output : scalar_outputs(*entry.plan)) {
      const std::string& name = entry.plan->graph.outputs[output].name;
      (name == "loss" ? outcome.loss : name == "correct" ? outcome.correct : outcome.bad) = values[i++];
    }
    return outcome;
  }

  StepResult result_of(const Outcome& outcome, const BatchView& batch) const {
    return {.loss = outcome.loss, .correct = std::lround(outcome.correct), .count = batch.count, .step = steps_done()};
  }

  void require_finite(const Outcome& outcome, double loss) const {
    if (outcome.bad == 0.0F) return;
    fail(Code::not_finite, "step ", steps_done() + 1, ": the ", std::isfinite(loss) ? "gradient" : "loss",
         " is not finite (loss ", loss,
         "). Lower the learning rate, clip the gradients, or look for bad values in the data.");
  }

  [[nodiscard]] std::int64_t steps_done() const {
    std::int32_t step = 0;
    state->read(state->find("optimizer.step"), std::as_writable_bytes(std::span(&step, 1)));
    return step;
  }

  nn::Model model;
  SessionOptions options;
  std::unique_ptr<Backend> backend;
  std::optional<StateMemory> state;
  Shared arena;
  std::vector<BatchSlot> slots;
  std::size_t slot = 0;  // the one that was filled last
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
  const Outcome outcome = impl_->run(step);
  StepResult result = impl_->result_of(outcome, batch);
  impl_->require_finite(outcome, result.loss);
  if (accumulates && (++impl_->accumulated == impl_->options.accumulate || last)) {
    Compiled& apply = impl_->compiled(StepKind::apply, 1);
    const Outcome applied = impl_->run(apply);
    impl_->accumulated = 0;
    impl_->require_finite(applied, result.loss);
    result.step = impl_->steps_done();
  }
  return result;
}

StepResult Session::evaluate(const BatchView& batch) {
  Compiled& step = impl_->compiled(StepKind::evaluate, batch.count);
  impl_->fill(batch, true);
  return impl_->result_of(impl_->run(step), batch);
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
    step.executable->run(static_cast<int>(impl_->slot));
    require(place.kind == Place::Kind::arena, Code::bad_argument, "predict: the model's output is no computed value");
    impl_->backend->download(*impl_->arena.memory, place.offset,
                             std::as_writable_bytes(outputs.subspan(static_cast<std::size_t>(done * floats / count),
                                                                    static_cast<std::size_t>(floats))));
  }
}

const std::vector<StateVar>& Session::states() const { return impl_->state->states(); }

void Session::read_state(std::string_view name, std::span<std::byte> bytes) const {
  impl_->state->read(impl_->state->find(name), bytes);
}

void Session::write_state(std::string_view name, std::span<const std::byte> bytes) {
  impl_->state->write(impl_->state->find(name), bytes);
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
  for (const StateVar& state : states()) {
    if (state.role == StateRole::parameter) count += state.spec.shape.elements();
  }
  return count;
}

std::int64_t Session::peak_bytes() const {
  std::int64_t bytes = impl_->arena.bytes + impl_->state->bytes();
  for (const BatchSlot& batch : impl_->slots) {
    for (const auto& [name, input] : batch) bytes += input.bytes;
  }
  return bytes;
}

double Session::flops_per_step(std::int64_t batch) {
  double flops = 0;
  for (const Step& step : train_plan(batch).steps) flops += step.cost.flops;
  return flops;
}

std::string Session::numerics_key() const { return impl_->backend->numerics_key(); }

}  // namespace stoker
