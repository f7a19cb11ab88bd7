#include "study/validate.h"

#include <algorithm>
#include <cmath>

#include "backends/opencl/opencl_backend.h"
#include "base/error.h"
#include "base/fastest.h"
#include "profile/known_ceilings.h"
#include "run/random_batch.h"
#include "study/calibrate.h"
#include "study/simulate.h"

namespace stoker {
namespace {

struct Pair {
  const char* model;
  std::int64_t batch;
};
constexpr Pair kPairs[] = {{"mlp:256-256", 32}, {"mlp", 32},     {"mlp", 256},          {"lenet5", 16},
                           {"lenet5", 64},      {"lenet5", 128}, {"mobilenetv2-32", 4}, {"resnet18-32", 2}};

// Short measurements, so that one of them meets no other program's work, yet longer than a first step's start.
constexpr double kWindow = 0.02;  // seconds
constexpr double kMostUnderWay = 16;
constexpr Repeats kRepeats{.least = 4, .seconds = 2.0};

// A step of a session that works ahead, the fastest of several short measurements.
double measured_seconds(const nn::Model& model, std::int64_t batch, const std::string& device) {
  SessionOptions options;
  options.optimizer = {.kind = nn::Optimizer::Kind::sgd, .momentum = 0.9};
  options.schedule = {.rate = 1e-4};  // random labels cannot be learnt, and the weights must stay finite
  options.device = device;
  options.self_test = false;
  Session session(model, options);
  const RandomBatch random(model, options.target, batch);
  for (int i = 0; i < 2; ++i) static_cast<void>(session.train(random.view()));
  const auto seconds = [&](const Repeats& repeats, int steps) {
    const double all = fastest_seconds(repeats, [&] {
      for (int i = 0; i < steps; ++i) session.submit(random.view());
      session.settle();
    });
    return all / steps;
  };
  const double first = seconds({.least = 2, .seconds = 0}, 1);
  return seconds(kRepeats, static_cast<int>(std::clamp(kWindow / first, 1.0, kMostUnderWay)));
}

StepCounts counts_on(Backend& backend, const nn::Model& model, std::int64_t batch) {
  const auto* opencl = dynamic_cast<const opencl::ClBackend*>(&backend);
  if (opencl == nullptr) return cpu_counts(model, batch);
  return resident_counts(model, batch, opencl::DescribedDevice(opencl->device()));
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2.0;
}

}  // namespace

Section validation_section(const std::function<void(const std::string&)>& progress) {
  Table table{.title = "Predicted and measured step time on this machine",
              .columns = {{"device"},
                          {"model"},
                          {"batch", "", 0},
                          {"launches", "", 0},
                          {"predicted", "ms", 3},
                          {"measured", "ms", 3},
                          {"error", "%", 0}},
              .rows = {},
              .note = "Error: predicted over measured, less one."};
  Section section{.id = "validation", .title = "The model of step time against measurements", .blocks = {}};
  std::vector<double> errors;
  for (const DeviceInfo& device : list_devices()) {
    progress(device.id + ": ceilings and kernels");
    const std::unique_ptr<Backend> backend = make_backend(device.id, {.self_test = false});
    const Machine machine = calibrated(*backend, known_or_measured(*backend));
    std::vector<double> own;
    for (const Pair& pair : kPairs) {
      progress(str(device.id, ": ", pair.model, ", batch ", pair.batch));
      const nn::Model model = nn::find_model(pair.model);
      const StepCounts counts = counts_on(*backend, model, pair.batch);
      const double predicted = predict(counts, machine).total();
      const double measured = measured_seconds(model, pair.batch, device.id);
      const double error = 100 * (predicted / measured - 1);
      own.push_back(std::abs(error));
      table.rows.push_back({device.id, std::string(pair.model), static_cast<double>(pair.batch),
                            static_cast<double>(counts.launches.size()), 1e3 * predicted, 1e3 * measured, error});
    }
    section.blocks.emplace_back(str("Median error on ", device.id, " (", device.name, device.is_cpu ? ", a CPU" : "",
                                    "): ", std::lround(median(own)), " %."));
    errors.insert(errors.end(), own.begin(), own.end());
  }
  section.blocks.emplace_back(str("Median of all: ", std::lround(median(errors)),
                                  " %. Ceilings by micro-benchmarks, kernels by single ops of other sizes; no step was "
                                  "measured for the prediction."));
  section.blocks.emplace_back(std::move(table));
  return section;
}

}  // namespace stoker
