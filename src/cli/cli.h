// What the commands share: each is registered by a function of its own. Most use the public API alone.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "stoker/stoker.hpp"

namespace stoker::cli {

void add_train(CLI::App& app);
void add_eval(CLI::App& app);
void add_predict(CLI::App& app);
void add_bench(CLI::App& app);
void add_plan(CLI::App& app);
void add_profile(CLI::App& app);
void add_devices(CLI::App& app);
void add_check(CLI::App& app);
void add_tune(CLI::App& app);
void add_models(CLI::App& app);
void add_study(CLI::App& app);
void add_simulate(CLI::App& app);

// The exit status of a command that was stopped by Ctrl-C, as shells have it.
constexpr int kInterrupted = 130;
// Thrown by a command that has said all there is to say.
struct Exit {
  int status = 0;
};

// MODEL or --layers.
struct ModelFlags {
  std::string name;
  std::vector<std::int64_t> layers;
};
void add_model_flags(CLI::App& command, ModelFlags& flags);
[[nodiscard]] bool given(const ModelFlags& flags);
// The model that the flags name; if they name none, the one that `otherwise` names.
[[nodiscard]] Model make_model(const ModelFlags& flags, const std::string& otherwise = {});

struct DataFlags {
  std::string data = "digits";
  std::int64_t items = 0;  // at most so many of each part
  std::uint64_t seed = 1;  // of generated data
  double scale = 1;        // CSV
};
[[nodiscard]] Data open_data(const DataFlags& flags, const Model& model);

// --no-self-test, --no-replay.
void add_opencl_flags(CLI::App& command, bool& self_test, bool& replay);
inline constexpr const char* kDeviceHelp = "auto (the fastest, measured once), cpu, opencl, opencl:N";
// For TrainOptions::on_note where the output is for other programs; elsewhere notes go with the rest.
void note_to_stderr(const std::string& line);
void print_note(const std::string& line);

// "shift:2,flip,normalise:0.5/0.5".
[[nodiscard]] Augmentation parse_augmentation(const std::string& text);

// 12,345,678.
[[nodiscard]] std::string grouped(std::int64_t number);
// Digits after the point fixed.
[[nodiscard]] std::string fixed(double value, int digits);
[[nodiscard]] std::string megabytes(std::int64_t bytes);
[[nodiscard]] std::string shape_text(const Sizes& sizes);

}  // namespace stoker::cli
