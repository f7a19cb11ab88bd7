// Session: one State and the plans over it (training, evaluation, other batch sizes), which run one at a time in one
// arena. It knows nothing of data sets, files or epochs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "graph/graph.h"
#include "nn/model.h"
#include "nn/optimizer.h"

namespace stoker {

// Builds the loss from the model's output and the target: one value a sample, [N].
using LossFn = std::function<Value(nn::Net& net, Value output, Value target)>;

struct SessionOptions {
  nn::Optimizer optimizer;
  nn::Schedule schedule;
  double clip = 0;                  // global norm; 0: none
  int accumulate = 1;               // micro-batches a step
  std::vector<std::string> freeze;  // names or prefixes of parameters that are not trained
  double label_smoothing = 0;
  LossFn loss;                  // empty: softmax cross-entropy with integer labels
  Spec target{DType::i32, {}};  // of one item; the default is a class number
  std::uint64_t seed = 1;
  std::string device = "cpu";
  int threads = 0;        // 0: one a core
  bool self_test = true;  // these seven are BackendOptions
  bool replay = true;
  bool merge = true;
  KernelChoice kernels = KernelChoice::tuned;
  Recorder* recorder = nullptr;
  std::function<void()> interrupt;
  std::function<void(const std::string&)> note;
  std::vector<std::string> passes_off;  // names of passes to leave out
  bool zero_copy = true;                // batches are filled in place; else copied with blocking writes, for the study
};

// A batch in the caller's memory: `count` items and targets, densely packed.
struct BatchView {
  std::int64_t count = 0;
  std::span<const float> items;
  std::span<const std::byte> targets;  // count * target spec; may be empty for predict()
};

struct StepResult {
  double loss = 0;           // mean over the batch
  std::int64_t correct = 0;  // items whose largest output is the label (classification only)
  std::int64_t count = 0;
  std::int64_t step = 0;  // optimizer steps done so far
};

class Session {
 public:
  Session(nn::Model model, SessionOptions options);
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // One micro-batch: forward, backward, and the update when `accumulate` micro-batches are in (or `last` says that no
  // more come). Returns once the batch is copied and, on an asynchronous device, the step is under way: at most
  // Backend::batch_slots() of them are.
  void submit(const BatchView& batch, bool last = false);
  void submit_evaluation(const BatchView& batch);
  // The result of the oldest batch that was submitted and not collected. None: there is none, or it is not done yet and
  // `wait` is false. A loss that is not finite throws Code::not_finite and leaves the state as it was; a gradient that
  // is not finite stops the writes from there on (docs/adr: early updates). Batches submitted after it change nothing
  // and are dropped.
  std::optional<StepResult> collect(bool wait);
  // Waits for everything submitted and drops the results; an error in it is thrown here.
  void settle();

  // Settle, submit and wait.
  StepResult train(const BatchView& batch, bool last = false);
  StepResult evaluate(const BatchView& batch);
  // Writes count * outputs floats.
  void predict(const BatchView& batch, std::span<float> outputs);

  // State by name: parameters, statistics, moments ("optimizer.<moment>.<parameter>"), counters ("optimizer.step").
  // Reading and writing waits for the steps under way.
  [[nodiscard]] const std::vector<StateVar>& states() const;
  void read_state(std::string_view name, std::span<std::byte> bytes) const;
  void write_state(std::string_view name, std::span<const std::byte> bytes);
  [[nodiscard]] std::int64_t steps_done() const;

  [[nodiscard]] const nn::Model& model() const;
  [[nodiscard]] const SessionOptions& options() const;
  [[nodiscard]] const Plan& train_plan(std::int64_t batch);
  [[nodiscard]] const Plan& predict_plan(std::int64_t batch);
  void prepare_training(std::int64_t batch);  // plans and compiles, so that the first step need not
  // A training step, kernel by kernel, with `interrupt` in between.
  void warm_up(const BatchView& batch);
  // Runs the training plan once more (on whatever batch it was given last) and gives each step's seconds.
  [[nodiscard]] std::vector<double> train_timings(std::int64_t batch);
  [[nodiscard]] std::int64_t parameters() const;
  [[nodiscard]] std::int64_t peak_bytes() const;  // State + arena + batch buffers: all that was allocated for tensors
  [[nodiscard]] double flops_per_step(std::int64_t batch);
  // Which instruction set or device and driver makes the bits; stored in checkpoints.
  [[nodiscard]] std::string numerics_key() const;
  [[nodiscard]] DeviceInfo device() const;
  [[nodiscard]] int batch_slots() const;    // of the device: how many steps may be under way
  [[nodiscard]] Counters counters() const;  // of the device, since it was opened

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
