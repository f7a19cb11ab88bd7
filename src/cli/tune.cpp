// stoker tune: finds the fastest parameters of a model's kernels on an OpenCL device.
#include <iostream>
#include <memory>

#include "cli/cli.h"
#include "cli/status_line.h"
#include "cli/table.h"

namespace stoker::cli {
namespace {

struct TuneFlags {
  ModelFlags model;
  TuneOptions options;
};

const std::vector<Column> kColumns = {{"kernels", false}, {"problem", false}, {"before", false},
                                      {"after", false},   {"before, ms"},     {"after, ms"},
                                      {"gain"},           {"tried"},          {"wrong or not built", true}};

std::vector<std::string> to_cells(const TunedKernel& row) {
  const bool changed = row.after != row.before;
  const bool measured = row.ms_before > 0;
  return {row.kernel,
          row.problem,
          row.before,
          changed ? row.after : "the same",
          measured ? fixed(row.ms_before, 3) : "",
          measured ? fixed(row.ms_after, 3) : "",
          measured ? fixed(row.ms_before / row.ms_after, 2) + "x" : "",
          std::to_string(row.tried),
          std::to_string(row.wrong + row.failed)};
}

void run(TuneFlags& flags) {
  const std::vector<Model> chosen = given(flags.model) ? std::vector{make_model(flags.model)} : models();
  StatusLine status;
  flags.options.seconds /= static_cast<double>(chosen.size());
  bool noted = false;  // that something could not be kept
  flags.options.on_note = [&](const std::string& line) {
    status.clear();
    note_to_stderr(line);
    noted = true;
  };
  std::vector<std::vector<std::string>> rows;
  for (const Model& model : chosen) {
    flags.options.on_progress = [&](int done, int total) {
      status.show(model.name() + ": problem " + std::to_string(done + 1) + " of " + std::to_string(total));
      return true;
    };
    for (const TunedKernel& result : tune_kernels(model, flags.options)) rows.push_back(to_cells(result));
  }
  status.clear();
  std::cout << format_table(kColumns, rows);
  if (noted) return;
  std::cout << "Stored for this device and driver: training on " << flags.options.device << " uses it from now on.\n";
}

}  // namespace

void add_tune(CLI::App& app) {
  auto flags = std::make_shared<TuneFlags>();
  CLI::App* command = app.add_subcommand("tune", "Find the fastest kernels of an OpenCL device for a model");
  add_model_flags(*command, flags->model);
  command->add_option("--device", flags->options.device, "opencl (the first) or opencl:N")->capture_default_str();
  command->add_option("--batch", flags->options.batch, "Items a step (default: the model's)")
      ->check(CLI::PositiveNumber);
  command->add_option("--seconds", flags->options.seconds, "Begin nothing new after so many seconds")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->footer(
      "Without a model all of them share the time. Every candidate is compared with the plain kernel before it may "
      "win.\n"
      "Example:\n  stoker tune mobilenetv2-32 --device opencl --seconds 120");
  command->callback([flags] { run(*flags); });
}

}  // namespace stoker::cli
