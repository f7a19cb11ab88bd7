// stoker train: a model, a data set, epochs; checkpoints; Ctrl-C finishes the step, saves and says how to resume.
#include <cstdio>
#include <memory>

#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/train_flags.h"

namespace stoker::cli {
namespace {

constexpr const char* kFlagsNote = "train";

void print_names(const char* title, const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::printf("  %s:\n", title);
  for (const std::string& name : names) std::printf("    %s\n", name.c_str());
}

void init_weights(Network& network, const std::string& file) {
  const LoadReport report = network.init_from(file);
  std::printf("%s: loaded %zu tensors by name\n", file.c_str(), report.loaded.size());
  print_names("missing (they keep their random start)", report.missing);
  print_names("extra (not used)", report.extra);
  print_names("wrong shape (not used)", report.wrong_shape);
}

void resume(Network& network, const std::string& file) {
  const CheckpointInfo info = network.resume(file);
  std::printf("resumed %s at epoch %lld, batch %lld (step %lld)\n", file.c_str(),
              static_cast<long long>(info.epoch + 1), static_cast<long long>(info.batch + 1),
              static_cast<long long>(info.step));
  if (info.numerics != network.numerics()) {
    std::printf("  it was written with %s and this is %s: the last bits of the results may differ\n",
                info.numerics.c_str(), network.numerics().c_str());
  }
}

void print_start(const Network& network, const Data& data, std::int64_t batch) {
  std::printf("%s, %s parameters; %s: %s items to train, %s to test; batches of %lld\n", network.model().name().c_str(),
              grouped(network.parameter_count()).c_str(), data.name().c_str(), grouped(data.train_items()).c_str(),
              grouped(data.test_items()).c_str(), static_cast<long long>(batch));
  std::fflush(stdout);
}

void print_end(const Network& network, const FitReport& report, const std::string& saved) {
  std::printf("%s after %s steps, %s s; peak memory %s, of which tensors %s\n", report.cancelled ? "stopped" : "done",
              grouped(report.steps).c_str(), fixed(report.seconds, 1).c_str(), megabytes(peak_rss()).c_str(),
              megabytes(network.peak_bytes()).c_str());
  if (!saved.empty()) std::printf("saved %s\n", saved.c_str());
  if (report.cancelled) std::printf("resume with: stoker train --resume %s\n", saved.c_str());
}

void run(TrainFlags flags, const CLI::App& command) {
  if (!flags.init.empty() && !flags.resume.empty()) {
    throw Error(Code::bad_argument, "give --init (weights alone) or --resume (the whole training), not both");
  }
  std::string model_name;
  if (!flags.resume.empty()) {
    const CheckpointInfo info = read_checkpoint_info(flags.resume);
    if (const auto kept = info.notes.find(kFlagsNote); kept != info.notes.end()) {
      restore_flags(kept->second, command, flags);
    }
    model_name = info.model;
    // What was trained on one device goes on there, unless the user says otherwise.
    if (command.get_option("--device")->count() == 0) flags.device = device_of(info);
    if (flags.save.empty()) flags.save = flags.resume;
  }
  const Model model = make_model(flags.model, model_name);
  const Data data = open_data(flags.data, model);
  const std::int64_t batch = flags.batch > 0 ? flags.batch : model.default_batch();
  Network network(model, to_train_options(flags, batch, data.train_items()));
  print_start(network, data, batch);
  if (!flags.init.empty()) init_weights(network, flags.init);
  if (!flags.resume.empty()) resume(network, flags.resume);

  ProgressPrinter printer;
  FitOptions options{.epochs = flags.epochs,
                     .batch = flags.batch,
                     .augment = parse_augmentation(flags.augment),
                     .save = flags.save,
                     .save_every = flags.save_every,
                     .notes = {{kFlagsNote, kept_flags(flags)}}};
  options.on_step = [&printer](const Progress& progress) {
    printer.step(progress);
    return true;
  };
  options.on_epoch = [&](const EpochReport& report) { printer.epoch(report, flags.epochs); };
  FitReport report;
  {
    const SignalGuard guard(options.cancel);
    report = network.fit(data, options);
  }
  printer.clear();
  if (report.cancelled && flags.save.empty()) {
    flags.save = model.name() + "-stopped.safetensors";
    network.save(flags.save, options.notes);
  }
  print_end(network, report, flags.save);
  if (report.cancelled) throw Exit{kInterrupted};
}

}  // namespace

void add_train(CLI::App& app) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* command = app.add_subcommand("train", "Train a model");
  add_train_flags(*command, *flags);
  command->footer(
      "Example:\n  stoker train lenet5 --data digits --epochs 3 --optimizer adam --schedule cosine --save "
      "lenet5.safetensors");
  command->callback([flags, command] { run(*flags, *command); });
}

}  // namespace stoker::cli
