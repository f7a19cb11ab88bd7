// stoker bench: a row for each model and device, in the manner of llama-bench.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/table.h"

namespace stoker::cli {
namespace {

struct BenchFlags {
  std::vector<std::string> models;
  std::vector<std::string> devices{"auto"};
  BenchOptions options;
  std::string output = "table";
};

nlohmann::ordered_json to_json(const BenchRow& row) {
  return {{"model", row.model},
          {"device", row.device},
          {"batch", row.batch},
          {"threads", row.threads},
          {"params", row.params},
          {"steps", row.steps},
          {"step_ms", {{"median", row.step_ms_median}, {"min", row.step_ms_min}, {"p90", row.step_ms_p90}}},
          {"items_per_s", row.items_per_s},
          {"gflops", row.gflops},
          {"peak_bytes", row.peak_bytes},
          {"peak_rss_bytes", row.peak_rss},
          {"setup_ms", row.setup_ms},
          {"first_step_ms", row.first_step_ms},
          {"host_bytes_per_step", row.host_bytes_per_step},
          {"blocking_calls_per_step", row.blocking_calls_per_step},
          {"back_pressure_per_step", row.back_pressure_per_step},
          {"launches_per_step", row.launches_per_step},
          {"replays_per_step", row.replays_per_step},
          {"flushes_per_step", row.flushes_per_step},
          {"objects_created_per_step", row.objects_created_per_step},
          {"movement_share", row.movement_share}};
}

const std::vector<Column> kColumns{{"model", false}, {"device", false}, {"batch"},    {"threads"}, {"params"},
                                   {"step ms"},      {"min"},           {"p90"},      {"items/s"}, {"GFLOPS"},
                                   {"tensors MB"},   {"RSS MB"},        {"setup ms"}, {"launches"}};

std::vector<std::string> to_cells(const BenchRow& row) {
  const auto mega = [](std::int64_t bytes) { return fixed(static_cast<double>(bytes) / 1e6, 1); };
  return {row.model,
          row.device,
          std::to_string(row.batch),
          std::to_string(row.threads),
          std::to_string(row.params),
          fixed(row.step_ms_median, 3),
          fixed(row.step_ms_min, 3),
          fixed(row.step_ms_p90, 3),
          fixed(row.items_per_s, 1),
          fixed(row.gflops, 1),
          mega(row.peak_bytes),
          mega(row.peak_rss),
          fixed(row.setup_ms, 1),
          fixed(row.launches_per_step, 0)};
}

void run(const BenchFlags& flags) {
  std::vector<Model> chosen;
  for (const std::string& name : flags.models) chosen.push_back(Model::named(name));
  if (chosen.empty()) chosen = models();
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows;
  for (const Model& model : chosen) {
    for (const std::string& device : flags.devices) {
      BenchOptions options = flags.options;
      options.device = device;
      options.on_note = note_to_stderr;
      const BenchRow row = bench(model, options);
      json.push_back(to_json(row));
      rows.push_back(to_cells(row));
    }
  }
  if (flags.output == "json") {
    std::cout << json.dump(2) << "\n";
    return;
  }
  const TableFormat format = flags.output == "md"    ? TableFormat::markdown
                             : flags.output == "csv" ? TableFormat::csv
                                                     : TableFormat::plain;
  std::cout << format_table(kColumns, rows, format);
}

}  // namespace

void add_bench(CLI::App& app) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command = app.add_subcommand("bench", "Time training steps: forward, backward, SGD with momentum");
  command->add_option("--models", flags->models, "Models by name (default: all)")->delimiter(',');
  command->add_option("--devices", flags->devices, "Devices: auto (the fastest), cpu, opencl, opencl:N")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--batch", flags->options.batch, "Items a step (default: the model's)")
      ->check(CLI::PositiveNumber);
  command->add_option("--threads", flags->options.threads, "Threads (default: one a core)")->check(CLI::PositiveNumber);
  command->add_option("--steps", flags->options.steps, "Steps to time (default: about two seconds of them)")
      ->check(CLI::PositiveNumber);
  command->add_option("--pass-off", flags->options.passes_off, "Leave out a graph pass");
  add_opencl_flags(*command, flags->options.self_test, flags->options.replay);
  command->add_option("-o,--output", flags->output, "Format")
      ->check(CLI::IsMember({"table", "md", "csv", "json"}))
      ->capture_default_str();
  command->footer("Example:\n  stoker bench --models mlp,lenet5 --devices cpu,opencl -o md");
  command->callback([flags] { run(*flags); });
}

}  // namespace stoker::cli
