// The flags of `stoker train`. Those that decide what is learnt are kept in the checkpoint, so that
// `stoker train --resume FILE` needs no others.
#pragma once

#include <string>
#include <vector>

#include "cli/cli.h"

namespace stoker::cli {

struct TrainFlags {
  ModelFlags model;
  DataFlags data;
  std::int64_t epochs = 3;
  std::int64_t batch = 0;  // 0: the model's default
  std::string optimizer = "adam";
  double lr = -1;        // below 0: the optimizer's default
  double momentum = -1;  // below 0: 0.9 for sgd, else 0
  bool nesterov = false;
  double weight_decay = 0;
  std::string schedule = "constant";
  std::int64_t warmup = 0;
  std::int64_t step_size = 0;
  double gamma = 0.1;
  double clip = 0;
  int accumulate = 1;
  std::vector<std::string> freeze;
  std::vector<std::string> passes_off;
  double label_smoothing = 0;
  std::string augment;
  // Not kept: how and where this run goes.
  std::string device = "auto";
  int threads = 0;
  bool self_test = true;
  bool replay = true;
  std::string init;
  std::string save;
  std::int64_t save_every = 0;
  std::string resume;
};

void add_train_flags(CLI::App& command, TrainFlags& flags);

// For a checkpoint's notes, and back: flags that the user typed stay as they are.
[[nodiscard]] std::string kept_flags(const TrainFlags& flags);
void restore_flags(const std::string& kept, const CLI::App& command, TrainFlags& flags);

// `train_items` decides how many steps the schedule spans.
[[nodiscard]] TrainOptions to_train_options(const TrainFlags& flags, std::int64_t batch, std::int64_t train_items);

}  // namespace stoker::cli
