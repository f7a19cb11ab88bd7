#include "study/study.h"

#include <memory>

#include "base/error.h"
#include "nn/model.h"
#include "profile/known_ceilings.h"
#include "study/measure.h"

namespace stoker {
namespace {

constexpr double kSeconds = 1.5;  // for each figure
constexpr double kQuickSeconds = 0.2;
constexpr std::int64_t kStudyBatch = 32;
constexpr const char* kStudyNets[] = {"mlp:16-16", "mlp:16-16-16-16", "mlp:256-256", kMnistNet};

// The products of the study's layers, batch 32: inputs, outputs.
constexpr std::int64_t kLayers[][2] = {{16, 16}, {256, 256}, {784, 256}, {256, 128}, {128, 16}};

const std::vector<std::int64_t> kBatches{4, 16, 64, 256, 1024};

class Study {
 public:
  explicit Study(const StudyOptions& options) : options_(options) {
    measure_ = {.device = options.device,
                .threads = options.threads,
                .self_test = options.self_test,
                .seconds = options.quick ? kQuickSeconds : kSeconds,
                .interrupt = [this] { stop_if_asked(); },
                .note = options.note};
    results_.quick = options.quick;
    add_computation();
    for (const char* net : kStudyNets) add_movement(net, kStudyBatch);
    add_movement("lenet5", 0);
    for (const char* net : kStudyNets) add_training(net, kStudyBatch, true);
    add_training("lenet5", 0, false);
    if (!options.quick) {
      for (const nn::Model& model : nn::zoo())
        if (model.name != "mlp" && model.name != "lenet5") add_training(model.name, 0, false);
    }
    for (const std::int64_t batch : options.quick ? std::vector<std::int64_t>{8, 128} : kBatches) {
      add_batch(kMnistNet, batch);
      if (!options.quick) add_batch("lenet5", batch);
    }
    add_cures(kMnistNet, kStudyBatch);
    if (!options.quick) add_cures("lenet5", 0);
  }

  StudyResults run() {
    open();
    for (std::size_t i = 0; i < tasks_.size() && !results_.interrupted; ++i) {
      const Task& task = tasks_[i];
      if (options_.progress) options_.progress(task.what, static_cast<int>(i), static_cast<int>(tasks_.size()));
      try {
        stop_if_asked();
        task.run();
      } catch (const Error& error) {
        if (error.code() == Code::cancelled) {
          results_.interrupted = true;
        } else {
          results_.skipped.push_back({task.what, error.what()});
        }
      }
      if (options_.measured) options_.measured(results_);
    }
    return std::move(results_);
  }

 private:
  struct Task {
    std::string what;
    std::function<void()> run;
  };

  void stop_if_asked() const {
    if (options_.stop && options_.stop()) fail(Code::cancelled, "the study was stopped");
  }

  // A device that is not there or does not work is an error, before anything is measured.
  void open() {
    results_.cpu = make_backend("cpu", {.threads = options_.threads})->describe();
    results_.device = backend(KernelChoice::tuned)->describe();
  }

  [[nodiscard]] std::unique_ptr<Backend> backend(KernelChoice kernels) const {
    return make_backend(options_.device, {.threads = options_.threads,
                                          .self_test = options_.self_test,
                                          .kernels = kernels,
                                          .interrupt = measure_.interrupt,
                                          .note = options_.note});
  }

  void add_computation() {
    tasks_.push_back({"the ceilings of CPU and device", [this] {
                        results_.cpu_ceilings = known_or_measured(*make_backend("cpu", {.threads = options_.threads}));
                        results_.device_ceilings = known_or_measured(*backend(KernelChoice::tuned));
                      }});
    for (const auto& [inputs, outputs] : kLayers)
      add_matmul({.m = kStudyBatch, .n = outputs, .k = inputs, .layer = true});
    for (std::int64_t size = 64; size <= (options_.quick ? 512 : 2048); size *= 2)
      add_matmul({.m = size, .n = size, .k = size});
  }

  void add_matmul(const MatmulRow& sizes) {
    tasks_.push_back({str("a product of ", sizes.m, " x ", sizes.n, " x ", sizes.k), [this, row = sizes]() mutable {
                        const std::unique_ptr<Backend> cpu = make_backend("cpu", {.threads = options_.threads});
                        const std::unique_ptr<Backend> mnn = backend(KernelChoice::mnn);
                        const std::unique_ptr<Backend> tuned = backend(KernelChoice::tuned);
                        measure_matmul(row, *cpu, *mnn, *tuned, measure_.seconds);
                        results_.matmuls.push_back(row);
                      }});
  }

  static std::int64_t batch_of(const nn::Model& model, std::int64_t batch) {
    return batch > 0 ? batch : model.default_batch;
  }

  void add_movement(const std::string& net, std::int64_t batch) {
    tasks_.push_back({"baseline of " + net, [=, this] {
                        const nn::Model model = nn::find_model(net);
                        results_.movements.push_back(measure_movement(model, batch_of(model, batch), measure_));
                      }});
  }

  void add_training(const std::string& net, std::int64_t batch, bool of_study) {
    tasks_.push_back({"training " + net, [=, this] {
                        const nn::Model model = nn::find_model(net);
                        TrainingRow row = measure_training(model, batch_of(model, batch), measure_);
                        row.of_study = of_study;
                        results_.trainings.push_back(row);
                      }});
  }

  void add_batch(const std::string& net, std::int64_t batch) {
    tasks_.push_back({str(net, " at batch ", batch),
                      [=, this] { results_.batches.push_back(measure_batch(nn::find_model(net), batch, measure_)); }});
  }

  void add_cures(const std::string& net, std::int64_t batch) {
    for (std::size_t i = 0; i < cures().size(); ++i) {
      tasks_.push_back({net + ": " + cures()[i].name, [=, this] {
                          const nn::Model model = nn::find_model(net);
                          results_.cures.push_back(measure_cure(i, model, batch_of(model, batch), measure_));
                        }});
    }
  }

  StudyOptions options_;
  MeasureOptions measure_;
  std::vector<Task> tasks_;
  StudyResults results_;
};

}  // namespace

StudyResults run_study(const StudyOptions& options) {
  require(options.device != "cpu", Code::bad_argument,
          "the study compares an OpenCL device with the CPU: --device takes opencl or opencl:N");
  return Study(options).run();
}

}  // namespace stoker
