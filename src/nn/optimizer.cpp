#include "nn/optimizer.h"

#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/error.h"
#include "ops/ops.h"

namespace stoker::nn {
namespace {

constexpr std::array<std::pair<std::string_view, Optimizer::Kind>, 4> kOptimizers{
    {{"sgd", Optimizer::Kind::sgd},
     {"adam", Optimizer::Kind::adam},
     {"adamw", Optimizer::Kind::adamw},
     {"rmsprop", Optimizer::Kind::rmsprop}}};
constexpr std::array<std::pair<std::string_view, Schedule::Kind>, 3> kSchedules{
    {{"constant", Schedule::Kind::constant}, {"step", Schedule::Kind::step}, {"cosine", Schedule::Kind::cosine}}};

template <typename Table>
auto find_kind(const Table& table, std::string_view name, const char* what) {
  std::string names;
  for (const auto& [known, kind] : table) {
    if (known == name) return kind;
    names += (names.empty() ? "" : ", ") + std::string(known);
  }
  fail(Code::bad_argument, "there is no ", what, " named '", name, "'; there are ", names);
}

template <typename Table, typename Kind>
std::string_view name_of(const Table& table, Kind kind) {
  for (const auto& [name, known] : table) {
    if (known == kind) return name;
  }
  return "?";
}

void check(const Schedule& schedule) {
  require(schedule.rate >= 0 && schedule.final_rate >= 0, Code::bad_argument,
          "schedule: the rate must not be negative, not ", schedule.rate);
  require(schedule.warmup_steps >= 0, Code::bad_argument, "schedule: warm-up must not be negative");
  require(schedule.kind != Schedule::Kind::step || (schedule.step_size > 0 && schedule.gamma > 0), Code::bad_argument,
          "schedule: 'step' needs a step size and a factor above 0");
  require(schedule.kind != Schedule::Kind::cosine || schedule.total_steps > schedule.warmup_steps, Code::bad_argument,
          "schedule: 'cosine' needs more steps in all (", schedule.total_steps, ") than warm-up steps (",
          schedule.warmup_steps, ")");
}

// a * x + b * y with numbers a and b.
Value blend(GraphBuilder& b, Value x, double a, Value y, double c) {
  return ops::add(b, ops::mul(b, x, static_cast<float>(a)), ops::mul(b, y, static_cast<float>(c)));
}

// 1 - beta^t for t = step + 1, as -expm1(t * log(beta)): in fp32, 1 - 0.999^1 would lose four digits.
Value bias_correction(GraphBuilder& b, double beta, Value t) {
  return ops::neg(b, ops::expm1(b, ops::mul(b, t, static_cast<float>(std::log(beta)))));
}

Update update_sgd(GraphBuilder& b, const Optimizer& o, Value parameter, Value gradient,
                  const std::vector<Value>& moments, Value rate) {
  if (o.momentum == 0) return {ops::sub(b, parameter, ops::mul(b, gradient, rate)), {}};
  const auto momentum = static_cast<float>(o.momentum);
  // PyTorch starts the buffer at the first gradient: the same as starting it at zero.
  const Value buffer = ops::add(b, ops::mul(b, moments[0], momentum), gradient);
  const Value direction = o.nesterov ? ops::add(b, gradient, ops::mul(b, buffer, momentum)) : buffer;
  return {ops::sub(b, parameter, ops::mul(b, direction, rate)), {buffer}};
}

Update update_adam(GraphBuilder& b, const Optimizer& o, Value parameter, Value gradient,
                   const std::vector<Value>& moments, Value rate, Value step) {
  const Value t = ops::add(b, ops::cast(b, step, DType::f32), 1.0F);
  const Value mean = blend(b, moments[0], o.beta1, gradient, 1 - o.beta1);
  const Value square = blend(b, moments[1], o.beta2, ops::mul(b, gradient, gradient), 1 - o.beta2);
  // Scalars: rate / (1 - beta1^t), and 1 / sqrt(1 - beta2^t).
  const Value scaled_rate = ops::div(b, rate, bias_correction(b, o.beta1, t));
  const Value scale = ops::rsqrt(b, bias_correction(b, o.beta2, t));
  const Value divisor = ops::add(b, ops::mul(b, ops::sqrt(b, square), scale), static_cast<float>(o.eps));
  if (o.kind == Optimizer::Kind::adamw && o.weight_decay != 0) {
    const Value keep = ops::add(b, ops::mul(b, rate, static_cast<float>(-o.weight_decay)), 1.0F);
    parameter = ops::mul(b, parameter, keep);
  }
  return {ops::sub(b, parameter, ops::mul(b, ops::div(b, mean, divisor), scaled_rate)), {mean, square}};
}

Update update_rmsprop(GraphBuilder& b, const Optimizer& o, Value parameter, Value gradient,
                      const std::vector<Value>& moments, Value rate) {
  const Value square = blend(b, moments[0], o.alpha, ops::mul(b, gradient, gradient), 1 - o.alpha);
  const Value divisor = ops::add(b, ops::sqrt(b, square), static_cast<float>(o.eps));
  Value direction = ops::div(b, gradient, divisor);
  if (o.momentum == 0) return {ops::sub(b, parameter, ops::mul(b, direction, rate)), {square}};
  direction = ops::add(b, ops::mul(b, moments[1], static_cast<float>(o.momentum)), direction);
  return {ops::sub(b, parameter, ops::mul(b, direction, rate)), {square, direction}};
}

}  // namespace

Optimizer::Kind parse_optimizer(std::string_view name) { return find_kind(kOptimizers, name, "optimizer"); }
Schedule::Kind parse_schedule(std::string_view name) { return find_kind(kSchedules, name, "schedule"); }
std::string_view to_string(Optimizer::Kind kind) { return name_of(kOptimizers, kind); }
std::string_view to_string(Schedule::Kind kind) { return name_of(kSchedules, kind); }

Value learning_rate(GraphBuilder& b, const Schedule& schedule, Value step) {
  check(schedule);
  const auto peak = static_cast<float>(schedule.rate);
  const auto warmup = static_cast<float>(schedule.warmup_steps);
  const Value number = ops::cast(b, step, DType::f32);
  const Value t = ops::maximum(b, ops::add(b, number, -warmup), ops::constant(b, 0.0F));
  Value rate = ops::constant(b, peak);
  if (schedule.kind == Schedule::Kind::step) {
    const Value times = ops::floor(b, ops::div(b, t, ops::constant(b, static_cast<float>(schedule.step_size))));
    rate = ops::mul(b, ops::pow(b, ops::constant(b, static_cast<float>(schedule.gamma)), times), peak);
  } else if (schedule.kind == Schedule::Kind::cosine) {
    const auto length = static_cast<double>(schedule.total_steps - schedule.warmup_steps);
    const Value turn = ops::minimum(b, ops::mul(b, t, static_cast<float>(std::numbers::pi / length)),
                                    ops::constant(b, std::numbers::pi_v<float>));
    const auto half = static_cast<float>((schedule.rate - schedule.final_rate) / 2);
    const auto middle = static_cast<float>((schedule.rate + schedule.final_rate) / 2);
    rate = ops::add(b, ops::mul(b, ops::cos(b, turn), half), middle);
  }
  if (schedule.warmup_steps == 0) return rate;
  const Value rising = ops::mul(b, ops::add(b, number, 1.0F), peak / warmup);
  return ops::select(b, ops::lt(b, number, ops::constant(b, warmup)), rising, rate);
}

double learning_rate(const Schedule& schedule, std::int64_t step) {
  check(schedule);
  if (step < schedule.warmup_steps) {
    return schedule.rate * static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps);
  }
  const std::int64_t t = step - schedule.warmup_steps;
  switch (schedule.kind) {
    case Schedule::Kind::constant: break;
    case Schedule::Kind::step: {
      const std::int64_t falls = t / schedule.step_size;
      return schedule.rate * std::pow(schedule.gamma, static_cast<double>(falls));
    }
    case Schedule::Kind::cosine: {
      const double length = static_cast<double>(schedule.total_steps - schedule.warmup_steps);
      const double turn = std::numbers::pi * std::min(1.0, static_cast<double>(t) / length);
      return schedule.final_rate + (schedule.rate - schedule.final_rate) * (1 + std::cos(turn)) / 2;
    }
  }
  return schedule.rate;
}

std::vector<std::string> moment_names(const Optimizer& optimizer) {
  switch (optimizer.kind) {
    case Optimizer::Kind::sgd:
      return optimizer.momentum == 0 ? std::vector<std::string>{} : std::vector<std::string>{"momentum_buffer"};
    case Optimizer::Kind::adam:
    case Optimizer::Kind::adamw: return {"exp_avg", "exp_avg_sq"};
    case Optimizer::Kind::rmsprop:
      return optimizer.momentum == 0 ? std::vector<std::string>{"square_avg"}
                                     : std::vector<std::string>{"square_avg", "momentum_buffer"};
  }
  return {};
}

Update update(GraphBuilder& b, const Optimizer& optimizer, Value parameter, Value gradient,
              const std::vector<Value>& moments, Value rate, Value step) {
  DCHECK(moments.size() == moment_names(optimizer).size());
  if (optimizer.weight_decay != 0 && optimizer.kind != Optimizer::Kind::adamw) {
    gradient = ops::add(b, gradient, ops::mul(b, parameter, static_cast<float>(optimizer.weight_decay)));
  }
  switch (optimizer.kind) {
    case Optimizer::Kind::sgd: return update_sgd(b, optimizer, parameter, gradient, moments, rate);
    case Optimizer::Kind::adam:
    case Optimizer::Kind::adamw: return update_adam(b, optimizer, parameter, gradient, moments, rate, step);
    case Optimizer::Kind::rmsprop: return update_rmsprop(b, optimizer, parameter, gradient, moments, rate);
  }
  return {parameter, moments};
}

}  // namespace stoker::nn
