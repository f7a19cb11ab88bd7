// The verdict: sentences computed from the figures of this device. A CPU that speaks OpenCL gets none on GPUs.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "study/study.h"

namespace stoker {
namespace {

// "1,234", "12.3", "0.123": three significant digits.
std::string figure(double value) {
  char text[32];
  std::snprintf(text, sizeof text, std::abs(value) >= 100 ? "%.0f" : "%.3g", value);
  return text;
}

std::string percent(double share) { return figure(share * 100) + " %"; }

template <typename Rows, typename F>
const typename Rows::value_type* find_row(const Rows& rows, F matches) {
  const auto at = std::ranges::find_if(rows, matches);
  return at == rows.end() ? nullptr : &*at;
}

// From low to high.
std::pair<double, double> range_of(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.empty()) return {kNotMeasured, kNotMeasured};
  const auto [low, high] = std::ranges::minmax(values);
  return {low, high};
}

std::string range_text(const std::pair<double, double>& range) {
  return figure(range.first) + " to " + figure(range.second);
}

class Verdict {
 public:
  explicit Verdict(const StudyResults& results) : r_(results) {}

  std::vector<std::string> words() {
    if (r_.device.is_cpu)
      say("**No verdict on GPUs.** This OpenCL device is a CPU, on the same cores and in the same memory as the CPU "
          "backend. What follows tells what our kernels and the OpenCL calls cost here, and nothing of a phone's GPU.");
    computation();
    movement();
    bandwidth_or_synchronisation();
    bound();
    crossover();
    batches();
    cure();
    return std::move(words_);
  }

 private:
  void say(std::string text) { words_.push_back(std::move(text)); }

  void computation() {
    if (r_.matmuls.empty()) return;
    std::vector<double> cpu, mnn, tuned;
    for (const MatmulRow& row : r_.matmuls) {
      if (row.layer) continue;
      cpu.push_back(row.cpu);
      mnn.push_back(row.mnn);
      tuned.push_back(row.tuned);
    }
    if (cpu.empty()) return;
    const MatmulRow& largest = *std::ranges::max_element(r_.matmuls, {}, &MatmulRow::m);
    const double ratio = largest.tuned / largest.cpu;
    say(str("**Computation.** Square products run at ", range_text(range_of(mnn)),
            " GFLOP/s with a kernel in MNN's shape, at ", range_text(range_of(tuned)), " with tuned kernels and at ",
            range_text(range_of(cpu)), " on the CPU. At ", largest.m, " the tuned kernel is ",
            figure(largest.tuned / largest.mnn), " times as fast as MNN's shape and ", figure(ratio),
            " times as fast as the CPU: ",
            ratio >= 1 ? "computation does not speak against this device." : "large products belong on the CPU here."));
  }

  void movement() {
    const MovementRow* row = mnist_movement();
    if (row == nullptr) return;
    say(str("**Memory.** When data moves as in MNN, ", percent(row->share_with_waits()), " of ", row->model,
            "'s step is spent in calls that copy (the study's abstract: 91 %), but the transfers themselves take ",
            percent(row->share_of_transfers()),
            ": the rest of that is waiting for kernels and for the calls. Kernels run ",
            percent(row->breakdown.of(Activity::kernel) / row->breakdown.wall), " of the step."));
  }

  [[nodiscard]] const MovementRow* mnist_movement() const {
    return find_row(r_.movements, [](const MovementRow& row) { return row.model == kMnistNet; });
  }

  [[nodiscard]] std::vector<const CureRow*> cures_of_first() const {
    std::vector<const CureRow*> list;
    for (const CureRow& row : r_.cures)
      if (row.model == r_.cures.front().model) list.push_back(&row);
    return list;
  }

  [[nodiscard]] const CureRow* cure_named(std::string_view name) const {
    return r_.cures.empty() ? nullptr : find_row(r_.cures, [&](const CureRow& row) {
      return row.name == name && row.model == r_.cures.front().model;
    });
  }

  // What the baseline's movement costs is divided: one transfer instead of many saves synchronisation, the bytes take
  // what the measured bandwidth says, and the host's optimizer and conversions have the rest.
  void bandwidth_or_synchronisation() {
    const CureRow* tuned = cure_named("tuned kernels");
    const CureRow* together = cure_named("one transfer");
    const CureRow* resident = cure_named("resident");
    const Ceilings& ceilings = r_.device_ceilings;
    if (tuned == nullptr || together == nullptr || resident == nullptr || ceilings.to_host <= 0 ||
        ceilings.to_device <= 0)
      return;
    const double total = tuned->milliseconds - resident->milliseconds;
    const double crossing = (tuned->counts.host_bytes - resident->counts.host_bytes) / 2;  // each way
    const double bytes = (crossing / ceilings.to_host + crossing / ceilings.to_device) * 1e3;
    const double synchronisation = std::max(tuned->milliseconds - together->milliseconds, 0.0);
    const double host = std::max(total - bytes - synchronisation, 0.0);
    std::string text =
        str("**Bandwidth or synchronisation?** The baseline's movement costs ", figure(total), " ms of ",
            figure(tuned->milliseconds), " a step (", tuned->model, "). Its ", figure(2 * crossing / 1e6), " MB take ",
            figure(bytes), " ms at the measured ", figure(ceilings.to_device / 1e9), " and ",
            figure(ceilings.to_host / 1e9), " GB/s; moving them in one transfer each way instead of ",
            figure(tuned->counts.blocking), " blocking calls saves ", figure(synchronisation),
            " ms; the host's optimizer, conversions and the wait that remains have ", figure(host), " ms. ");
    if (total <= 0) {
      text += "Here movement costs nothing that can be measured.";
    } else if (bytes >= std::max(synchronisation, host)) {
      text += "The bytes weigh most: the study's \"low bandwidth\" holds for this device.";
    } else {
      text += str(synchronisation >= host ? "Synchronisation weighs most" : "The host's part weighs most",
                  ": the study's \"low bandwidth\" is contradicted on this device.");
    }
    say(std::move(text));
  }

  // Which of its own ceilings the resident step comes nearer to.
  void bound() {
    const Ceilings& ceilings = r_.device_ceilings;
    if (r_.trainings.empty() || ceilings.flops <= 0 || ceilings.bandwidth <= 0) return;
    const TrainingRow& row = *std::ranges::max_element(r_.trainings, {}, &TrainingRow::flops);
    const double seconds = row.resident.step / 1e3;
    const double compute = row.flops / seconds / ceilings.flops;
    const double memory = row.bytes / seconds / ceilings.bandwidth;
    say(str("**Compute- or memory-bound?** The resident step of ", row.model, " does ",
            figure(row.flops / seconds / 1e9), " GFLOP/s, ", percent(compute),
            " of the device's multiply-adds, and moves ", figure(row.bytes / seconds / 1e9), " GB/s, ", percent(memory),
            " of its memory's bandwidth (caches may serve a part of it): ",
            std::max(compute, memory) < 0.1 ? "neither holds it, so launches and waiting do."
            : compute > memory              ? "computation is the nearer ceiling."
                                            : "memory is the nearer ceiling."));
  }

  // The smallest net of which the device is faster than the CPU, resident.
  void crossover() {
    if (r_.trainings.empty()) return;
    std::vector<const TrainingRow*> rows;
    for (const TrainingRow& row : r_.trainings) rows.push_back(&row);
    std::ranges::sort(rows, {}, [](const TrainingRow* row) { return row->flops; });
    std::string device, cpu;
    const TrainingRow* first = nullptr;
    for (const TrainingRow* row : rows) {
      const bool faster = row->resident.step < row->cpu.step;
      std::string& list = faster ? device : cpu;
      list += (list.empty() ? "" : ", ") + row->model;
      if (!faster) first = nullptr;
      if (faster && first == nullptr) first = row;
    }
    std::string text = "**Which device for which model.** ";
    if (first != nullptr && first != rows.front()) {
      text += str("From ", first->model, " on (", figure(first->flops / 1e6), " Mflop a step, batch ", first->batch,
                  ") the device is faster than the CPU. ");
    } else {
      text += first != nullptr ? "The device is faster than the CPU for every net measured. "
                               : "The CPU is faster than the device for the largest net measured. ";
    }
    if (!cpu.empty()) text += "CPU: " + cpu + ". ";
    if (!device.empty()) text += r_.device.id + ": " + device + ". ";
    const TrainingRow* slowest =
        *std::ranges::max_element(rows, {}, [](const TrainingRow* row) { return row->baseline.step / row->cpu.step; });
    text += str("In baseline mode the device takes up to ", figure(slowest->baseline.step / slowest->cpu.step),
                " times the CPU's step (", slowest->model, "); resident, that net takes ",
                figure(slowest->resident.step / slowest->cpu.step), " times.");
    say(std::move(text));
  }

  // For each net the smallest batch from which on the device is faster.
  void batches() {
    std::vector<std::string> models;
    for (const BatchRow& row : r_.batches)
      if (std::ranges::find(models, row.model) == models.end()) models.push_back(row.model);
    for (const std::string& model : models) {
      std::int64_t from = 0;  // 0: nowhere
      std::int64_t largest = 0;
      for (const BatchRow& row : r_.batches) {
        if (row.model != model) continue;
        largest = row.batch;
        if (row.resident >= row.cpu) from = 0;
        if (row.resident < row.cpu && from == 0) from = row.batch;
      }
      say(from > 0 ? str("Batch: ", model, " is faster on ", r_.device.id, " from a batch of ", from,
                         " on (measured: up to ", largest, ").")
                   : str("Batch: ", model, " is faster on the CPU up to the largest batch measured, ", largest, "."));
    }
  }

  // The change that saves most.
  void cure() {
    if (r_.cures.empty()) return;
    const std::vector<const CureRow*> rows = cures_of_first();
    if (rows.size() < 2) return;
    std::size_t best = 1;
    const auto saved = [&](std::size_t i) { return rows[i - 1]->milliseconds - rows[i]->milliseconds; };
    for (std::size_t i = 2; i < rows.size(); ++i)
      if (saved(i) > saved(best)) best = i;
    say(str("**What to change first.** From ", figure(rows.front()->milliseconds), " ms a step as MNN does it to ",
            figure(rows.back()->milliseconds), " ms (", rows.front()->model, ", ",
            figure(rows.front()->milliseconds / rows.back()->milliseconds), " times as fast). The largest part, ",
            figure(saved(best)), " ms, is saved by: ", rows[best]->name, " (", rows[best]->change, ")."));
  }

  const StudyResults& r_;
  std::vector<std::string> words_;
};

}  // namespace

std::vector<std::string> verdict(const StudyResults& results) {
  std::vector<std::string> words = Verdict(results).words();
  if (words.empty()) words.emplace_back("Nothing was measured that would allow a verdict.");
  return words;
}

}  // namespace stoker
