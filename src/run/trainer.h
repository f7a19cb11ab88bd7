// Trainer: epochs over a data set with one Session: evaluation, progress, checkpoints, cancelling, resuming.
#pragma once

#include <deque>

#include "data/loader.h"
#include "run/session.h"
#include "stoker/stoker.hpp"

namespace stoker {

[[nodiscard]] Augment to_augment(const Augmentation& augmentation);

class Trainer {
 public:
  // All must outlive the trainer; `test` may be null. Training starts at `start`.
  Trainer(Session& session, const Dataset& train, const Dataset* test, const FitOptions& options,
          LoaderPosition start = {});

  // Trains until the last epoch is done or someone asks to stop; what is under way on the device then is completed.
  // Progress lags behind by the steps under way; checkpoints, evaluation and reports do not. A loss that is not finite
  // ends it with Code::not_finite: the session is as before that step, and so is the last checkpoint.
  [[nodiscard]] FitReport run();
  // The next batch to be trained.
  [[nodiscard]] LoaderPosition position() const { return position_; }

 private:
  struct Running;  // sums over the epoch under way

  void train_batch(const Batch& batch, Running& running);
  // Takes the results that are there, or waits for all.
  void collect(Running& running, bool wait);
  void report(const StepResult& result, Running& running);
  [[nodiscard]] Progress progress(LoaderPosition batch, const StepResult& last, const Running& running) const;
  void save_or_stop(const Batch& batch, Running& running);
  [[nodiscard]] EpochReport end_epoch(std::int64_t epoch, const Running& running);

  Session& session_;
  const Dataset& train_;
  const Dataset* test_;
  const FitOptions& options_;
  std::int64_t batch_;  // items
  LoaderPosition position_;
  std::deque<LoaderPosition> under_way_;  // batches submitted and not collected
  std::int64_t batches_per_epoch_ = 0;
  bool stop_requested_ = false;
  bool stop_ = false;  // requested, and the step is complete
};

// Over all items, the last smaller batch included. A `batch` of 0 is the model's default.
[[nodiscard]] EvalReport evaluate(Session& session, const Dataset& data, std::int64_t batch, const Augment& augment);

}  // namespace stoker
