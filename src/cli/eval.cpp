// stoker eval and stoker predict: a trained model on the test part of a data set.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "cli/cli.h"

namespace stoker::cli {
namespace {

struct EvalFlags {
  ModelFlags model;
  DataFlags data;
  std::string init;
  std::string augment;
  std::int64_t batch = 0;
  std::int64_t count = 10;  // predict
  TrainOptions options;
};

void add_flags(CLI::App& command, EvalFlags& flags) {
  add_model_flags(command, flags.model);
  command.add_option("--init", flags.init, "The weights: a checkpoint, or any safetensors file with PyTorch's names")
      ->option_text("FILE")
      ->required();
  command.add_option("--data", flags.data.data, "digits (built in), random, or a folder or file: idx, CIFAR-10, CSV")
      ->capture_default_str();
  command.add_option("--items", flags.data.items, "Use at most so many items");
  command.add_option("--csv-scale", flags.data.scale, "Multiply CSV values by this");
  command.add_option("--seed", flags.data.seed, "Of generated data")->capture_default_str();
  command.add_option("--augment", flags.augment, "normalise:0.5/0.25, as in training");
  command
      .add_option("--device", flags.options.device,
                  "Where to run: auto (what was fastest to train on), cpu, opencl, opencl:N")
      ->capture_default_str();
  add_opencl_flags(command, flags.options.self_test, flags.options.replay);
  command.add_option("--threads", flags.options.threads, "Threads (default: one a core)")->check(CLI::PositiveNumber);
}

// Without MODEL or --layers, a checkpoint of Stoker's own says which model it is.
Network load_network(const EvalFlags& flags) {
  const std::string name = given(flags.model) ? std::string() : read_checkpoint_info(flags.init).model;
  TrainOptions options = flags.options;
  options.auto_seconds = 0;
  Network network(make_model(flags.model, name), options);
  network.load(flags.init);
  return network;
}

void run_eval(const EvalFlags& flags) {
  Network network = load_network(flags);
  const Data data = open_data(flags.data, network.model());
  const EvalReport report = network.evaluate(data, flags.batch, parse_augmentation(flags.augment));
  std::printf("%s on %s: %s items  loss %.4f  accuracy %.2f %%\n", network.model().name().c_str(), data.name().c_str(),
              grouped(report.items).c_str(), report.loss, report.accuracy * 100);
}

// The largest logit's class and its probability.
struct Answer {
  std::size_t label = 0;
  double probability = 0;
};

Answer answer(std::span<const float> logits) {
  const auto most = std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - static_cast<double>(*most));
  return {static_cast<std::size_t>(most - logits.begin()), 1 / sum};
}

void run_predict(const EvalFlags& flags) {
  Network network = load_network(flags);
  const Data data = open_data(flags.data, network.model());
  const std::int64_t items = data.test_items() > 0 ? data.test_items() : data.train_items();
  const auto count = static_cast<std::size_t>(std::min(flags.count, items));
  std::size_t elements = 1;
  for (const std::int64_t size : data.item()) elements *= static_cast<std::size_t>(size);
  const Augmentation augmentation = parse_augmentation(flags.augment);
  std::vector<float> pixels(count * elements);
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < count; ++i) {
    labels.push_back(data.item_at(static_cast<std::int64_t>(i), std::span(pixels).subspan(i * elements, elements)));
  }
  if (!augmentation.mean.empty()) {
    for (float& pixel : pixels) pixel = (pixel - augmentation.mean[0]) / augmentation.deviation[0];
  }
  const std::vector<float> logits = network.predict(pixels);
  const auto outputs = static_cast<std::size_t>(network.model().outputs());
  for (std::size_t i = 0; i < count; ++i) {
    const Answer found = answer(std::span(logits).subspan(i * outputs, outputs));
    std::printf("item %zu: class %zu  probability %.4f  label %d\n", i, found.label, found.probability, labels[i]);
  }
}

}  // namespace

void add_eval(CLI::App& app) {
  auto flags = std::make_shared<EvalFlags>();
  CLI::App* command = app.add_subcommand("eval", "Loss and accuracy of a trained model on a test set");
  add_flags(*command, *flags);
  command->add_option("--batch", flags->batch, "Items a batch (default: the model's)")->check(CLI::PositiveNumber);
  command->footer(
      "Example, after stoker train lenet5 --save lenet5.safetensors:\n"
      "  stoker eval lenet5 --init lenet5.safetensors --data digits");
  command->callback([flags] { run_eval(*flags); });
}

void add_predict(CLI::App& app) {
  auto flags = std::make_shared<EvalFlags>();
  CLI::App* command = app.add_subcommand("predict", "Class and probability of items of a test set");
  add_flags(*command, *flags);
  command->add_option("--count", flags->count, "How many items")->check(CLI::PositiveNumber)->capture_default_str();
  command->footer(
      "Example, after stoker train lenet5 --save lenet5.safetensors:\n"
      "  stoker predict lenet5 --init lenet5.safetensors --data digits --count 5");
  command->callback([flags] { run_predict(*flags); });
}

}  // namespace stoker::cli
