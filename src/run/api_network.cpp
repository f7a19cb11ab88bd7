// Network: the public face of a Session, with the data loop, checkpoints and the plan's pictures.
#include <algorithm>
#include <cstring>

#include "backends/backend.h"
#include "backends/opencl/devices.h"
#include "base/error.h"
#include "run/api.h"
#include "run/checkpoint.h"
#include "run/choose_device.h"
#include "run/step_graph.h"
#include "run/trainer.h"

namespace stoker {

struct Network::Impl {
  Model model;
  TrainOptions options;
  Session session;
  LoaderPosition position{};

  // The items with their labels or targets; an Error if the numbers do not agree.
  [[nodiscard]] BatchView view(std::span<const float> items, std::span<const std::int32_t> labels) const;
  [[nodiscard]] BatchView view(std::span<const float> items, std::span<const float> targets) const;
  [[nodiscard]] const Plan& plan(std::int64_t batch, bool inference) {
    return inference ? session.predict_plan(batch_or_default(batch)) : session.train_plan(batch_or_default(batch));
  }
  [[nodiscard]] std::int64_t batch_or_default(std::int64_t batch) const {
    return batch > 0 ? batch : model.default_batch();
  }
  [[nodiscard]] const StateVar& find_parameter(const std::string& name) const;
};

namespace {

void check_range(bool ok, const char* option, double value, const char* expected) {
  require(ok, Code::bad_argument, option, " must be ", expected, ", not ", value);
}

void check(const TrainOptions& o) {
  check_range(o.lr >= 0 && o.lr <= 1e6, "lr", o.lr, "in [0, 1e6]");
  check_range(o.momentum >= 0 && o.momentum < 1, "momentum", o.momentum, "in [0, 1)");
  check_range(o.weight_decay >= 0, "weight_decay", o.weight_decay, "at least 0");
  check_range(o.beta1 > 0 && o.beta1 < 1, "beta1", o.beta1, "in (0, 1)");
  check_range(o.beta2 > 0 && o.beta2 < 1, "beta2", o.beta2, "in (0, 1)");
  check_range(o.alpha >= 0 && o.alpha < 1, "alpha", o.alpha, "in [0, 1)");
  check_range(o.eps >= 0, "eps", o.eps, "at least 0");
  check_range(o.clip >= 0, "clip", o.clip, "at least 0");
  check_range(o.accumulate >= 1, "accumulate", o.accumulate, "at least 1");
  check_range(o.label_smoothing >= 0 && o.label_smoothing < 1, "label_smoothing", o.label_smoothing, "in [0, 1)");
  check_range(o.auto_seconds >= 0, "auto_seconds", o.auto_seconds, "at least 0");
  check_range(o.auto_batch >= 0, "auto_batch", static_cast<double>(o.auto_batch), "at least 0");
  check_range(o.threads >= 0, "threads", o.threads, "at least 0");
  require(!o.nesterov || o.momentum > 0, Code::bad_argument, "nesterov needs a momentum above 0");
}

Session make_session(const Model& model, const TrainOptions& options) {
  SessionOptions own = to_session_options(options);
  resolve_device(ModelAccess::get(model), options, own);
  return {ModelAccess::get(model), std::move(own)};
}

Device to_device(DeviceInfo info) { return {std::move(info.id), std::move(info.name), std::move(info.details)}; }

StepReport to_report(const StepResult& result) { return {result.loss, result.correct, result.count, result.step}; }

}  // namespace

SessionOptions to_session_options(const TrainOptions& o) {
  check(o);
  SessionOptions options{.optimizer = {.kind = nn::parse_optimizer(o.optimizer),
                                       .momentum = o.momentum,
                                       .nesterov = o.nesterov,
                                       .weight_decay = o.weight_decay,
                                       .beta1 = o.beta1,
                                       .beta2 = o.beta2,
                                       .alpha = o.alpha,
                                       .eps = o.eps},
                         .schedule = {.kind = nn::parse_schedule(o.schedule),
                                      .rate = o.lr,
                                      .warmup_steps = o.warmup_steps,
                                      .total_steps = o.total_steps,
                                      .step_size = o.step_size,
                                      .gamma = o.gamma,
                                      .final_rate = o.final_lr},
                         .clip = o.clip,
                         .accumulate = o.accumulate,
                         .freeze = o.freeze,
                         .label_smoothing = o.label_smoothing,
                         .seed = o.seed,
                         .device = o.device,
                         .threads = o.threads,
                         .self_test = o.self_test,
                         .replay = o.replay,
                         .note = o.on_note,
                         .passes_off = o.passes_off};
  require(o.target.empty() || o.loss, Code::bad_argument, "float targets need a loss of one's own");
  if (!o.target.empty()) options.target = {DType::f32, to_shape(o.target)};
  if (o.loss) {
    options.loss = [loss = o.loss](nn::Net& net, Value output, Value target) {
      Builder builder = TensorAccess::wrap(net);
      return TensorAccess::value(net, loss(builder, TensorAccess::wrap(net, output), TensorAccess::wrap(net, target)));
    };
  }
  return options;
}

void resolve_device(const nn::Model& model, const TrainOptions& options, SessionOptions& own) {
  if (own.device != kAutoDevice) return;
  const std::int64_t batch = options.auto_batch > 0 ? options.auto_batch : model.default_batch;
  const DeviceChoice choice = choose_device(model, own, batch, options.auto_seconds);
  own.device = choice.device;
  if (options.on_note) options.on_note(choice.line);
}

BatchView Network::Impl::view(std::span<const float> items, std::span<const std::int32_t> labels) const {
  const auto elements = static_cast<std::size_t>(session.model().item.elements());
  require(session.options().target.dtype == DType::i32, Code::bad_argument, model.name(),
          ": the targets are floats, but labels came");
  require(!labels.empty() && items.size() == labels.size() * elements, Code::bad_argument, model.name(), ": expected ",
          labels.size() * elements, " values for ", labels.size(), " labels, but ", items.size(), " came");
  for (const std::int32_t label : labels) {
    require(label >= 0 && label < model.outputs(), Code::bad_argument, "label ", label, " is not in [0, ",
            model.outputs(), ")");
  }
  return {static_cast<std::int64_t>(labels.size()), items, std::as_bytes(labels)};
}

BatchView Network::Impl::view(std::span<const float> items, std::span<const float> targets) const {
  const Spec& target = session.options().target;
  require(target.dtype == DType::f32, Code::bad_argument, model.name(), ": labels are needed, but floats came");
  const auto elements = static_cast<std::size_t>(session.model().item.elements());
  const std::size_t count = items.size() / elements;
  const std::size_t expected = count * static_cast<std::size_t>(target.shape.elements());
  require(count > 0 && items.size() == count * elements && targets.size() == expected, Code::bad_argument, model.name(),
          ": ", items.size(), " values make ", count, " items, and those need ", expected, " target values, but ",
          targets.size(), " came");
  return {static_cast<std::int64_t>(count), items, std::as_bytes(targets)};
}

const StateVar& Network::Impl::find_parameter(const std::string& name) const {
  const auto& states = session.states();
  const auto found = std::ranges::find(states, name, &StateVar::name);
  require(found != states.end() && found->spec.dtype == DType::f32, Code::bad_argument, model.name(),
          " has no parameter named '", name, "'");
  return *found;
}

Network::Network(const Model& model, const TrainOptions& options)
    : impl_(new Impl{model, options, make_session(model, options)}) {}
Network::~Network() = default;
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;

StepReport Network::train_step(std::span<const float> items, std::span<const std::int32_t> labels, bool last) {
  return to_report(impl_->session.train(impl_->view(items, labels), last));
}

StepReport Network::evaluate(std::span<const float> items, std::span<const std::int32_t> labels) {
  return to_report(impl_->session.evaluate(impl_->view(items, labels)));
}

StepReport Network::train_step(std::span<const float> items, std::span<const float> targets, bool last) {
  return to_report(impl_->session.train(impl_->view(items, targets), last));
}

StepReport Network::evaluate(std::span<const float> items, std::span<const float> targets) {
  return to_report(impl_->session.evaluate(impl_->view(items, targets)));
}

std::vector<float> Network::predict(std::span<const float> items) {
  const auto elements = static_cast<std::size_t>(impl_->session.model().item.elements());
  require(!items.empty() && items.size() % elements == 0, Code::bad_argument, impl_->model.name(), ": an item has ",
          elements, " values, which do not divide ", items.size());
  const auto outputs = static_cast<std::size_t>(impl_->model.outputs());
  const std::size_t count = items.size() / elements;
  const auto batch = static_cast<std::size_t>(impl_->model.default_batch());
  std::vector<float> result(count * outputs);
  for (std::size_t first = 0; first < count; first += batch) {
    const std::size_t part = std::min(batch, count - first);
    impl_->session.predict({static_cast<std::int64_t>(part), items.subspan(first * elements, part * elements), {}},
                           std::span(result).subspan(first * outputs, part * outputs));
  }
  return result;
}

FitReport Network::fit(const Data& data, const FitOptions& options) {
  const auto& sets = DataAccess::get(data);
  Trainer trainer(impl_->session, *sets.train, sets.test.get(), options, impl_->position);
  FitReport report = trainer.run();
  // A later fit() starts anew unless this one was stopped.
  impl_->position = report.cancelled ? trainer.position() : LoaderPosition{};
  return report;
}

EvalReport Network::evaluate(const Data& data, std::int64_t batch, const Augmentation& augment) {
  const auto& sets = DataAccess::get(data);
  return stoker::evaluate(impl_->session, sets.test ? *sets.test : *sets.train, batch, to_augment(augment));
}

void Network::save(const std::filesystem::path& path, const std::map<std::string, std::string>& notes) const {
  save_checkpoint(path, impl_->session, impl_->position, notes);
}

CheckpointInfo Network::resume(const std::filesystem::path& path) {
  CheckpointInfo info;
  const std::string device = impl_->options.device == kAutoDevice ? device_of(read_checkpoint_info(path)) : "";
  if (device.empty() || device == impl_->session.device().id) {
    info = resume_checkpoint(path, impl_->session);
  } else {
    TrainOptions options = impl_->options;
    options.device = device;
    Session moved = make_session(impl_->model, options);
    info = resume_checkpoint(path, moved);
    impl_->session = std::move(moved);
  }
  impl_->position = {info.epoch, info.batch};
  return info;
}

LoadReport Network::init_from(const std::filesystem::path& path) { return load_weights(path, impl_->session); }

void Network::load(const std::filesystem::path& path) { load_all_weights(path, impl_->session); }

std::vector<ParameterInfo> Network::parameters() const {
  std::vector<ParameterInfo> list;
  for (const StateVar& state : impl_->session.states()) {
    if (state.role == StateRole::parameter) list.push_back({state.name, to_sizes(file_shape(state))});
  }
  return list;
}

std::vector<float> Network::parameter(const std::string& name) const {
  return read_in_file_layout(impl_->session, impl_->find_parameter(name));
}

void Network::set_parameter(const std::string& name, std::span<const float> values) {
  write_from_file_layout(impl_->session, impl_->find_parameter(name), values);
}

const Model& Network::model() const { return impl_->model; }
Device Network::device() const { return to_device(impl_->session.device()); }
std::int64_t Network::parameter_count() const { return impl_->session.parameters(); }
std::int64_t Network::steps_done() const { return impl_->session.steps_done(); }
std::int64_t Network::peak_bytes() const { return impl_->session.peak_bytes(); }
std::string Network::numerics() const { return impl_->session.numerics_key(); }

std::string Network::plan_table(std::int64_t batch, bool inference) { return to_string(impl_->plan(batch, inference)); }
std::string Network::plan_svg(std::int64_t batch, bool inference) { return to_svg(impl_->plan(batch, inference)); }

std::string Network::graph_text(GraphStage stage, std::int64_t batch, bool inference) {
  if (stage == GraphStage::after) return to_string(impl_->plan(batch, inference).graph);
  const Session& session = impl_->session;
  const bool accumulates = session.options().accumulate > 1;
  const StepKind training = accumulates ? StepKind::accumulate : StepKind::train;
  return to_string(build_step(session.model(), session.options(), inference ? StepKind::predict : training,
                              impl_->batch_or_default(batch))
                       .graph);
}

std::vector<Device> devices() {
  std::vector<Device> list;
  for (DeviceInfo& info : list_devices()) list.push_back(to_device(std::move(info)));
  return list;
}

std::vector<std::string> device_notes() {
  const opencl::LoadReport& loaded = opencl::load_library();
  return loaded.library == nullptr ? loaded.tried : opencl::find_devices(*loaded.library).notes;
}

}  // namespace stoker
