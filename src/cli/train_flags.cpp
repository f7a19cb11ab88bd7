#include "cli/train_flags.h"

#include <nlohmann/json.hpp>
#include <type_traits>

namespace stoker::cli {
namespace {

// The one list of flags that are kept: visit(flag, member, help).
template <typename Flags, typename Visit>
void for_each_kept(Flags& f, const Visit& visit) {
  visit("--data", f.data.data, "digits (built in), random, or a folder or file: idx, CIFAR-10, CSV");
  visit("--items", f.data.items, "Use at most so many items of the training and of the test part (default: all)");
  visit("--csv-scale", f.data.scale, "Multiply CSV values by this (0.00392157 for pixels)");
  visit("--epochs", f.epochs, "Passes over the training part, in all");
  visit("--batch", f.batch, "Items a batch (default: the model's)");
  visit("--optimizer", f.optimizer, "sgd, adam, adamw or rmsprop");
  visit("--lr", f.lr, "Learning rate (default: 0.05 for sgd, 0.001 for the others)");
  visit("--momentum", f.momentum, "Momentum of sgd and rmsprop (default: 0.9 for sgd, else 0)");
  visit("--nesterov", f.nesterov, "Nesterov's momentum (sgd)");
  visit("--weight-decay", f.weight_decay, "Weight decay; decoupled with adamw");
  visit("--schedule", f.schedule, "Learning rate over time: constant, step or cosine");
  visit("--warmup", f.warmup, "Steps over which the rate rises first");
  visit("--step-size", f.step_size, "Schedule step: steps between two reductions (default: a third of all)");
  visit("--gamma", f.gamma, "Schedule step: the factor of a reduction");
  visit("--clip", f.clip, "Limit of the gradients' global norm");
  visit("--accumulate", f.accumulate, "Batches whose gradients make one step");
  visit("--freeze", f.freeze, "Do not train parameters whose names begin so");
  visit("--label-smoothing", f.label_smoothing, "Label smoothing of the loss");
  visit("--pass-off", f.passes_off, "Leave out graph passes: early-update, winograd, fuse-epilogue, ...");
  visit("--augment", f.augment, "Change training images: shift:2,flip,normalise:0.5/0.25");
  visit("--seed", f.data.seed, "Decides weights, order and generated data");
}

void require_steps(bool ok, const char* flag) {
  if (!ok) throw Error(Code::bad_argument, std::string(flag) + " must not be negative");
}

}  // namespace

void add_train_flags(CLI::App& command, TrainFlags& flags) {
  add_model_flags(command, flags.model);
  for_each_kept(flags, [&command](const char* name, auto& member, const char* help) {
    using Member = std::remove_reference_t<decltype(member)>;
    if constexpr (std::is_same_v<Member, bool>) {
      command.add_flag(name, member, help);
    } else if constexpr (std::is_same_v<Member, std::vector<std::string>>) {
      command.add_option(name, member, help)->delimiter(',');
    } else {
      CLI::Option* option = command.add_option(name, member, help);
      const std::string text = std::string(help);
      if (text.find("(default") == std::string::npos && option->get_items_expected() == 1) {
        option->capture_default_str();
      }
    }
  });
  command.add_option("--device", flags.device, std::string("Where to train: ") + kDeviceHelp)->capture_default_str();
  add_opencl_flags(command, flags.self_test, flags.replay);
  command.add_option("--threads", flags.threads, "Threads (default: one a core)")->check(CLI::PositiveNumber);
  command.add_option("--init", flags.init, "Start from the weights of a safetensors file, by name")
      ->option_text("FILE");
  command.add_option("--save", flags.save, "Write a checkpoint after each epoch and when stopped")->option_text("FILE");
  command.add_option("--save-every", flags.save_every, "And after every so many batches")->check(CLI::PositiveNumber);
  command.add_option("--resume", flags.resume, "Go on from a checkpoint, with its flags and to the same bits")
      ->option_text("FILE");
}

std::string kept_flags(const TrainFlags& flags) {
  nlohmann::ordered_json json;
  for_each_kept(flags, [&json](const char* name, const auto& member, const char*) { json[name] = member; });
  return json.dump();
}

void restore_flags(const std::string& kept, const CLI::App& command, TrainFlags& flags) {
  const nlohmann::json json = nlohmann::json::parse(kept, nullptr, false);
  for_each_kept(flags, [&](const char* name, auto& member, const char*) {
    if (command.get_option(name)->count() > 0 || !json.contains(name)) return;
    try {
      member = json.at(name).get<std::remove_reference_t<decltype(member)>>();
    } catch (const nlohmann::json::exception&) {
      throw Error(Code::bad_file, std::string("the checkpoint's note of ") + name + " is damaged");
    }
  });
}

TrainOptions to_train_options(const TrainFlags& flags, std::int64_t batch, std::int64_t train_items) {
  require_steps(flags.warmup >= 0, "--warmup");
  require_steps(flags.step_size >= 0, "--step-size");
  const bool sgd = flags.optimizer == "sgd";
  const std::int64_t batches = (train_items + batch - 1) / batch;
  const std::int64_t accumulate = std::max(flags.accumulate, 1);
  const std::int64_t total = flags.epochs * ((batches + accumulate - 1) / accumulate);
  return {.optimizer = flags.optimizer,
          .lr = flags.lr >= 0 ? flags.lr : (sgd ? 0.05 : 0.001),
          .momentum = flags.momentum >= 0 ? flags.momentum : (sgd ? 0.9 : 0.0),
          .nesterov = flags.nesterov,
          .weight_decay = flags.weight_decay,
          .schedule = flags.schedule,
          .warmup_steps = flags.warmup,
          .total_steps = total,
          .step_size = flags.step_size > 0 ? flags.step_size : std::max<std::int64_t>(1, total / 3),
          .gamma = flags.gamma,
          .clip = flags.clip,
          .accumulate = flags.accumulate,
          .freeze = flags.freeze,
          .label_smoothing = flags.label_smoothing,
          .seed = flags.data.seed,
          .device = flags.device,
          .auto_batch = batch,
          .threads = flags.threads,
          .self_test = flags.self_test,
          .replay = flags.replay,
          .on_note = print_note,
          .passes_off = flags.passes_off};
}

}  // namespace stoker::cli
