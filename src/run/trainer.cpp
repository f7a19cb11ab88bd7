#include "run/trainer.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "run/checkpoint.h"

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

BatchView view(const Batch& batch) { return {batch.count, batch.items, std::as_bytes(std::span(batch.labels))}; }

void check_fit(const nn::Model& model, const Dataset& data) {
  require(data.size() > 0, Code::bad_argument, "data set ", data.name(), " is empty");
  require(data.item_elements() == model.item.elements(), Code::bad_argument, "an item of data set ", data.name(),
          " is ", data.item_shape(), ", but ", model.name, " takes ", model.item);
  require(data.classes() <= model.outputs, Code::bad_argument, "data set ", data.name(), " has ", data.classes(),
          " classes, but ", model.name, " has ", model.outputs, " outputs");
}

}  // namespace

struct Trainer::Running {
  Clock::time_point start = Clock::now();
  double loss = 0;
  std::int64_t correct = 0;
  std::int64_t items = 0;

  void add(const StepResult& result) {
    loss += result.loss * static_cast<double>(result.count);
    correct += result.correct;
    items += result.count;
  }
  [[nodiscard]] double mean_loss() const { return items > 0 ? loss / static_cast<double>(items) : 0; }
  [[nodiscard]] double accuracy() const {
    return items > 0 ? static_cast<double>(correct) / static_cast<double>(items) : 0;
  }
  [[nodiscard]] double items_per_s() const { return static_cast<double>(items) / std::max(seconds_since(start), 1e-9); }
};

Augment to_augment(const Augmentation& augmentation) {
  return {.shift = augmentation.shift,
          .flip = augmentation.flip,
          .mean = augmentation.mean,
          .deviation = augmentation.deviation};
}

Trainer::Trainer(Session& session, const Dataset& train, const Dataset* test, const FitOptions& options,
                 LoaderPosition start)
    : session_(session),
      train_(train),
      test_(test),
      options_(options),
      batch_(options.batch > 0 ? options.batch : session.model().default_batch),
      position_(start) {
  require(options.epochs > 0, Code::bad_argument, "the number of epochs must be at least 1, not ", options.epochs);
  require(options.batch >= 0, Code::bad_argument, "the batch must have at least 1 item, not ", options.batch);
  require(session.options().target.dtype == DType::i32, Code::bad_argument,
          "data sets have labels; a network with float targets is trained step by step");
  check_fit(session.model(), train);
  if (test != nullptr) check_fit(session.model(), *test);
}

FitReport Trainer::run() {
  const Clock::time_point start = Clock::now();
  Loader loader(train_, {.batch = batch_,
                         .seed = session_.options().seed,
                         .augment = to_augment(options_.augment),
                         .start = position_,
                         .epochs = options_.epochs});
  batches_per_epoch_ = loader.batches_per_epoch();
  session_.settle();
  FitReport report;
  Running running;
  stop_ = options_.cancel.cancelled();
  while (!stop_) {
    const Batch* batch = loader.next();
    if (batch == nullptr) break;
    train_batch(*batch, running);
    position_ = loader.position();
    save_or_stop(*batch, running);
    if (batch->ends_epoch) {
      report.epochs.push_back(end_epoch(batch->position.epoch, running));
      running = {};
    }
  }
  report.cancelled = stop_ && position_.epoch < options_.epochs;
  report.steps = session_.steps_done();
  report.seconds = seconds_since(start);
  return report;
}

void Trainer::train_batch(const Batch& batch, Running& running) {
  session_.submit(view(batch), batch.ends_epoch);
  under_way_.push_back(batch.position);
  collect(running, batch.ends_epoch);
}

void Trainer::collect(Running& running, bool wait) {
  while (!under_way_.empty()) {
    std::optional<StepResult> result;
    try {
      result = session_.collect(wait);
    } catch (const Error& error) {
      if (error.code() != Code::not_finite) throw;
      const LoaderPosition at = under_way_.front();
      fail(Code::not_finite, "epoch ", at.epoch + 1, ", batch ", at.batch + 1, ": ", error.what(),
           options_.save.empty() ? "" : str(" ", options_.save.string(), " keeps what was saved before."));
    }
    if (!result) return;
    report(*result, running);
  }
}

void Trainer::report(const StepResult& result, Running& running) {
  const LoaderPosition batch = under_way_.front();
  under_way_.pop_front();
  running.add(result);
  const bool go_on = !options_.on_step || options_.on_step(progress(batch, result, running));
  stop_requested_ = stop_requested_ || !go_on;
}

Progress Trainer::progress(LoaderPosition batch, const StepResult& last, const Running& running) const {
  Progress progress{.epoch = batch.epoch,
                    .epochs = options_.epochs,
                    .batch = batch.batch + 1,
                    .batches = batches_per_epoch_,
                    .step = last.step,
                    .batch_loss = last.loss,
                    .loss = running.mean_loss(),
                    .accuracy = running.accuracy(),
                    .items_per_s = running.items_per_s()};
  const std::int64_t done = std::min(progress.batch * batch_, train_.size());
  const std::int64_t left = (options_.epochs - progress.epoch) * train_.size() - done;
  progress.seconds_left = static_cast<double>(left) / progress.items_per_s;
  return progress;
}

// Saving and stopping are for complete steps only: gradients that wait for the rest of their step are not in
// checkpoints.
void Trainer::save_or_stop(const Batch& batch, Running& running) {
  const std::int64_t done = batch.position.batch + 1;
  const bool step_complete = batch.ends_epoch || done % session_.options().accumulate == 0;
  if (!step_complete) return;
  stop_requested_ = stop_requested_ || options_.cancel.cancelled();
  const bool due = !options_.save.empty() && options_.save_every > 0 && done % options_.save_every == 0;
  if (due || stop_requested_) collect(running, true);
  stop_ = stop_requested_;
  if (options_.save.empty()) return;
  if (batch.ends_epoch || due || stop_) save_checkpoint(options_.save, session_, position_, options_.notes);
}

EpochReport Trainer::end_epoch(std::int64_t epoch, const Running& running) {
  EpochReport report{.epoch = epoch,
                     .loss = running.mean_loss(),
                     .accuracy = running.accuracy(),
                     .items_per_s = running.items_per_s(),
                     .seconds = seconds_since(running.start)};
  if (test_ != nullptr && !stop_) {
    const EvalReport test = evaluate(session_, *test_, batch_, to_augment(options_.augment));
    report.test_items = test.items;
    report.test_loss = test.loss;
    report.test_accuracy = test.accuracy;
  }
  if (options_.on_epoch) options_.on_epoch(report);
  return report;
}

EvalReport evaluate(Session& session, const Dataset& data, std::int64_t batch, const Augment& augment) {
  check_fit(session.model(), data);
  Loader loader(data, {.batch = batch > 0 ? batch : session.model().default_batch,
                       .shuffle = false,
                       .augment = augment.without_chance(),
                       .epochs = 1});
  session.settle();
  EvalReport report;
  std::int64_t correct = 0;
  const auto add = [&](bool wait) {
    while (const std::optional<StepResult> result = session.collect(wait)) {
      report.loss += result->loss * static_cast<double>(result->count);
      correct += result->correct;
      report.items += result->count;
    }
  };
  while (const Batch* next = loader.next()) {
    session.submit_evaluation(view(*next));
    add(false);
  }
  add(true);
  report.loss /= static_cast<double>(report.items);
  report.accuracy = static_cast<double>(correct) / static_cast<double>(report.items);
  return report;
}

}  // namespace stoker
