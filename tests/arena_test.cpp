// A step depends on its inputs and states alone: whatever the memory of its tensors held before, and whatever stands
// between the states, its results are the same to the bit. Filled with NaN, memory that is read before it is written
// shows.
#include <gtest/gtest.h>

#include <cmath>

#include "devices.h"
#include "passes/pass.h"
#include "run/random_batch.h"
#include "run/step_graph.h"
#include "test_models.h"

namespace stoker {
namespace {

constexpr int kSteps = 3;
constexpr std::byte kZero{0};
constexpr std::byte kNan{0xFF};  // four of them are a NaN, or -1

using Bytes = std::vector<std::byte>;

SessionOptions options_for(const std::string& optimizer) {
  return {.optimizer = {.kind = nn::parse_optimizer(optimizer), .momentum = optimizer == "sgd" ? 0.9 : 0.0},
          .schedule = {.rate = 1e-3},
          .self_test = false};
}

// A training step over memory that held `filling` before each run.
class FilledStep {
 public:
  FilledStep(Backend& backend, const nn::Model& model, const std::string& optimizer, std::int64_t count,
             std::byte filling)
      : backend_(backend), options_(options_for(optimizer)), count_(count), filling_(filling) {
    const StepGraph step = build_step(model, options_, StepKind::train, count);
    plan_ = make_plan(run_passes(step.graph, backend.target()), backend.target());
    arena_ = backend.allocate(plan_.arena_bytes);
    Bindings bindings{.arena = arena_.get()};
    bind_states(step, bindings);
    bind_batch(model, bindings);
    executable_ = backend.compile(plan_, bindings);
  }

  // Loss, correct answers, whether it was bad.
  std::vector<float> run() {
    backend_.upload(*arena_, 0, Bytes(static_cast<std::size_t>(plan_.arena_bytes), filling_));
    executable_->run(0);
    std::vector<float> results(scalar_outputs(plan_).size());
    EXPECT_TRUE(executable_->collect(results, true));
    return results;
  }

  [[nodiscard]] std::size_t states() const { return plan_.graph.states.size(); }
  [[nodiscard]] const std::string& state_name(std::size_t i) const { return plan_.graph.states[i].name; }
  [[nodiscard]] Bytes state(std::size_t i) const {
    Bytes bytes(static_cast<std::size_t>(plan_.graph.states[i].spec.bytes()));
    backend_.download(*state_, offsets_[i], bytes);
    return bytes;
  }

 private:
  // One after another, with room between them.
  void bind_states(const StepGraph& step, Bindings& bindings) {
    constexpr std::int64_t kRoom = 512;
    std::int64_t end = kRoom;
    for (const StateVar& var : plan_.graph.states) {
      offsets_.push_back(end);
      end += (var.spec.bytes() + kRoom - 1) / kRoom * kRoom + kRoom;
    }
    state_ = backend_.allocate(end);
    backend_.upload(*state_, 0, Bytes(static_cast<std::size_t>(end), filling_));
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      const StateVar& var = plan_.graph.states[i];
      Bytes bytes(static_cast<std::size_t>(var.spec.bytes()), kZero);
      if (var.spec.dtype == DType::f32) {
        const std::vector<float> values = nn::initial_values(step.inits[i], var, 1);
        std::ranges::copy(std::as_bytes(std::span(values)), bytes.begin());
      }
      backend_.upload(*state_, offsets_[i], bytes);
      bindings.states.push_back({state_.get(), offsets_[i]});
    }
  }

  void bind_batch(const nn::Model& model, Bindings& bindings) {
    const RandomBatch data(model, options_.target, count_);
    std::vector<Memory*> batch;
    for (const NamedValue& input : plan_.graph.inputs) {
      const std::span<const std::byte> bytes =
          input.name == "items" ? std::as_bytes(data.view().items) : data.view().targets;
      batch.push_back(
          inputs_.emplace_back(backend_.allocate(static_cast<std::int64_t>(bytes.size()), MemoryKind::batch)).get());
      std::ranges::copy(bytes, backend_.map(*batch.back()).begin());
      backend_.unmap(*batch.back());
    }
    bindings.batches = {batch};
  }

  Backend& backend_;
  SessionOptions options_;
  std::int64_t count_;
  std::byte filling_;
  Plan plan_;
  std::vector<std::int64_t> offsets_;
  std::unique_ptr<Memory> arena_;
  std::unique_ptr<Memory> state_;
  std::vector<std::unique_ptr<Memory>> inputs_;
  std::unique_ptr<Executable> executable_;
};

void expect_the_same(Backend& backend, const nn::Model& model, const std::string& optimizer, std::int64_t count) {
  FilledStep zeroed(backend, model, optimizer, count, kZero);
  FilledStep poisoned(backend, model, optimizer, count, kNan);
  for (int step = 1; step <= kSteps; ++step) {
    const std::vector<float> results = poisoned.run();
    EXPECT_EQ(zeroed.run(), results) << "step " << step;
    EXPECT_TRUE(std::ranges::all_of(results, [](float value) { return std::isfinite(value); })) << "step " << step;
  }
  for (std::size_t i = 0; i < zeroed.states(); ++i)
    EXPECT_TRUE(zeroed.state(i) == poisoned.state(i)) << zeroed.state_name(i) << " differs";
}

class ArenaOn : public ::testing::TestWithParam<std::string> {};

TEST_P(ArenaOn, HoldsNothingThatAStepReadsBeforeItHasWrittenIt) {
  const std::unique_ptr<Backend> backend = make_backend(GetParam(), {.threads = 2, .self_test = false});
  expect_the_same(*backend, test::residual_net(), "adam", 5);
  expect_the_same(*backend, test::small_conv_net(), "sgd", 3);
}

INSTANTIATE_TEST_SUITE_P(Devices, ArenaOn, ::testing::ValuesIn(testing::device_ids()),
                         [](const auto& test) { return testing::as_test_name(test.param); });

}  // namespace
}  // namespace stoker
