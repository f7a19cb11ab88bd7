#include "run/session.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
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
constexpr const char* kStep = "optimizer.step";
// Executables forget results that nobody collects; here they are fetched before that.
constexpr std::size_t kMostInFlight = Executable::kUncollected / 2;
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

// One run of an executable.
struct Run {
  Compiled* entry = nullptr;  // null: there is none
  std::optional<Outcome> outcome;

  [[nodiscard]] bool is_bad() const { return outcome && outcome->bad != 0.0F; }  // NaN, too, is not 0
};

// A batch that was submitted and not collected yet.
struct Submitted {
  Run step;
  Run apply;  // when it completes an accumulated step
  std::int64_t count = 0;
  std::int64_t steps = 0;  // optimizer steps before it
  std::int64_t steps_after = 0;
  int accumulated = 0;    // micro-batches before it
  bool resolved = false;  // its outcomes are there

  [[nodiscard]] bool is_bad() const { return step.is_bad() || apply.is_bad(); }
};

}  // namespace

struct Session::Impl {
  Impl(nn::Model the_model, SessionOptions the_options) : model(std::move(the_model)), options(std::move(the_options)) {
    require(options.accumulate >= 1, Code::bad_argument, "accumulate must be at least 1, not ", options.accumulate);
    require(options.clip >= 0, Code::bad_argument, "clip must not be negative: ", options.clip);
    require(options.label_smoothing >= 0 && options.label_smoothing < 1, Code::bad_argument,
            "label smoothing must be in [0, 1), not ", options.label_smoothing);
    backend = make_backend(options.device, {.threads = options.threads,
                                            .self_test = options.self_test,
                                            .replay = options.replay,
                                            .merge = options.merge,
                                            .kernels = options.kernels,
                                            .recorder = options.recorder,
                                            .interrupt = options.interrupt,
                                            .note = options.note});
    const StepGraph step = build_step(model, options, options.accumulate > 1 ? StepKind::apply : StepKind::train, 1);
    state.emplace(*backend, step.graph.states);
    for (std::size_t i = 0; i < state->states().size(); ++i) initialise(i, step.inits[i]);
    read_steps();
    slots.resize(static_cast<std::size_t>(backend->batch_slots()));
    if (options.recorder != nullptr) {
      fill_name = options.recorder->name("fill the batch");
      submit_name = options.recorder->name("Session::submit");
      collect_name = options.recorder->name("Session::collect");
    }
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

  // The plan; without executable until it is to run.
  Compiled& planned(StepKind kind, std::int64_t batch) {
    const auto key = std::pair(kind, batch);
    if (const auto at = cache.find(key); at != cache.end()) return at->second;
    const StepGraph step = build_step(model, options, kind, batch);
    const PassOptions passes{.off = options.passes_off};
    Graph graph = run_passes(step.graph, backend->target(), passes);
    Plan plan = make_plan(std::move(graph), backend->target(),
                          {.in_place = passes.is_on(kInPlace), .early_update = passes.is_on(kEarlyUpdate)});
    return cache.emplace(key, Compiled{std::make_unique<Plan>(std::move(plan)), nullptr}).first->second;
  }

  Compiled& compiled(StepKind kind, std::int64_t batch) {
    Compiled& entry = planned(kind, batch);
    if (entry.executable) return entry;
    if (!has_room(*entry.plan)) make_room(*entry.plan);
    bind(entry);
    return entry;
  }

  [[nodiscard]] bool has_room(const Plan& plan) {
    bool enough = arena.memory && arena.bytes >= plan.arena_bytes;
    for (const NamedValue& input : plan.graph.inputs) {
      const Shared& shared = slots.back()[input.name];
      enough = enough && shared.memory && shared.bytes >= plan.graph.spec(input.value).bytes();
    }
    return enough;
  }

  // Grows arena and batch buffers. Executables refer to them: they are bound again when they are next wanted.
  void make_room(const Plan& plan) {
    resolve_all();
    for (auto& [key, entry] : cache) entry.executable.reset();
    grow(arena, plan.arena_bytes, MemoryKind::plain);
    for (const NamedValue& input : plan.graph.inputs) {
      for (BatchSlot& batch : slots) grow(batch[input.name], plan.graph.spec(input.value).bytes(), batch_kind());
    }
  }

  [[nodiscard]] MemoryKind batch_kind() const { return options.zero_copy ? MemoryKind::batch : MemoryKind::plain; }

  void grow(Shared& shared, std::int64_t bytes, MemoryKind kind) {
    if (shared.memory && shared.bytes >= bytes) return;
    shared.memory.reset();  // first, so that both never exist at once
    shared.memory = backend->allocate(bytes, kind);
    shared.bytes = bytes;
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
    const Stopwatch watch(options.recorder);
    copy_in("items", std::as_bytes(batch.items));
    if (with_targets) copy_in("targets", batch.targets);
    watch.stop(Activity::host, fill_name);
  }

  void copy_in(const std::string& input, std::span<const std::byte> bytes) {
    Memory& memory = *slots[slot].at(input).memory;
    if (!options.zero_copy) {
      backend->upload(memory, 0, bytes);
      return;
    }
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

  void warm_up(const BatchView& batch) {
    Compiled& step = compiled(training(), batch.count);
    settle();
    fill(batch, true);
    step.executable->warm_up(static_cast<int>(slot));
    drop_result(step);
  }

  std::vector<double> timings(std::int64_t batch) {
    Compiled& step = compiled(training(), batch);
    resolve_all();
    std::vector<double> seconds = step.executable->timings();
    drop_result(step);
    return seconds;
  }

  // Of a training step that was not submitted as others are.
  void drop_result(Compiled& step) {
    Run run{.entry = &step};
    static_cast<void>(fetch(run, true));
    read_steps();
  }

  void submit(StepKind kind, const BatchView& batch, bool last) {
    const Stopwatch watch(options.recorder);
    Compiled& step = compiled(kind, batch.count);
    const bool updates =
        kind == StepKind::train || (kind == StepKind::accumulate && (accumulated + 1 == options.accumulate || last));
    Compiled* apply = updates && kind == StepKind::accumulate ? &compiled(StepKind::apply, 1) : nullptr;
    require(!updates || steps < kMostSteps, Code::bad_argument, "a training has at most ", kMostSteps, " steps");
    if (in_flight.size() >= kMostInFlight) resolve(in_flight[in_flight.size() - kMostInFlight], true);
    fill(batch, true);
    step.executable->run(static_cast<int>(slot));
    in_flight.push_back({.step = {.entry = &step}, .count = batch.count, .steps = steps, .accumulated = accumulated});
    if (apply != nullptr) {
      apply->executable->run(static_cast<int>(slot));
      in_flight.back().apply = {.entry = apply};
    }
    if (updates) ++steps;
    if (kind == StepKind::accumulate) accumulated = updates ? 0 : accumulated + 1;
    in_flight.back().steps_after = steps;
    watch.stop(Activity::host, submit_name);
  }

  // Fetches the outcome if the run is done, or waits for it. False: it is not done yet.
  static bool fetch(Run& run, bool wait) {
    if (run.entry == nullptr || run.outcome) return true;
    const std::vector<std::size_t> outputs = scalar_outputs(*run.entry->plan);
    std::vector<float> values(outputs.size());
    if (!run.entry->executable->collect(values, wait)) return false;
    run.outcome.emplace();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string& name = run.entry->plan->graph.outputs[outputs[i]].name;
      (name == "loss" ? run.outcome->loss : name == "correct" ? run.outcome->correct : run.outcome->bad) = values[i];
    }
    return true;
  }

  // After a step that was not finite the device has kept State as it was; here the host's view follows: the steps
  // submitted after it have not taken place.
  bool resolve(Submitted& submitted, bool wait) {
    if (submitted.resolved) return true;
    if (!fetch(submitted.step, wait) || !fetch(submitted.apply, wait)) return false;
    submitted.resolved = true;
    if (!submitted.is_bad()) return true;
    while (&in_flight.back() != &submitted) {
      static_cast<void>(fetch(in_flight.back().step, true));
      static_cast<void>(fetch(in_flight.back().apply, true));
      in_flight.pop_back();
    }
    const float zero = 0.0F;
    state->write(state->find(kHalted), std::as_bytes(std::span(&zero, 1)));
    steps = submitted.steps;
    accumulated = submitted.step.is_bad() ? submitted.accumulated : 0;
    return true;
  }

  // In the order of submission: a run's outcome is the oldest of its executable that was not fetched.
  void resolve_all() {
    std::size_t i = 0;  // what is not finite drops those after it
    while (i < in_flight.size()) resolve(in_flight[i++], true);
  }

  StepResult take_front() {
    const Submitted done = in_flight.front();
    in_flight.pop_front();
    const double loss = done.step.outcome->loss;
    if (done.is_bad()) {
      fail(Code::not_finite, "step ", done.steps + 1, ": the ", std::isfinite(loss) ? "gradient" : "loss",
           " is not finite (loss ", loss,
           "). Lower the learning rate, clip the gradients, or look for bad values in the data.");
    }
    return {.loss = loss,
            .correct = std::lround(done.step.outcome->correct),
            .count = done.count,
            .step = done.steps_after};
  }

  StepResult run(StepKind kind, const BatchView& batch, bool last) {
    settle();
    submit(kind, batch, last);
    return *collect(true);
  }

  std::optional<StepResult> collect(bool wait) {
    const Stopwatch watch(options.recorder);
    const bool found = !in_flight.empty() && resolve(in_flight.front(), wait);
    watch.stop(Activity::host, collect_name);
    if (!found) return std::nullopt;
    return take_front();
  }

  void settle() {
    while (!in_flight.empty()) static_cast<void>(collect(true));
  }

  void read_steps() {
    std::int32_t step = 0;
    state->read(state->find(kStep), std::as_writable_bytes(std::span(&step, 1)));
    steps = step;
  }

  [[nodiscard]] StepKind training() const { return options.accumulate > 1 ? StepKind::accumulate : StepKind::train; }

  nn::Model model;
  SessionOptions options;
  std::unique_ptr<Backend> backend;
  std::optional<StateMemory> state;
  Shared arena;
  std::vector<BatchSlot> slots;
  std::size_t slot = 0;  // the one that was filled last
  std::map<std::pair<StepKind, std::int64_t>, Compiled> cache;
  // The host's view of what was submitted, which is what the device will have done.
  std::deque<Submitted> in_flight;  // and what is done but not collected
  std::int64_t steps = 0;           // optimizer steps
  int accumulated = 0;              // micro-batches since the last update
  // Of the recorder, if there is one.
  int fill_name = 0;
  int submit_name = 0;
  int collect_name = 0;
};

Session::Session(nn::Model model, SessionOptions options)
    : impl_(std::make_unique<Impl>(std::move(model), std::move(options))) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

void Session::submit(const BatchView& batch, bool last) { impl_->submit(impl_->training(), batch, last); }
void Session::submit_evaluation(const BatchView& batch) { impl_->submit(StepKind::evaluate, batch, false); }
std::optional<StepResult> Session::collect(bool wait) { return impl_->collect(wait); }
void Session::settle() { impl_->settle(); }

StepResult Session::train(const BatchView& batch, bool last) { return impl_->run(impl_->training(), batch, last); }
StepResult Session::evaluate(const BatchView& batch) { return impl_->run(StepKind::evaluate, batch, false); }

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
  impl_->resolve_all();
  impl_->state->read(impl_->state->find(name), bytes);
}

void Session::write_state(std::string_view name, std::span<const std::byte> bytes) {
  impl_->resolve_all();
  impl_->state->write(impl_->state->find(name), bytes);
  if (name == kStep) impl_->read_steps();
}

std::int64_t Session::steps_done() const {
  impl_->resolve_all();
  return impl_->steps;
}

const nn::Model& Session::model() const { return impl_->model; }
const SessionOptions& Session::options() const { return impl_->options; }

const Plan& Session::train_plan(std::int64_t batch) { return *impl_->planned(impl_->training(), batch).plan; }
const Plan& Session::predict_plan(std::int64_t batch) { return *impl_->planned(StepKind::predict, batch).plan; }

std::vector<double> Session::train_timings(std::int64_t batch) { return impl_->timings(batch); }
void Session::prepare_training(std::int64_t batch) {
  static_cast<void>(impl_->compiled(impl_->training(), batch));
  if (impl_->options.accumulate > 1) static_cast<void>(impl_->compiled(StepKind::apply, 1));
}

void Session::warm_up(const BatchView& batch) { impl_->warm_up(batch); }

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
DeviceInfo Session::device() const { return impl_->backend->describe(); }
int Session::batch_slots() const { return impl_->backend->batch_slots(); }
Counters Session::counters() const { return impl_->backend->counters(); }

}  // namespace stoker
