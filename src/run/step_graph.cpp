#include "run/step_graph.h"

#include <algorithm>
#include <limits>
#include <map>

#include "autodiff/backward.h"
#include "base/error.h"
#include "passes/pass.h"

namespace stoker {
namespace {

bool has_prefix(const std::string& name, const std::string& prefix) {
  return name.starts_with(prefix) &&
         (name.size() == prefix.size() || prefix.empty() || prefix.back() == '.' || name[prefix.size()] == '.');
}

// A parameter with its place in the graph.
struct Parameter {
  int state = 0;
  Value value;
  Value gradient;
};

// Builds one step graph. Every write to State is guarded: `bad_` is 0 while the loss and all gradients so far are
// finite, NaN from the first that is not, and a guarded write then keeps the old value (DESIGN, decision 4). It begins
// with what the steps before have left in kHalted, and is left there in the end.
class StepBuilder {
 public:
  StepBuilder(const nn::Model& model, const SessionOptions& options, StepKind kind, std::int64_t batch)
      : model_(model), options_(options), kind_(kind), batch_(batch), net_(b_, trains()) {}

  StepGraph build() {
    if (runs_model()) {
      forward();
    } else {
      declare_model_states();
    }
    if (trains()) update();
    StepGraph result{.graph = std::move(b_).finish(), .inits = net_.inits()};
    for (std::size_t i = result.inits.size(); i < result.graph.states.size(); ++i) result.inits.push_back({});
    return result;
  }

 private:
  [[nodiscard]] bool trains() const { return kind_ != StepKind::evaluate && kind_ != StepKind::predict; }
  [[nodiscard]] bool runs_model() const { return kind_ != StepKind::apply && kind_ != StepKind::update; }

  void forward() {
    Shape shape{batch_};
    for (const std::int64_t size : model_.item.dims()) shape.push_back(size);
    const Value items = ops::input(b_, "items", {DType::f32, shape});
    const Value output = model_.forward(net_, items);
    b_.set_name("loss");
    require(b_.shape(output).rank() >= 1 && b_.shape(output)[0] == batch_, Code::bad_argument, "model ", model_.name,
            ": the output must have one row an item, but its shape is ", b_.shape(output));
    if (kind_ == StepKind::predict) {
      b_.set_output("output", output);
      return;
    }
    Shape target_shape{batch_};
    for (const std::int64_t size : options_.target.shape.dims()) target_shape.push_back(size);
    const Value targets = ops::input(b_, "targets", {options_.target.dtype, target_shape});
    const Value losses = options_.loss ? options_.loss(net_, output, targets)
                                       : ops::softmax_cross_entropy(b_, output, targets, options_.label_smoothing);
    require(b_.shape(losses) == Shape{batch_}, Code::bad_argument, "the loss must be one value an item, [", batch_,
            "], but its shape is ", b_.shape(losses));
    loss_ = ops::reduce_mean(b_, losses, {});
    b_.set_output("loss", loss_);
    b_.set_output("correct", count_correct(output, targets));
  }

  Value count_correct(Value output, Value targets) {
    const bool classes =
        options_.target.dtype == DType::i32 && options_.target.shape.rank() == 0 && b_.shape(output).rank() == 2;
    if (!classes) return ops::constant(b_, 0.0F);
    const Value hits = ops::eq(b_, ops::argmax(b_, output, -1), targets);
    return ops::reduce_sum(b_, ops::cast(b_, hits, DType::f32), {});
  }

  // An update alone runs no model, but its states are the model's: a forward pass declares them, and is dead code.
  void declare_model_states() {
    Shape shape{1};
    for (const std::int64_t size : model_.item.dims()) shape.push_back(size);
    const float zero = 0.0F;
    const Value nothing = ops::broadcast_to(b_, ops::constant(b_, zero), shape);
    static_cast<void>(model_.forward(net_, nothing));
  }

  [[nodiscard]] bool is_frozen(const std::string& name) const {
    return std::ranges::any_of(options_.freeze, [&](const std::string& prefix) { return has_prefix(name, prefix); });
  }

  std::vector<Parameter> trained_parameters() {
    std::vector<Parameter> list;
    const Graph& graph = b_.graph();
    for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
      const Node& node = graph.nodes[static_cast<std::size_t>(i)];
      if (node.op->name != "state") continue;
      const auto state = static_cast<int>(node.attrs.integer("index"));
      const StateVar& var = graph.states[static_cast<std::size_t>(state)];
      if (var.role == StateRole::parameter && !is_frozen(var.name)) list.push_back({state, {i, 0}, {}});
    }
    for (const std::string& prefix : options_.freeze) {
      require(std::ranges::any_of(graph.states, [&](const StateVar& var) { return has_prefix(var.name, prefix); }),
              Code::bad_argument, "freeze: no parameter is named '", prefix, "' or begins with it");
    }
    require(!list.empty(), Code::bad_argument, "nothing is left to train: every parameter is frozen");
    std::ranges::reverse(list);  // the backward pass completes the last layer's gradients first
    return list;
  }

  void update() {
    std::vector<Parameter> parameters = trained_parameters();
    step_ = declare({"optimizer.step", {DType::i32, {}}, StateRole::counter});
    halted_ = declare({kHalted, {DType::f32, {}}, StateRole::transient});
    switch (kind_) {
      case StepKind::apply: take_accumulated(parameters); break;
      case StepKind::update: take_gradients(parameters); break;
      default: differentiate(parameters);
    }
    switch (kind_) {
      case StepKind::accumulate: accumulate(parameters); break;
      case StepKind::gradients: leave_gradients(parameters); break;
      default: apply(parameters);
    }
    finish_writes();
  }

  void differentiate(std::vector<Parameter>& parameters) {
    std::vector<Value> wrt;
    for (const Parameter& parameter : parameters) wrt.push_back(parameter.value);
    const Value one = ops::constant(b_, 1.0F);
    const std::vector<Value> gradients = backward(b_, std::span(&loss_, 1), std::span(&one, 1), wrt);
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].gradient = gradients[i];
    // A parameter that the loss does not depend on stays as it is, as in PyTorch.
    std::erase_if(parameters, [](const Parameter& parameter) { return parameter.gradient.is_none(); });
    require(!parameters.empty(), Code::bad_argument, "the loss depends on no parameter that is trained");
    b_.set_phase(Phase::backward);
    bad_ = ops::add(b_, ops::mul(b_, loss_, 0.0F), halted_);
    watch(parameters);
  }

  void watch(const std::vector<Parameter>& parameters) {
    for (const Parameter& parameter : parameters) {
      // finite * 0 is 0; infinity * 0 and NaN * 0 are NaN. Channel sums first: the gradient's kernel makes them.
      b_.set_name(name_of(parameter));
      bad_ = ops::add(b_, bad_, total(ops::mul(b_, parameter.gradient, 0.0F)));
      bad_so_far_[parameter.state] = bad_;
    }
  }

  int own_gradient(const Parameter& parameter) {
    const StateVar var = b_.graph().states[static_cast<std::size_t>(parameter.state)];
    return b_.declare_state({gradient_state(var.name), var.spec, StateRole::transient, var.layout});
  }

  void leave_gradients(const std::vector<Parameter>& parameters) {
    for (const Parameter& parameter : parameters) b_.write_state(own_gradient(parameter), parameter.gradient);
  }

  void take_gradients(std::vector<Parameter>& parameters) {
    b_.set_phase(Phase::update);
    for (Parameter& parameter : parameters) parameter.gradient = ops::state(b_, own_gradient(parameter));
    bad_ = halted_;
    watch(parameters);
  }

  [[nodiscard]] const std::string& name_of(const Parameter& parameter) const {
    return b_.graph().states[static_cast<std::size_t>(parameter.state)].name;
  }

  // The sum of all elements, by way of the channel sums that an epilogue can do.
  Value total(Value value) {
    std::vector<std::int64_t> rows;
    for (int i = 0; i + 1 < b_.shape(value).rank(); ++i) rows.push_back(i);
    if (!rows.empty()) value = ops::reduce_sum(b_, value, rows);
    return b_.shape(value).rank() == 0 ? value : ops::reduce_sum(b_, value, {});
  }

  Value declare(StateVar var) { return ops::state(b_, b_.declare_state(std::move(var))); }

  int moment_state(const Parameter& parameter, const std::string& moment) {
    const StateVar var = b_.graph().states[static_cast<std::size_t>(parameter.state)];
    const std::string name = "optimizer." + moment + "." + var.name;
    const int found = b_.graph().find_state(name);
    return found >= 0 ? found : b_.declare_state({name, var.spec, StateRole::moment, var.layout});
  }

  // gradient sum += samples * gradient of the mean.
  void accumulate(const std::vector<Parameter>& parameters) {
    declare_moments(parameters);
    b_.set_phase(Phase::update);
    for (const Parameter& parameter : parameters) {
      const int state = moment_state(parameter, "gradient");
      const Value sum =
          ops::add(b_, ops::state(b_, state), ops::mul(b_, parameter.gradient, static_cast<float>(batch_)));
      guarded_write(state, sum, bad_);  // all sums or none: they belong to one count of samples
    }
    const int count = count_state();
    guarded_write(count, ops::add(b_, ops::state(b_, count), static_cast<float>(batch_)), bad_);
  }

  int count_state() {
    const int found = b_.graph().find_state("optimizer.samples");
    return found >= 0 ? found : b_.declare_state({"optimizer.samples", {DType::f32, {}}, StateRole::counter});
  }

  void take_accumulated(std::vector<Parameter>& parameters) {
    declare_moments(parameters);
    const Value samples = ops::state(b_, count_state());
    bad_ = halted_;
    b_.set_phase(Phase::update);
    // Sums that are not finite are dropped; those of a step that was stopped before are kept.
    for (Parameter& parameter : parameters) {
      const int state = moment_state(parameter, "gradient");
      const Value sum = ops::state(b_, state);
      parameter.gradient = ops::div(b_, sum, samples);
      bad_ = ops::add(b_, bad_, total(ops::mul(b_, sum, 0.0F)));
      bad_so_far_[parameter.state] = bad_;
      guarded_write(state, zero_like(sum), halted_);
    }
    guarded_write(count_state(), zero_like(samples), halted_);
  }

  // 0, whatever `value` is: a product with 0 would keep a NaN.
  Value zero_like(Value value) {
    const Value below_all = ops::constant(b_, -std::numeric_limits<float>::infinity());
    return ops::cast(b_, ops::lt(b_, value, below_all), DType::f32);
  }

  // Both halves of a step declare the same states in the same order.
  void declare_moments(const std::vector<Parameter>& parameters) {
    for (const Parameter& parameter : parameters) {
      for (const std::string& moment : nn::moment_names(options_.optimizer))
        static_cast<void>(moment_state(parameter, moment));
      static_cast<void>(moment_state(parameter, "gradient"));
    }
    static_cast<void>(count_state());
  }

  // With early updates a parameter waits for the gradients that are complete by then, else for all of them.
  [[nodiscard]] Value guard_of(const Parameter& parameter) const {
    const bool early = std::ranges::find(options_.passes_off, kEarlyUpdate) == options_.passes_off.end();
    return early ? bad_so_far_.at(parameter.state) : bad_;
  }

  void apply(std::vector<Parameter>& parameters) {
    if (options_.clip > 0) clip(parameters);
    b_.set_phase(Phase::update);
    b_.set_name("optimizer");
    const Value rate = nn::learning_rate(b_, options_.schedule, step_);
    for (const Parameter& parameter : parameters) {
      b_.set_name(name_of(parameter));
      std::vector<int> states;
      std::vector<Value> moments;
      for (const std::string& moment : nn::moment_names(options_.optimizer)) {
        states.push_back(moment_state(parameter, moment));
        moments.push_back(ops::state(b_, states.back()));
      }
      const nn::Update next =
          nn::update(b_, options_.optimizer, parameter.value, parameter.gradient, moments, rate, step_);
      const Value guard = guard_of(parameter);
      guarded_write(parameter.state, next.parameter, guard);
      for (std::size_t i = 0; i < states.size(); ++i) guarded_write(states[i], next.moments[i], guard);
    }
    b_.set_name("optimizer");
    guarded_write(b_.graph().find_state("optimizer.step"), ops::add(b_, step_, 1.0F), bad_);
  }

  // PyTorch's clip_grad_norm_: gradients times min(1, clip / (norm + 1e-6)).
  void clip(std::vector<Parameter>& parameters) {
    b_.set_phase(Phase::backward);
    b_.set_name("clip");
    Value squares = ops::constant(b_, 0.0F);
    for (const Parameter& parameter : parameters) {
      squares = ops::add(b_, squares, total(ops::mul(b_, parameter.gradient, parameter.gradient)));
    }
    const Value norm = ops::sqrt(b_, squares);
    const Value scale = ops::div(b_, ops::constant(b_, static_cast<float>(options_.clip)), ops::add(b_, norm, 1e-6F));
    const Value factor = ops::minimum(b_, scale, ops::constant(b_, 1.0F));
    bad_ = ops::add(b_, bad_, ops::mul(b_, squares, 0.0F));
    for (Parameter& parameter : parameters) {
      parameter.gradient = ops::mul(b_, parameter.gradient, factor);
      bad_so_far_[parameter.state] = bad_;
    }
  }

  void guarded_write(int state, Value value, Value bad) {
    const Value fine = ops::eq(b_, bad, ops::constant(b_, 0.0F));
    Value kept = ops::select(b_, fine, value, ops::state(b_, state));
    const DType dtype = b_.graph().states[static_cast<std::size_t>(state)].spec.dtype;
    if (dtype != DType::f32) kept = ops::cast(b_, kept, dtype);
    b_.write_state(state, kept);
  }

  void finish_writes() {
    b_.set_phase(Phase::update);
    b_.set_name("statistics");
    if (runs_model()) {
      for (const StateWrite& write : net_.statistic_writes()) guarded_write(write.state, write.value, bad_);
    }
    b_.set_output("bad", bad_);
    b_.write_state(b_.graph().find_state(kHalted), bad_);
  }

  const nn::Model& model_;
  const SessionOptions& options_;
  StepKind kind_;
  std::int64_t batch_;
  GraphBuilder b_;
  nn::Net net_;
  Value loss_;
  Value step_;
  Value halted_;
  Value bad_;
  std::map<int, Value> bad_so_far_;  // by state: the flag when that gradient is complete
};

}  // namespace

StepGraph build_step(const nn::Model& model, const SessionOptions& options, StepKind kind, std::int64_t batch) {
  require(batch > 0, Code::bad_argument, "a batch needs at least one item, not ", batch);
  return StepBuilder(model, options, kind, batch).build();
}

}  // namespace stoker
