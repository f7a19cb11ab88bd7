// stoker plan: what a step will run, where each tensor lives, and the peak.
#include <fstream>
#include <iostream>
#include <memory>

#include "cli/cli.h"

namespace stoker::cli {
namespace {

struct PlanFlags {
  ModelFlags model;
  std::int64_t batch = 0;
  std::string svg;
  std::string graph;
  TrainOptions options{.momentum = 0.9};
  bool inference = false;
};

void run(const PlanFlags& flags) {
  TrainOptions options = flags.options;
  options.auto_seconds = 0;
  options.auto_batch = flags.batch;
  options.self_test = false;  // nothing will run
  Network network(make_model(flags.model), options);
  if (!flags.graph.empty()) {
    const GraphStage stage = flags.graph == "before" ? GraphStage::before : GraphStage::after;
    std::cout << network.graph_text(stage, flags.batch, flags.inference);
  } else {
    std::cout << network.plan_table(flags.batch, flags.inference);
  }
  if (flags.svg.empty()) return;
  std::ofstream file(flags.svg);
  file << network.plan_svg(flags.batch, flags.inference);
  if (!file.flush()) throw Error(Code::io, "cannot write " + flags.svg);
}

}  // namespace

void add_plan(CLI::App& app) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* command = app.add_subcommand("plan", "Print a step's plan: each step, each tensor's place, the peak");
  add_model_flags(*command, flags->model);
  command->add_option("--batch", flags->batch, "Items a step (default: the model's)")->check(CLI::PositiveNumber);
  command->add_option("--svg", flags->svg, "Also write a picture of the arena over time")->option_text("FILE");
  command->add_option("--graph", flags->graph, "Print the graph before or after the passes instead")
      ->check(CLI::IsMember({"before", "after"}));
  command->add_option("--pass-off", flags->options.passes_off, "Leave out a graph pass")->option_text("NAME");
  command->add_option("--optimizer", flags->options.optimizer, "sgd (with momentum), adam, adamw, rmsprop")
      ->capture_default_str();
  command->add_option("--freeze", flags->options.freeze, "Do not train parameters whose names begin so")
      ->delimiter(',');
  command
      ->add_option("--device", flags->options.device,
                   "Device to plan for: auto (what was fastest to train on), cpu, opencl, opencl:N")
      ->capture_default_str();
  command->add_flag("--infer", flags->inference, "The plan of inference instead of training");
  command->footer("Example:\n  stoker plan lenet5 --batch 64 --svg lenet5.svg");
  command->callback([flags] { run(*flags); });
}

}  // namespace stoker::cli
