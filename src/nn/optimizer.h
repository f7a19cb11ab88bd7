// Optimizers and learning-rate schedules as graph expressions: their numbers live in State, so a step can be replayed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder.h"

namespace stoker::nn {

struct Optimizer {
  enum class Kind : std::uint8_t { sgd, adam, adamw, rmsprop };
  Kind kind = Kind::sgd;
  double momentum = 0;      // sgd, rmsprop
  bool nesterov = false;    // sgd
  double weight_decay = 0;  // added to the gradient; adamw: decoupled
  double beta1 = 0.9;       // adam, adamw
  double beta2 = 0.999;
  double alpha = 0.99;  // rmsprop
  double eps = 1e-8;
};

struct Schedule {
  enum class Kind : std::uint8_t { constant, step, cosine };
  Kind kind = Kind::constant;
  double rate = 0.01;             // the peak
  std::int64_t warmup_steps = 0;  // step i takes rate * (i + 1) / warmup_steps; then the schedule proper starts
  std::int64_t total_steps = 0;   // cosine: where it reaches `final_rate`
  std::int64_t step_size = 0;     // step: multiply by `gamma` every so many steps
  double gamma = 0.1;
  double final_rate = 0;
};

[[nodiscard]] Optimizer::Kind parse_optimizer(std::string_view name);  // an Error lists the names
[[nodiscard]] Schedule::Kind parse_schedule(std::string_view name);
[[nodiscard]] std::string_view to_string(Optimizer::Kind kind);
[[nodiscard]] std::string_view to_string(Schedule::Kind kind);

// The rate of step `step` (0-based scalar i32 value).
[[nodiscard]] Value learning_rate(GraphBuilder& b, const Schedule& schedule, Value step);
[[nodiscard]] double learning_rate(const Schedule& schedule, std::int64_t step);

// How many moment tensors the optimizer keeps for a parameter, with their names' suffixes (momentum, exp_avg, ...).
[[nodiscard]] std::vector<std::string> moment_names(const Optimizer& optimizer);

struct Update {
  Value parameter;
  std::vector<Value> moments;
};
// The new values of a parameter and its moments. `step` is 0-based; PyTorch's formulas.
[[nodiscard]] Update update(GraphBuilder& b, const Optimizer& optimizer, Value parameter, Value gradient,
                            const std::vector<Value>& moments, Value rate, Value step);

}  // namespace stoker::nn
