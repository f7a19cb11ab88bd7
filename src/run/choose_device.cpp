#include "run/choose_device.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "backends/opencl/cache.h"
#include "backends/opencl/program.h"
#include "base/error.h"
#include "base/version.h"
#include "run/random_batch.h"

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;

// A step below this takes a CPU of a phone (15-30 GFLOPS) some 2 ms, and launching its kernels takes the GPU as long
// (some 30 of them, 25-300 us each): small nets belong on the CPU, and nothing is measured.
constexpr double kSmallStep = 50e6;  // flops
// Steps above this are measured on a part of the batch, so that one of them does not take the whole budget.
constexpr double kLargeStep = 4e9;
constexpr int kFewestSteps = 3;
constexpr int kMostSteps = 50;
constexpr double kMeasuredSeconds = 0.3;
constexpr double kCpuShare = 0.3;  // of the budget, at most
// A device that could not be measured is tried again at so many starts: what was compiled the first time is in caches.
constexpr int kTries = 5;
constexpr std::uintmax_t kMostBytes = 1U << 20U;  // of remembered choices
constexpr std::size_t kMostWords = 120;           // characters of an error, in a line for people

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

Clock::time_point after(Clock::time_point from, double seconds) {
  return from + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Ends the preparation of a device that would not be ready in time. As nothing can stop a compiler safely, it looks at
// the clock before each kernel, and takes the longest one so far as a measure for the next.
class Deadline {
 public:
  explicit Deadline(Clock::time_point end) : end_(end) {}

  void check() {
    const Clock::time_point now = Clock::now();
    longest_ = std::max(longest_, now - last_);
    last_ = now;
    require(now + longest_ <= end_, Code::cancelled, "was not ready in time");
  }
  [[nodiscard]] bool is_over() const { return Clock::now() >= end_; }

 private:
  Clock::time_point end_;
  Clock::time_point last_ = Clock::now();
  Clock::duration longest_{0};
};

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g ms", seconds * 1e3);
  return text;
}

// One device and how it did.
struct Candidate {
  DeviceInfo device;
  std::optional<double> seconds;  // a step
  std::string why_not;            // it was not measured
};

std::string title(const DeviceInfo& device) { return device.id == "cpu" ? device.id : device.id + " " + device.name; }

class Chooser {
 public:
  Chooser(const nn::Model& model, const SessionOptions& options, std::int64_t batch, double budget)
      : model_(model), options_(options), batch_(batch), budget_(budget), start_(Clock::now()), memory_("devices") {
    // Scratch: nobody is told of it, and the self-test is for the one that is chosen.
    options_.self_test = false;
    options_.note = nullptr;
    options_.schedule = {.rate = 1e-4};  // random labels cannot be learnt, and the weights must stay finite
    for (DeviceInfo& device : list_devices()) candidates_.push_back({.device = std::move(device)});
  }

  DeviceChoice choose() {
    if (candidates_.size() == 1) return {cpu(), "device: cpu (auto: there is no other)"};
    if (const double flops = measured_flops(); flops < kSmallStep) {
      return {cpu(),
              str("device: cpu (auto: a step of ", std::llround(flops / 1e6), " MFLOP is too small for another)")};
    }
    recall();
    if (!remembered_.empty()) return {remembered_, str("device: ", line_, ", remembered)")};
    if (budget_ <= 0) return {cpu(), "device: cpu (auto: nothing was measured yet)"};
    measure_all();
    DeviceChoice choice = best();
    remember(choice);
    return choice;
  }

 private:
  [[nodiscard]] const std::string& cpu() const { return candidates_.front().device.id; }

  // The step's flops; cuts the batch that is measured.
  double measured_flops() {
    options_.device = cpu();
    Session session(model_, options_);
    const double flops = session.flops_per_step(batch_);
    measured_batch_ = batch_;
    for (double part = flops; part > kLargeStep && measured_batch_ > 1; part /= 2) measured_batch_ /= 2;
    return flops;
  }

  [[nodiscard]] std::string key() const {
    std::vector<DeviceInfo> devices;
    for (const Candidate& candidate : candidates_) devices.push_back(candidate.device);
    return choice_key(model_, batch_, options_.threads, devices);
  }

  void recall() {
    const auto bytes = memory_.load(key());
    if (!bytes) return;
    const auto json =
        nlohmann::json::parse(reinterpret_cast<const char*>(bytes->data()),
                              reinterpret_cast<const char*>(bytes->data()) + bytes->size(), nullptr, false);
    if (!json.is_object()) return;
    tries_ = json.value("tries", 0);
    if (!json.value("complete", false) && tries_ < kTries) return;
    const std::string device = json.value("device", "");
    const bool known = std::ranges::any_of(candidates_, [&](const Candidate& c) { return c.device.id == device; });
    if (!known) return;
    remembered_ = device;
    line_ = json.value("line", "");
  }

  // What cannot be kept is measured again next time.
  void remember(const DeviceChoice& choice) const {
    const bool complete = std::ranges::all_of(candidates_, [](const Candidate& c) { return c.seconds.has_value(); });
    const nlohmann::json json{
        {"device", choice.device}, {"line", line_}, {"complete", complete}, {"tries", tries_ + 1}};
    const std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    static_cast<void>(memory_.store(key(), std::as_bytes(std::span(text))));
    memory_.trim(kMostBytes);
  }

  void measure_all() {
    const Clock::time_point end = after(start_, budget_);
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      // The others share evenly what is left.
      const double left = seconds_between(Clock::now(), end);
      const double share = i == 0 ? budget_ * kCpuShare : left / static_cast<double>(candidates_.size() - i);
      measure(candidates_[i], after(Clock::now(), share));
    }
  }

  void measure(Candidate& candidate, Clock::time_point end) {
    Deadline deadline(end);
    options_.device = candidate.device.id;
    options_.interrupt = [&deadline] { deadline.check(); };
    try {
      Session session(model_, options_);
      const RandomBatch batch(model_, options_.target, measured_batch_);
      session.warm_up(batch.view());
      candidate.seconds = step_seconds(session, batch.view(), deadline);
    } catch (const Error& error) {
      const std::string_view why = error.what();
      candidate.why_not = why.substr(0, std::min(why.find('\n'), kMostWords));
    }
    options_.interrupt = nullptr;
  }

  // Completion to completion, with the next step submitted ahead.
  static double step_seconds(Session& session, const BatchView& batch, const Deadline& deadline) {
    static_cast<void>(session.train(batch));
    int steps = 0;
    const Clock::time_point start = Clock::now();
    do {
      session.submit(batch);
      ++steps;
      while (session.collect(false)) {
      }
      if (deadline.is_over()) break;
    } while (steps < kFewestSteps || (steps < kMostSteps && seconds_between(start, Clock::now()) < kMeasuredSeconds));
    session.settle();
    return seconds_between(start, Clock::now()) / steps;
  }

  DeviceChoice best() {
    const Candidate* fastest = nullptr;
    for (const Candidate& candidate : candidates_) {
      if (candidate.seconds && (fastest == nullptr || *candidate.seconds < *fastest->seconds)) fastest = &candidate;
    }
    if (fastest == nullptr) fastest = &candidates_.front();
    line_ = title(fastest->device) + " (auto: ";
    if (fastest->seconds) line_ += milliseconds(*fastest->seconds) + " a step";
    if (measured_batch_ != batch_) line_ += str(" of ", measured_batch_, " items");
    for (const Candidate& candidate : candidates_) {
      if (&candidate == fastest) continue;
      line_ += "; " + candidate.device.id + " ";
      line_ += candidate.seconds ? milliseconds(*candidate.seconds) : candidate.why_not;
    }
    return {fastest->device.id, "device: " + line_ + ")"};
  }

  const nn::Model& model_;
  SessionOptions options_;
  std::int64_t batch_;
  std::int64_t measured_batch_ = 0;
  double budget_;
  Clock::time_point start_;
  opencl::Cache memory_;
  std::vector<Candidate> candidates_;  // the CPU first
  std::string remembered_;             // a device
  std::string line_;
  int tries_ = 0;
};

}  // namespace

std::string choice_key(const nn::Model& model, std::int64_t batch, int threads, std::span<const DeviceInfo> devices) {
  std::string text =
      str("choice 2, stoker ", version(), ", kernels ", opencl::embedded_digest(), "\n", model.name, " ", model.item,
          " ", model.outputs, " ", nn::parameter_count(model), "\nbatch ", batch, "\nthreads ", threads, "\n");
  for (const DeviceInfo& device : devices)
    text += title(device) + " " + (device.identity.empty() ? device.details : device.identity) + "\n";
  return text;
}

DeviceChoice choose_device(const nn::Model& model, const SessionOptions& options, std::int64_t batch, double budget) {
  return Chooser(model, options, batch, budget).choose();
}

}  // namespace stoker
