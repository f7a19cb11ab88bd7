#include "study/baseline.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "graph/builder.h"
#include "ops/ops.h"
#include "run/state_memory.h"
#include "run/step_graph.h"
#include "study/bound_plan.h"

namespace stoker {
namespace {

std::string wire_name(const std::string& name) { return "wire." + name; }

// As MNN's images are to its tensors, the wire's layout is another one than the kernels': a matrix crosses transposed,
// a convolution's weight as [O, I, KH, KW]. Vectors are copied, by a kernel as well.
std::vector<std::int64_t> wire_order(int rank) {
  switch (rank) {
    case 2: return {1, 0};
    case 4: return {3, 2, 0, 1};
    default: return {};
  }
}

StateVar wire_of(const StateVar& var) {
  StateVar wire{wire_name(var.name), var.spec, StateRole::transient};
  const std::vector<std::int64_t> order = wire_order(var.spec.shape.rank());
  if (order.empty()) return wire;
  wire.spec.shape = {};
  for (const std::int64_t from : order) wire.spec.shape.push_back(var.spec.shape[static_cast<int>(from)]);
  return wire;
}

std::vector<StateVar> wires_of(const std::vector<StateVar>& states) {
  std::vector<StateVar> wires;
  for (const StateVar& var : states) wires.push_back(wire_of(var));
  return wires;
}

// One kernel a tensor, from the kernels' layout to the wire's or back.
Graph conversion(const std::vector<StateVar>& states, bool to_wire) {
  GraphBuilder b;
  b.set_phase(Phase::update);
  for (const StateVar& var : states) {
    b.set_name(var.name);
    const int own = b.declare_state({var.name, var.spec, StateRole::transient});  // in a memory apart from the wire's
    const int there = b.declare_state(wire_of(var));
    const std::vector<std::int64_t> order = wire_order(var.spec.shape.rank());
    std::vector<std::int64_t> back(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) back[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
    Value value = ops::state(b, to_wire ? own : there);
    if (!order.empty()) value = ops::transpose(b, value, to_wire ? order : back);
    b.write_state(to_wire ? there : own, value);
  }
  return std::move(b).finish();
}

// The states of `graph` that `wanted` picks.
template <typename F>
std::vector<StateVar> pick(const Graph& graph, F wanted) {
  std::vector<StateVar> list;
  std::ranges::copy_if(graph.states, std::back_inserter(list), wanted);
  return list;
}

// Memory of a device beside its copy on the host, tensor by tensor at the same offsets.
struct Crossing {
  Crossing(Backend& backend, const std::vector<StateVar>& states)
      : device(backend, states), host(static_cast<std::size_t>(device.bytes())) {}

  [[nodiscard]] std::span<std::byte> tensor(std::size_t i) {
    return std::span(host).subspan(static_cast<std::size_t>(device.ref(i).offset),
                                   static_cast<std::size_t>(device.states()[i].spec.bytes()));
  }
  [[nodiscard]] Memory& memory() const { return *device.ref(0).memory; }

  StateMemory device;
  std::vector<std::byte> host;
};

}  // namespace

std::vector<std::string> fusion_passes() { return {"fuse-pointwise", "fuse-epilogue", "fuse-prologue"}; }

struct BaselineSession::Impl {
  Impl(nn::Model the_model, const SessionOptions& the_options, const BaselineSwitches& the_switches, std::int64_t batch)
      : model(std::move(the_model)), options(the_options), switches(the_switches) {
    options.accumulate = 1;
    if (options.recorder != nullptr) host_work = options.recorder->name("host: optimizer, copies in memory");
    device = make_backend(options.device, {.threads = options.threads,
                                           .self_test = options.self_test,
                                           .replay = false,
                                           .merge = false,
                                           .kernels = options.kernels,
                                           .recorder = options.recorder,
                                           .interrupt = options.interrupt,
                                           .note = options.note});
    host = make_backend("cpu", {.threads = options.threads});
    const StepGraph gradients_step = build_step(model, options, StepKind::gradients, batch);
    const StepGraph update_step = build_step(model, options, StepKind::update, 1);
    make_memories(gradients_step.graph);
    const std::vector<std::string> off = fusion_passes();
    forward_backward.emplace(*device, gradients_step.graph, off, on_device, MemoryKind::plain);
    if (switches.convert) {
      convert_out.emplace(*device, conversion(gradients->device.states(), true), off, on_device);
      convert_in.emplace(*device, conversion(parameters->device.states(), false), off, on_device);
    }
    on_host.emplace(*host, update_step.graph.states);
    StateMap host_states;
    host_states.add(*on_host);
    update.emplace(*host, update_step.graph, std::vector<std::string>{}, host_states);
    initialise(gradients_step);
  }

  // What crosses lies in memories of its own, so that it can cross in one piece.
  void make_memories(const Graph& graph) {
    const auto is_gradient = [](const StateVar& var) { return var.name.starts_with(gradient_state("")); };
    const std::vector<StateVar> gradient_states = pick(graph, is_gradient);
    const auto is_trained = [&](const StateVar& var) {
      return std::ranges::any_of(gradient_states,
                                 [&](const StateVar& other) { return other.name == gradient_state(var.name); });
    };
    const std::vector<StateVar> parameter_states = pick(graph, is_trained);
    rest.emplace(*device, pick(graph, [&](const StateVar& var) { return !is_gradient(var) && !is_trained(var); }));
    gradients.emplace(*device, gradient_states);
    parameters.emplace(*device, parameter_states);
    on_device.add(*rest);
    on_device.add(gradients->device);
    on_device.add(parameters->device);
    if (!switches.convert) return;
    gradient_wire.emplace(*device, wires_of(gradient_states));
    parameter_wire.emplace(*device, wires_of(parameter_states));
    on_device.add(gradient_wire->device);
    on_device.add(parameter_wire->device);
  }

  void initialise(const StepGraph& step) {
    initialise_states(*device, step, on_device, options.seed);
    // The host's parameters are in the wire's layout: to the optimizer, which goes element by element, all are alike.
    if (switches.convert) BoundPlan(*device, conversion(parameters->device.states(), true), {}, on_device).run();
    Crossing& crossing = in();
    for (std::size_t i = 0; i < crossing.device.states().size(); ++i) {
      crossing.device.read(i, crossing.tensor(i));
      host_write(parameters->device.states()[i].name, crossing.tensor(i));
    }
  }

  [[nodiscard]] Crossing& out() { return switches.convert ? *gradient_wire : *gradients; }
  [[nodiscard]] Crossing& in() { return switches.convert ? *parameter_wire : *parameters; }

  void host_write(const std::string& name, std::span<const std::byte> bytes) {
    on_host->write(on_host->find(name), bytes);
  }

  void read_gradients() {
    Crossing& crossing = out();
    if (!switches.one_by_one) {
      device->download(crossing.memory(), 0, crossing.host);
      return;
    }
    for (std::size_t i = 0; i < crossing.device.states().size(); ++i) {
      const MemoryRef ref = crossing.device.ref(i);
      const std::span<std::byte> bytes = crossing.tensor(i);
      if (switches.new_buffers) {
        const auto size = static_cast<std::int64_t>(bytes.size());
        const std::unique_ptr<Memory> staging = device->allocate(size, MemoryKind::staging);
        device->copy(*ref.memory, ref.offset, *staging, 0, size);
        device->download(*staging, 0, bytes);
      } else {
        device->download(*ref.memory, ref.offset, bytes);
      }
    }
  }

  void update_on_host() {
    Crossing& from = out();
    for (std::size_t i = 0; i < from.device.states().size(); ++i)
      host_write(gradients->device.states()[i].name, from.tensor(i));
    update->run();
    static_cast<void>(update->collect());
    Crossing& to = in();
    for (std::size_t i = 0; i < to.device.states().size(); ++i)
      on_host->read(on_host->find(parameters->device.states()[i].name), to.tensor(i));
  }

  void write_parameters() {
    Crossing& crossing = in();
    if (!switches.one_by_one) {
      device->upload_async(crossing.memory(), 0, crossing.host);
      return;
    }
    for (std::size_t i = 0; i < crossing.device.states().size(); ++i) {
      const MemoryRef ref = crossing.device.ref(i);
      const std::span<const std::byte> bytes = crossing.tensor(i);
      if (switches.new_buffers) {
        const auto size = static_cast<std::int64_t>(bytes.size());
        const std::unique_ptr<Memory> staging = device->allocate(size, MemoryKind::staging);
        device->upload(*staging, 0, bytes);
        device->copy(*staging, 0, *ref.memory, ref.offset, size);
      } else {
        device->upload(*ref.memory, ref.offset, bytes);
      }
    }
  }

  StepResult compute_gradients(const BatchView& batch) {
    forward_backward->fill(batch);
    forward_backward->run();
    if (convert_out) convert_out->run();
    read_gradients();
    const std::map<std::string, float> outputs = forward_backward->collect();
    const float loss = outputs.at("loss");
    require(std::isfinite(loss) && outputs.at("bad") == 0.0F, Code::not_finite, "baseline, step ", steps + 1,
            ": the loss or a gradient is not finite (loss ", loss, ")");
    return {.loss = loss, .correct = std::lround(outputs.at("correct")), .count = batch.count, .step = steps};
  }

  // All that the host does in a step and no call of the device's is told of, the optimizer above all, is host work.
  StepResult train(const BatchView& batch) {
    const Stopwatch watch(options.recorder);
    StepResult result = compute_gradients(batch);
    update_on_host();
    write_parameters();
    if (convert_in) convert_in->run();
    result.step = ++steps;
    watch.stop(Activity::host, host_work);
    return result;
  }

  nn::Model model;
  SessionOptions options;
  BaselineSwitches switches;
  std::unique_ptr<Backend> device;
  std::unique_ptr<Backend> host;
  StateMap on_device;
  std::optional<StateMemory> rest;    // statistics, counters
  std::optional<Crossing> gradients;  // in the kernels' layout
  std::optional<Crossing> parameters;
  std::optional<Crossing> gradient_wire;  // in the wire's
  std::optional<Crossing> parameter_wire;
  std::optional<StateMemory> on_host;  // parameters, moments, gradients
  std::optional<BoundPlan> forward_backward;
  std::optional<BoundPlan> convert_out;
  std::optional<BoundPlan> convert_in;
  std::optional<BoundPlan> update;
  int host_work = 0;  // its number in the recorder's names
  std::int64_t steps = 0;
};

BaselineSession::BaselineSession(nn::Model model, const SessionOptions& options, const BaselineSwitches& switches,
                                 std::int64_t batch)
    : impl_(std::make_unique<Impl>(std::move(model), options, switches, batch)) {}
BaselineSession::~BaselineSession() = default;

StepResult BaselineSession::train(const BatchView& batch) { return impl_->train(batch); }
StepResult BaselineSession::compute_gradients(const BatchView& batch) { return impl_->compute_gradients(batch); }
Counters BaselineSession::counters() const { return impl_->device->counters(); }
const Plan& BaselineSession::plan() const { return impl_->forward_backward->plan(); }
int BaselineSession::parameters() const { return static_cast<int>(impl_->parameters->device.states().size()); }

std::int64_t BaselineSession::parameter_bytes() const {
  std::int64_t bytes = 0;
  for (const StateVar& var : impl_->parameters->device.states()) bytes += var.spec.bytes();
  return bytes;
}

DeviceInfo BaselineSession::device() const { return impl_->device->describe(); }

std::int64_t BaselineSession::launches() const {
  std::int64_t count = impl_->forward_backward->executable().launches();
  if (impl_->convert_out) count += impl_->convert_out->executable().launches();
  if (impl_->convert_in) count += impl_->convert_in->executable().launches();
  return count;
}

}  // namespace stoker
