#include "graph/expr.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace stoker {
namespace {

struct OpInfo {
  ExprOp op;
  const char* name;
  int arity;
};

constexpr std::array kOps = {
    OpInfo{ExprOp::input, "input", 0},     OpInfo{ExprOp::constant, "constant", 0},
    OpInfo{ExprOp::neg, "neg", 1},         OpInfo{ExprOp::abs, "abs", 1},
    OpInfo{ExprOp::exp, "exp", 1},         OpInfo{ExprOp::expm1, "expm1", 1},
    OpInfo{ExprOp::log, "log", 1},         OpInfo{ExprOp::sqrt, "sqrt", 1},
    OpInfo{ExprOp::rsqrt, "rsqrt", 1},     OpInfo{ExprOp::tanh, "tanh", 1},
    OpInfo{ExprOp::sigmoid, "sigmoid", 1}, OpInfo{ExprOp::erf, "erf", 1},
    OpInfo{ExprOp::cos, "cos", 1},         OpInfo{ExprOp::floor, "floor", 1},
    OpInfo{ExprOp::logical_not, "not", 1}, OpInfo{ExprOp::add, "add", 2},
    OpInfo{ExprOp::sub, "sub", 2},         OpInfo{ExprOp::mul, "mul", 2},
    OpInfo{ExprOp::div, "div", 2},         OpInfo{ExprOp::minimum, "min", 2},
    OpInfo{ExprOp::maximum, "max", 2},     OpInfo{ExprOp::pow, "pow", 2},
    OpInfo{ExprOp::eq, "eq", 2},           OpInfo{ExprOp::ne, "ne", 2},
    OpInfo{ExprOp::lt, "lt", 2},           OpInfo{ExprOp::le, "le", 2},
    OpInfo{ExprOp::gt, "gt", 2},           OpInfo{ExprOp::ge, "ge", 2},
    OpInfo{ExprOp::logical_and, "and", 2}, OpInfo{ExprOp::logical_or, "or", 2},
    OpInfo{ExprOp::select, "select", 3},   OpInfo{ExprOp::mul_add, "mul_add", 3},
    OpInfo{ExprOp::uniform, "uniform", 2},
};

const OpInfo& info(ExprOp op) {
  const OpInfo& found = kOps[static_cast<std::size_t>(op)];
  DCHECK(found.op == op);
  return found;
}

// NaN wins, as in PyTorch's maximum and relu: a diverging net must not look healthy.
double maximum(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double minimum(double a, double b) { return std::isnan(a) || a < b ? a : b; }

}  // namespace

const char* to_string(ExprOp op) { return info(op).name; }
int arity(ExprOp op) { return info(op).arity; }

Expr identity_expr() { return {.inputs = 1, .code = {{.op = ExprOp::input, .a = 0}}, .outputs = {0}}; }

double apply(ExprOp op, double a, double b, double c) {
  switch (op) {
    case ExprOp::neg: return -a;
    case ExprOp::abs: return std::abs(a);
    case ExprOp::exp: return std::exp(a);
    case ExprOp::expm1: return std::expm1(a);
    case ExprOp::log: return std::log(a);
    case ExprOp::sqrt: return std::sqrt(a);
    case ExprOp::rsqrt: return 1.0 / std::sqrt(a);
    case ExprOp::tanh: return std::tanh(a);
    case ExprOp::sigmoid: return 1.0 / (1.0 + std::exp(-a));
    case ExprOp::erf: return std::erf(a);
    case ExprOp::cos: return std::cos(a);
    case ExprOp::floor: return std::floor(a);
    case ExprOp::logical_not: return a == 0.0 ? 1.0 : 0.0;
    case ExprOp::add: return a + b;
    case ExprOp::sub: return a - b;
    case ExprOp::mul: return a * b;
    case ExprOp::div: return a / b;
    case ExprOp::minimum: return minimum(a, b);
    case ExprOp::maximum: return maximum(a, b);
    case ExprOp::pow: return std::pow(a, b);
    case ExprOp::eq: return a == b ? 1.0 : 0.0;
    case ExprOp::ne: return a != b ? 1.0 : 0.0;
    case ExprOp::lt: return a < b ? 1.0 : 0.0;
    case ExprOp::le: return a <= b ? 1.0 : 0.0;
    case ExprOp::gt: return a > b ? 1.0 : 0.0;
    case ExprOp::ge: return a >= b ? 1.0 : 0.0;
    case ExprOp::logical_and: return a != 0.0 && b != 0.0 ? 1.0 : 0.0;
    case ExprOp::logical_or: return a != 0.0 || b != 0.0 ? 1.0 : 0.0;
    case ExprOp::select: return a != 0.0 ? b : c;
    case ExprOp::mul_add: return a * b + c;
    case ExprOp::input:
    case ExprOp::constant:
    case ExprOp::uniform: break;
  }
  return 0.0;
}

float uniform_at(std::uint32_t seed, std::uint32_t step, std::uint32_t id, std::uint64_t element) {
  // One counter makes four numbers; elements 4i..4i+3 share it.
  const std::uint64_t block = element / 4;
  const auto words =
      philox4x32({seed, id}, {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), step, 0});
  return to_unit(words[element % 4]);
}

void evaluate(const Expr& expr, std::span<const double> inputs, std::span<double> outputs, std::uint64_t element) {
  std::vector<double> value(expr.code.size());
  const auto at = [&](std::int32_t i) { return i < 0 ? 0.0 : value[static_cast<std::size_t>(i)]; };
  for (std::size_t i = 0; i < expr.code.size(); ++i) {
    const ExprInst& inst = expr.code[i];
    switch (inst.op) {
      case ExprOp::input: value[i] = inputs[static_cast<std::size_t>(inst.a)]; break;
      case ExprOp::constant: value[i] = static_cast<double>(inst.imm); break;
      case ExprOp::uniform:
        value[i] = static_cast<double>(uniform_at(static_cast<std::uint32_t>(at(inst.a)),
                                                  static_cast<std::uint32_t>(at(inst.b)),
                                                  static_cast<std::uint32_t>(inst.imm), element));
        break;
      default: value[i] = apply(inst.op, at(inst.a), at(inst.b), at(inst.c));
    }
  }
  for (std::size_t i = 0; i < expr.outputs.size(); ++i) outputs[i] = at(expr.outputs[i]);
}

int ExprBuilder::input(int operand) {
  const ExprInst inst{.op = ExprOp::input, .a = operand};
  if (const auto found = std::ranges::find(code_, inst); found != code_.end())
    return static_cast<int>(found - code_.begin());
  code_.push_back(inst);
  return static_cast<int>(code_.size()) - 1;
}

int ExprBuilder::constant(float value) { return emit(ExprOp::constant, -1, -1, -1, value); }

int ExprBuilder::emit(ExprOp op, int a, int b, int c, float imm) {
  const auto constant_at = [&](int i) { return i < 0 || code_[static_cast<std::size_t>(i)].op == ExprOp::constant; };
  const auto imm_at = [&](int i) { return i < 0 ? 0.0 : static_cast<double>(code_[static_cast<std::size_t>(i)].imm); };
  ExprInst inst{.op = op, .a = a, .b = b, .c = c, .imm = imm};
  if (arity(op) > 0 && op != ExprOp::uniform && constant_at(a) && constant_at(b) && constant_at(c)) {
    inst = {.op = ExprOp::constant, .imm = static_cast<float>(apply(op, imm_at(a), imm_at(b), imm_at(c)))};
  }
  const auto is = [&](int i, float x) {
    return i >= 0 && constant_at(i) && code_[static_cast<std::size_t>(i)].imm == x;
  };
  if (op == ExprOp::mul && is(b, 1.0F)) return a;
  if (op == ExprOp::mul && is(a, 1.0F)) return b;
  if ((op == ExprOp::add || op == ExprOp::sub) && is(b, 0.0F)) return a;
  if (op == ExprOp::add && is(a, 0.0F)) return b;
  if (const auto found = std::ranges::find(code_, inst); found != code_.end())
    return static_cast<int>(found - code_.begin());
  code_.push_back(inst);
  return static_cast<int>(code_.size()) - 1;
}

std::vector<int> ExprBuilder::append(const Expr& expr, std::span<const int> operands) {
  std::vector<int> at(expr.code.size());
  const auto map = [&](std::int32_t i) { return i < 0 ? -1 : at[static_cast<std::size_t>(i)]; };
  for (std::size_t i = 0; i < expr.code.size(); ++i) {
    const ExprInst& inst = expr.code[i];
    at[i] = inst.op == ExprOp::input ? operands[static_cast<std::size_t>(inst.a)]
                                     : emit(inst.op, map(inst.a), map(inst.b), map(inst.c), inst.imm);
  }
  std::vector<int> outputs;
  for (const std::int32_t output : expr.outputs) outputs.push_back(at[static_cast<std::size_t>(output)]);
  return outputs;
}

Expr ExprBuilder::finish(std::span<const int> outputs, int inputs) const {
  std::vector<bool> needed(code_.size(), false);
  for (const int output : outputs) needed[static_cast<std::size_t>(output)] = true;
  for (std::size_t i = code_.size(); i-- > 0;) {
    if (!needed[i] || code_[i].op == ExprOp::input) continue;
    for (const std::int32_t argument : {code_[i].a, code_[i].b, code_[i].c}) {
      if (argument >= 0) needed[static_cast<std::size_t>(argument)] = true;
    }
  }
  Expr expr{.inputs = inputs};
  std::vector<std::int32_t> at(code_.size(), -1);
  const auto map = [&](std::int32_t i) { return i < 0 ? -1 : at[static_cast<std::size_t>(i)]; };
  for (std::size_t i = 0; i < code_.size(); ++i) {
    if (!needed[i]) continue;
    ExprInst inst = code_[i];
    if (inst.op != ExprOp::input)
      inst = {.op = inst.op, .a = map(inst.a), .b = map(inst.b), .c = map(inst.c), .imm = inst.imm};
    at[i] = static_cast<std::int32_t>(expr.code.size());
    expr.code.push_back(inst);
  }
  for (const int output : outputs) expr.outputs.push_back(map(output));
  return expr;
}

Expr contract(const Expr& expr) {
  std::vector<int> uses(expr.code.size(), 0);
  for (const ExprInst& inst : expr.code) {
    if (inst.op == ExprOp::input) continue;
    for (const std::int32_t argument : {inst.a, inst.b, inst.c}) {
      if (argument >= 0) ++uses[static_cast<std::size_t>(argument)];
    }
  }
  for (const std::int32_t output : expr.outputs) ++uses[static_cast<std::size_t>(output)];
  const auto only_here = [&](std::int32_t i) {
    return expr.code[static_cast<std::size_t>(i)].op == ExprOp::mul && uses[static_cast<std::size_t>(i)] == 1;
  };
  Expr result = expr;
  for (ExprInst& inst : result.code) {
    if (inst.op != ExprOp::add) continue;
    const bool left = only_here(inst.a);
    if (!left && !only_here(inst.b)) continue;
    const ExprInst& product = expr.code[static_cast<std::size_t>(left ? inst.a : inst.b)];
    inst = {.op = ExprOp::mul_add, .a = product.a, .b = product.b, .c = left ? inst.b : inst.a};
  }
  // The multiplications that were taken in are now unused; rebuilding drops them.
  ExprBuilder builder;
  std::vector<int> operands;
  for (int i = 0; i < result.inputs; ++i) operands.push_back(builder.input(i));
  return builder.finish(builder.append(result, operands), result.inputs);
}

std::string to_string(const Expr& expr) {
  std::vector<std::string> text(expr.code.size());
  for (std::size_t i = 0; i < expr.code.size(); ++i) {
    const ExprInst& inst = expr.code[i];
    if (inst.op == ExprOp::input) {
      text[i] = str("$", inst.a);
    } else if (inst.op == ExprOp::constant) {
      text[i] = str(inst.imm);
    } else {
      text[i] = str(to_string(inst.op), "(", text[static_cast<std::size_t>(inst.a)]);
      if (inst.b >= 0) text[i] += "," + text[static_cast<std::size_t>(inst.b)];
      if (inst.c >= 0) text[i] += "," + text[static_cast<std::size_t>(inst.c)];
      text[i] += ")";
      if (text[i].size() > 160) text[i] = str("%", i);  // shared parts would grow without bound
    }
  }
  std::string all;
  for (const std::int32_t output : expr.outputs)
    all += (all.empty() ? "" : "; ") + text[static_cast<std::size_t>(output)];
  return all;
}

}  // namespace stoker
