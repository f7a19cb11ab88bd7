// Stoker trains neural networks on the device at hand. This is the whole C++ API, and what the command line uses.
//
//   stoker::Network net(stoker::Model::named("lenet5"), {.optimizer = "adam", .lr = 1e-3});
//   net.fit(stoker::Data::arrays(pixels, labels, {28, 28, 1}), {.epochs = 3});
//   std::vector<float> logits = net.predict(new_pixels);
//
// Images are [height, width, channels], densely packed. Nothing is printed; a mistake throws stoker::Error. Several
// networks may live in one process; one network is used by one thread at a time (CancelToken apart).
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "stoker/error.hpp"

namespace stoker {

using Sizes = std::vector<std::int64_t>;

// ---- Networks of one's own ------------------------------------------------------------------------------------------

// A value in a network under construction, of shape [N, ...]. Cheap to copy; valid while its build function runs.
class Tensor {
 public:
  [[nodiscard]] Sizes shape() const;

 private:
  friend struct TensorAccess;
  void* net_ = nullptr;
  int node_ = -1;
  int index_ = 0;
};

// Pointwise, with NumPy's broadcasting. Comparisons give 1 or 0.
Tensor operator+(Tensor x, Tensor y);
Tensor operator-(Tensor x, Tensor y);
Tensor operator*(Tensor x, Tensor y);
Tensor operator/(Tensor x, Tensor y);
Tensor operator+(Tensor x, float y);
Tensor operator-(Tensor x, float y);
Tensor operator*(Tensor x, float y);
Tensor operator/(Tensor x, float y);
Tensor operator-(Tensor x);
Tensor minimum(Tensor x, Tensor y);
Tensor maximum(Tensor x, Tensor y);
Tensor pow(Tensor x, float exponent);
Tensor equal(Tensor x, Tensor y);
Tensor less(Tensor x, Tensor y);
Tensor where(Tensor condition, Tensor yes, Tensor no);
Tensor abs(Tensor x);
Tensor exp(Tensor x);
Tensor log(Tensor x);
Tensor sqrt(Tensor x);
Tensor tanh(Tensor x);
Tensor sigmoid(Tensor x);
Tensor relu(Tensor x);
Tensor relu6(Tensor x);
Tensor leaky_relu(Tensor x, double slope = 0.01);
Tensor gelu(Tensor x);
Tensor silu(Tensor x);
Tensor hard_swish(Tensor x);
Tensor stop_gradient(Tensor x);

// Reductions; negative axes count from the end, none means all.
Tensor sum(Tensor x, const Sizes& axes = {}, bool keep_axes = false);
Tensor mean(Tensor x, const Sizes& axes = {}, bool keep_axes = false);
Tensor max(Tensor x, const Sizes& axes = {}, bool keep_axes = false);
Tensor softmax(Tensor x);      // over the last axis
Tensor log_softmax(Tensor x);  // over the last axis
// One loss a sample from [N, classes] and labels [N].
Tensor softmax_cross_entropy(Tensor logits, Tensor labels, double label_smoothing = 0);
// Labels [N] as rows [N, classes] with a single 1.
Tensor one_hot(Tensor labels, std::int64_t classes);

Tensor matmul(Tensor x, Tensor y, bool transpose_x = false, bool transpose_y = false);
Tensor max_pool(Tensor x, std::int64_t kernel, std::int64_t stride, std::int64_t pad = 0);
Tensor avg_pool(Tensor x, std::int64_t kernel, std::int64_t stride, std::int64_t pad = 0);
Tensor global_avg_pool(Tensor x);  // [N, H, W, C] -> [N, C]
Tensor flatten(Tensor x);          // [N, H, W, C] -> [N, C * H * W], in PyTorch's order
Tensor reshape(Tensor x, const Sizes& shape);
Tensor transpose(Tensor x, const Sizes& order);
Tensor concat(const std::vector<Tensor>& parts, std::int64_t axis);

// How a parameter starts.
struct Init {
  enum class Kind { constant, uniform, normal };
  Kind kind = Kind::constant;
  float a = 0;  // the constant; the lower bound; the mean
  float b = 0;  // the upper bound; the standard deviation
};

struct Conv {
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t pad = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
};

// Layers with parameters. `name` is the prefix of their names in checkpoints: "fc" declares fc.weight and fc.bias.
// Initial values are PyTorch's.
class Builder {
 public:
  Tensor parameter(const std::string& name, const Sizes& shape, Init init);
  Tensor linear(Tensor x, const std::string& name, std::int64_t outputs, bool bias = true);
  Tensor conv2d(Tensor x, const std::string& name, std::int64_t outputs, const Conv& options = {});
  Tensor batch_norm(Tensor x, const std::string& name, double momentum = 0.1, double eps = 1e-5);
  Tensor layer_norm(Tensor x, const std::string& name, double eps = 1e-5);
  Tensor dropout(Tensor x, double probability);
  [[nodiscard]] bool training() const;

 private:
  friend struct TensorAccess;
  void* net_ = nullptr;
};

// Called once for each batch size and for training and inference apart: it must do the same each time.
using BuildFunction = std::function<Tensor(Builder& net, Tensor x)>;
// The loss of each sample, [N], from the network's output and the targets.
using LossFunction = std::function<Tensor(Builder& net, Tensor output, Tensor target)>;

class Model {
 public:
  // One of models(), or fully connected layers as in "mlp:784-256-128-16".
  [[nodiscard]] static Model named(const std::string& name);
  // Fully connected, ReLU between: {784, 256, 10}.
  [[nodiscard]] static Model layers(const Sizes& sizes);
  // `item` is the shape of one input; `build` maps [N, item...] to [N, outputs].
  [[nodiscard]] static Model custom(const std::string& name, const Sizes& item, std::int64_t outputs,
                                    BuildFunction build);

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const std::string& summary() const;
  [[nodiscard]] Sizes item() const;
  [[nodiscard]] std::int64_t outputs() const;
  [[nodiscard]] std::int64_t default_batch() const;
  [[nodiscard]] std::int64_t parameters() const;
  [[nodiscard]] double forward_flops() const;  // for one item

 private:
  friend struct ModelAccess;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

[[nodiscard]] std::vector<Model> models();

// ---- Data -----------------------------------------------------------------------------------------------------------

struct Augmentation {
  int shift = 0;            // up to so many pixels in each direction
  bool flip = false;        // left and right, every second time
  std::vector<float> mean;  // (x - mean) / deviation: one value, or one a channel
  std::vector<float> deviation;
};

struct OpenOptions {
  std::uint64_t seed = 1;        // digits and random
  std::int64_t train_items = 0;  // digits and random: how many to make; 0: 8,000 and 2,000
  std::int64_t test_items = 0;
  std::int64_t limit = 0;  // at most so many items of each part; 0: all
  Sizes item;              // random and CSV: the shape of an item
  int classes = 0;         // random; in files, labels must be below it; 0: as found
  float csv_scale = 1;     // CSV values are multiplied by it: 1/255 for pixels
};

// Items with class labels: a part to train on and, if there is one, a part to test on.
class Data {
 public:
  // "digits" (built in), "random", or a folder or file: idx, CIFAR-10, CSV.
  [[nodiscard]] static Data open(const std::string& name, const OpenOptions& options = {});
  // The caller's arrays, which must outlive the Data: items [labels.size(), item...].
  [[nodiscard]] static Data arrays(std::span<const float> items, std::span<const std::int32_t> labels,
                                   const Sizes& item);
  [[nodiscard]] Data with_test(const Data& test) const;  // tests on the training part of `test`

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] Sizes item() const;
  [[nodiscard]] int classes() const;
  [[nodiscard]] std::int64_t train_items() const;
  [[nodiscard]] std::int64_t test_items() const;  // 0: no test part
  // Copies an item of the test part (of the training part if there is none) and returns its label.
  std::int32_t item_at(std::int64_t index, std::span<float> item) const;

 private:
  friend struct DataAccess;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// ---- The machine ----------------------------------------------------------------------------------------------------

struct Device {
  std::string id;       // for TrainOptions::device
  std::string name;     // for people
  std::string details;  // instruction set, threads; driver, memory
};
[[nodiscard]] std::vector<Device> devices();
// What is not in that list, and why: the OpenCL libraries that were tried where none was found, devices left out.
[[nodiscard]] std::vector<std::string> device_notes();

// A small graph for a family of kernels, forward and backward, on an OpenCL device and on the CPU.
struct KernelCheck {
  std::string kernel;  // the family: gemm, conv2d, depthwise, ...
  std::string name;    // of the case
  double error = 0;    // the largest difference, as a share of the largest value
  bool passed = false;
  std::string problem;  // why not, in words
};
struct DeviceCheck {
  std::vector<KernelCheck> checks;
  bool passed = false;             // all of them
  std::vector<std::string> notes;  // what was put into quarantine, for this and later runs
};
// The self-test of every kernel family. A family that fails is replaced by plain kernels from now on.
[[nodiscard]] DeviceCheck check_device(const std::string& device,
                                       const std::function<void(const KernelCheck&)>& on_check = {});

// ---- Training -------------------------------------------------------------------------------------------------------

struct TrainOptions {
  std::string optimizer = "sgd";  // sgd, adam, adamw, rmsprop
  double lr = 0.01;
  double momentum = 0;  // sgd, rmsprop
  bool nesterov = false;
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double alpha = 0.99;  // rmsprop
  double eps = 1e-8;

  std::string schedule = "constant";  // constant, step, cosine
  std::int64_t warmup_steps = 0;      // linear, before the schedule proper
  std::int64_t total_steps = 0;       // cosine: where it ends
  std::int64_t step_size = 0;         // step: multiply by `gamma` every so many steps
  double gamma = 0.1;
  double final_lr = 0;

  double clip = 0;                  // the gradients' global norm; 0: no limit
  int accumulate = 1;               // batches a step
  std::vector<std::string> freeze;  // names of parameters, or their beginnings, that are not trained
  double label_smoothing = 0;
  LossFunction loss;  // empty: softmax cross-entropy
  Sizes target;       // with a loss of one's own: the shape of an item's target, of floats; empty: a class label

  std::uint64_t seed = 1;       // initial weights, order of the data, dropout
  std::string device = "auto";  // one of devices(), "opencl" (the first of its kind), or "auto": the fastest
  double auto_seconds = 3;      // auto measures the devices for so long; 0: it takes what it remembers, or cpu
  std::int64_t auto_batch = 0;  // auto measures steps of so many items; 0: the model's default
  int threads = 0;              // 0: one a core
  bool self_test = true;        // opencl: check the kernels the first time a device is seen
  bool replay = true;           // opencl: record the step and replay it where the device can
  std::function<void(const std::string&)> on_note;  // a line: what auto chose, what a device lacks
  std::vector<std::string> passes_off;              // names of graph passes to leave out
};

struct StepReport {
  double loss = 0;           // mean over the batch
  std::int64_t correct = 0;  // items whose largest output is at the label
  std::int64_t count = 0;
  std::int64_t step = 0;  // steps done so far
};

// Stops fit() after the step under way. Copies share one flag; cancel() may be called from any thread, and from a
// signal handler.
class CancelToken {
 public:
  void cancel() const noexcept { flag_->store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool cancelled() const noexcept { return flag_->load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<std::atomic<bool>> flag_ = std::make_shared<std::atomic<bool>>(false);
};

// After each batch, or some batches later on a device that works ahead; loss and accuracy are means over the epoch so
// far.
struct Progress {
  std::int64_t epoch = 0;  // from 0
  std::int64_t epochs = 0;
  std::int64_t batch = 0;  // batches of this epoch that are done
  std::int64_t batches = 0;
  std::int64_t step = 0;
  double batch_loss = 0;
  double loss = 0;
  double accuracy = 0;
  double items_per_s = 0;
  double seconds_left = 0;
};

struct EpochReport {
  std::int64_t epoch = 0;  // from 0
  double loss = 0;
  double accuracy = 0;
  std::int64_t test_items = 0;  // 0: there was nothing to test on
  double test_loss = 0;
  double test_accuracy = 0;
  double items_per_s = 0;
  double seconds = 0;
};

struct FitOptions {
  std::int64_t epochs = 1;  // in all: a resumed training does the rest of them
  std::int64_t batch = 0;   // 0: the model's default
  Augmentation augment;
  std::filesystem::path save;                    // a checkpoint after each epoch, and when cancelled; empty: none
  std::int64_t save_every = 0;                   // and after every so many batches
  std::map<std::string, std::string> notes;      // kept in the checkpoint
  std::function<bool(const Progress&)> on_step;  // false: stop after the steps under way
  std::function<void(const EpochReport&)> on_epoch;
  CancelToken cancel;
};

struct FitReport {
  std::vector<EpochReport> epochs;
  bool cancelled = false;
  std::int64_t steps = 0;  // in all, those before a resume included
  double seconds = 0;
};

struct EvalReport {
  std::int64_t items = 0;
  double loss = 0;
  double accuracy = 0;
};

// What a file and a network had in common.
struct LoadReport {
  std::vector<std::string> loaded;
  std::vector<std::string> missing;      // in the network, not in the file
  std::vector<std::string> extra;        // in the file, not in the network
  std::vector<std::string> wrong_shape;  // with both shapes

  [[nodiscard]] bool complete() const { return missing.empty() && extra.empty() && wrong_shape.empty(); }
};

struct CheckpointInfo {
  std::string model;
  std::int64_t step = 0;
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;  // of the next batch to train
  std::int64_t batch = 0;
  std::string optimizer;  // JSON, as is the schedule
  std::string schedule;
  std::string device;                        // "cpu", "opencl:0 NAME": where it was trained
  std::string numerics;                      // what made the bits: resumed elsewhere, they may differ
  std::map<std::string, std::string> notes;  // FitOptions::notes
};

// The metadata of a checkpoint.
[[nodiscard]] CheckpointInfo read_checkpoint_info(const std::filesystem::path& path);
// The device that a checkpoint was trained on, as TrainOptions::device takes it. An Error if this machine has it not.
[[nodiscard]] std::string device_of(const CheckpointInfo& info);

struct ParameterInfo {
  std::string name;
  Sizes shape;  // as in PyTorch: convolutions [out, in, height, width]
};

enum class GraphStage { before, after };  // the passes

// A model with its state: parameters, statistics, optimizer.
class Network {
 public:
  explicit Network(const Model& model, const TrainOptions& options = {});
  ~Network();
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;

  // One batch on the caller's arrays: items [labels.size(), item...]. A loss that is not finite throws
  // Code::not_finite and changes nothing. So does a gradient, but for parameters whose turn came before it: updates run
  // from the last layer to the first, each as soon as it can. With `clip`, or "early-update" in passes_off, all
  // gradients are checked before the first update. `last` closes a step before `accumulate` batches are in.
  StepReport train_step(std::span<const float> items, std::span<const std::int32_t> labels, bool last = false);
  StepReport evaluate(std::span<const float> items, std::span<const std::int32_t> labels);
  // The same with float targets, [count, TrainOptions::target...].
  StepReport train_step(std::span<const float> items, std::span<const float> targets, bool last = false);
  StepReport evaluate(std::span<const float> items, std::span<const float> targets);
  // The outputs (logits) of each item, [count, outputs].
  [[nodiscard]] std::vector<float> predict(std::span<const float> items);

  // Epochs over a data set, shuffled; goes on where resume() left off.
  FitReport fit(const Data& data, const FitOptions& options = {});
  // Over the test part, or the training part if there is none.
  EvalReport evaluate(const Data& data, std::int64_t batch = 0, const Augmentation& augment = {});

  // Checkpoints: safetensors with PyTorch's names and layouts, replaced atomically.
  void save(const std::filesystem::path& path, const std::map<std::string, std::string>& notes = {}) const;
  // All of the state; must fit exactly. A network with the device "auto" moves to the one that the checkpoint names.
  CheckpointInfo resume(const std::filesystem::path& path);
  LoadReport init_from(const std::filesystem::path& path);  // weights by name, as far as they fit
  void load(const std::filesystem::path& path);             // weights; an Error if any is missing or does not fit

  [[nodiscard]] std::vector<ParameterInfo> parameters() const;
  [[nodiscard]] std::vector<float> parameter(const std::string& name) const;
  void set_parameter(const std::string& name, std::span<const float> values);

  [[nodiscard]] const Model& model() const;
  [[nodiscard]] Device device() const;
  [[nodiscard]] std::int64_t parameter_count() const;
  [[nodiscard]] std::int64_t steps_done() const;
  [[nodiscard]] std::int64_t peak_bytes() const;  // of all tensors
  [[nodiscard]] std::string numerics() const;

  // What will run, for people: the steps of a plan with each tensor's place, the arena over time, the graph.
  [[nodiscard]] std::string plan_table(std::int64_t batch = 0, bool inference = false);
  [[nodiscard]] std::string plan_svg(std::int64_t batch = 0, bool inference = false);
  [[nodiscard]] std::string graph_text(GraphStage stage, std::int64_t batch = 0, bool inference = false);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ---- The machine ----------------------------------------------------------------------------------------------------

// How fast a family's kernels are for one problem of a model, with the parameters of before and those that won.
struct TunedKernel {
  std::string kernel;
  std::string problem;
  std::string before;
  std::string after;
  double ms_before = 0;
  double ms_after = 0;
  int tried = 0;
  int wrong = 0;   // candidates whose results differ from the plain kernel's: they cannot win
  int failed = 0;  // candidates that do not build or run
};
struct TuneOptions {
  std::string device = "opencl";
  std::int64_t batch = 0;  // 0: the model's
  double seconds = 60;     // nothing new is begun after that
  std::function<void(const TunedKernel&)> on_result;
  std::function<bool(int done, int total)> on_progress;  // false: stop
  std::function<void(const std::string&)> on_note;
};
// Tries the candidates for each problem of the model's training step on scratch memory, and stores the winners by
// device and driver; every later run on this device uses them.
[[nodiscard]] std::vector<TunedKernel> tune_kernels(const Model& model, const TuneOptions& options = {});

struct BenchOptions {
  std::string device = "auto";
  std::int64_t batch = 0;  // 0: the model's default
  int threads = 0;
  int steps = 0;  // 0: as many as fit in about two seconds, at least 5
  bool self_test = true;
  bool replay = true;
  std::vector<std::string> passes_off;
  std::function<void(const std::string&)> on_note;
};

struct BenchRow {
  std::string model;
  std::string device;
  std::int64_t batch = 0;
  int threads = 0;
  std::int64_t params = 0;
  int steps = 0;
  double step_ms_median = 0;  // completion to completion
  double step_ms_min = 0;
  double step_ms_p90 = 0;
  double items_per_s = 0;
  double gflops = 0;
  std::int64_t peak_bytes = 0;  // of all tensors, planned and allocated
  std::int64_t peak_rss = 0;    // of the process so far
  double setup_ms = 0;          // planning and compiling
  double first_step_ms = 0;     // that and the first step, with which some devices compile
  // Means over the measured steps, for devices that have them; 0 on the CPU.
  double host_bytes_per_step = 0;      // from and to the host
  double blocking_calls_per_step = 0;  // waits for room in the queue apart:
  double back_pressure_per_step = 0;
  double launches_per_step = 0;
  double replays_per_step = 0;
  double flushes_per_step = 0;
  double objects_created_per_step = 0;
  double movement_share = 0;  // of the time; NaN where it takes a profile to know (OpenCL): stoker profile
};
// Times training steps (forward, backward, SGD with momentum) on random data.
[[nodiscard]] BenchRow bench(const Model& model, const BenchOptions& options = {});

// The process's peak resident memory in bytes.
[[nodiscard]] std::int64_t peak_rss();

}  // namespace stoker
