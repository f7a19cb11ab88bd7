// stoker simulate: predicted step times on phones that are not at hand, and the check of the model on devices that are.
#include "study/simulate.h"

#include <iostream>
#include <memory>

#include "cli/cli.h"
#include "cli/report_text.h"
#include "study/validate.h"

namespace stoker::cli {
namespace {

struct SimulateFlags {
  std::string model;
  std::vector<std::string> phones;
  std::string mode;
  std::int64_t batch = 0;
  bool validate = false;
};

std::vector<StepMode> modes_of(const std::string& mode) {
  if (mode == "baseline") return {StepMode::baseline};
  if (mode == "resident") return {StepMode::resident};
  return {StepMode::baseline, StepMode::resident};
}

void run(const SimulateFlags& flags) {
  if (flags.validate) {
    std::cout << section_text(validation_section([](const std::string& what) { note_to_stderr("measuring " + what); }));
    return;
  }
  std::vector<const Chip*> chips;
  for (const std::string& phone : flags.phones) chips.push_back(&find_chip(phone));
  if (flags.model.empty() && chips.empty()) {
    std::cout << section_text(phones_section());
    return;
  }
  if (chips.empty())
    for (const std::string_view id : study_phones()) chips.push_back(&find_chip(id));
  if (flags.model.empty()) {
    std::cout << section_text(phones_section(study_nets(), chips));
    return;
  }
  const nn::Model model = nn::find_model(flags.model);
  const SimulatedNet net{model, flags.batch > 0 ? flags.batch : model.default_batch};
  const std::vector<StepMode> modes = modes_of(flags.mode);
  for (const Chip* chip : chips) std::cout << section_text(simulation_section(net, *chip, modes)) << "\n";
}

}  // namespace

void add_simulate(CLI::App& app) {
  auto flags = std::make_shared<SimulateFlags>();
  CLI::App* command = app.add_subcommand("simulate", "Predict step times on phones that are not at hand");
  CLI::Option* model =
      command->add_option("model", flags->model, "A model by name; without one, the nets of the 2022 study")
          ->option_text("MODEL");
  CLI::Option* phone =
      command
          ->add_option("--phone", flags->phones, "Phones by their chips' ids, as in sd865; without, the study's three")
          ->delimiter(',')
          ->option_text("ID,...");
  command->add_option("--mode", flags->mode, "baseline (data moves as in MNN), resident; without, both")
      ->check(CLI::IsMember({"baseline", "resident"}))
      ->needs(model);
  command->add_option("--batch", flags->batch, "Items a step (default: the model's)")
      ->check(CLI::PositiveNumber)
      ->needs(model);
  command
      ->add_flag("--validate", flags->validate,
                 "Instead: predict and measure steps on the devices of this machine (minutes)")
      ->excludes(model)
      ->excludes(phone);
  command->footer("Example:\n  stoker simulate mlp --phone sd865 --batch 32");
  command->callback([flags] { run(*flags); });
}

}  // namespace stoker::cli
