// Expr: a pointwise computation as a short straight-line program over fp32 values. Activations, their gradients, losses
// and optimizers are all written in it; fusing two of them is joining their programs. Comparisons give 1 or 0.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace stoker {

enum class ExprOp : std::uint8_t {
  input,     // operand number `a`
  constant,  // `imm`
  // one argument
  neg,
  abs,
  exp,
  expm1,
  log,
  sqrt,
  rsqrt,
  tanh,
  sigmoid,
  erf,
  cos,
  floor,
  logical_not,
  // two arguments
  add,
  sub,
  mul,
  div,
  minimum,
  maximum,
  pow,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  logical_and,
  logical_or,
  // three arguments
  select,   // a != 0 ? b : c
  mul_add,  // a * b + c
  uniform,  // [0, 1) from Philox: key (seed = a), counter (element number, step = b, stable id = imm)
};

[[nodiscard]] const char* to_string(ExprOp op);
// How many of a, b, c an instruction reads as earlier instructions.
[[nodiscard]] int arity(ExprOp op);

struct ExprInst {
  ExprOp op = ExprOp::constant;
  std::int32_t a = -1;  // numbers of earlier instructions (of an operand, for `input`)
  std::int32_t b = -1;
  std::int32_t c = -1;
  float imm = 0.0F;

  friend bool operator==(const ExprInst&, const ExprInst&) = default;
};

struct Expr {
  int inputs = 0;
  std::vector<ExprInst> code;
  std::vector<std::int32_t> outputs;  // numbers of instructions

  [[nodiscard]] bool is_identity() const {
    return code.size() == 1 && code[0].op == ExprOp::input && code[0].a == 0 && outputs.size() == 1;
  }
  friend bool operator==(const Expr&, const Expr&) = default;
};

// The expression that returns its one operand.
[[nodiscard]] Expr identity_expr();

// Appends instructions, folding constants and finding repeated ones.
class ExprBuilder {
 public:
  [[nodiscard]] int input(int operand);
  [[nodiscard]] int constant(float value);
  [[nodiscard]] int emit(ExprOp op, int a, int b = -1, int c = -1, float imm = 0.0F);
  // Appends `expr` with its operands replaced by instructions of this builder; returns its outputs.
  [[nodiscard]] std::vector<int> append(const Expr& expr, std::span<const int> operands);
  // Removes what no output needs. Operand numbers stay as they are.
  [[nodiscard]] Expr finish(std::span<const int> outputs, int inputs) const;

  // Shorthands, so that formulas read as such.
  [[nodiscard]] int add(int a, int b) { return emit(ExprOp::add, a, b); }
  [[nodiscard]] int sub(int a, int b) { return emit(ExprOp::sub, a, b); }
  [[nodiscard]] int mul(int a, int b) { return emit(ExprOp::mul, a, b); }
  [[nodiscard]] int div(int a, int b) { return emit(ExprOp::div, a, b); }
  [[nodiscard]] int maximum(int a, int b) { return emit(ExprOp::maximum, a, b); }
  [[nodiscard]] int minimum(int a, int b) { return emit(ExprOp::minimum, a, b); }
  [[nodiscard]] int gt(int a, int b) { return emit(ExprOp::gt, a, b); }
  [[nodiscard]] int lt(int a, int b) { return emit(ExprOp::lt, a, b); }
  [[nodiscard]] int select(int condition, int yes, int no) { return emit(ExprOp::select, condition, yes, no); }

 private:
  std::vector<ExprInst> code_;
};

// Joins a multiplication and the addition that alone uses it into mul_add.
[[nodiscard]] Expr contract(const Expr& expr);

// The plain evaluator, in double: the oracle for every fast one. `element` feeds `uniform`.
void evaluate(const Expr& expr, std::span<const double> inputs, std::span<double> outputs, std::uint64_t element = 0);

// One instruction on plain numbers.
[[nodiscard]] double apply(ExprOp op, double a, double b, double c);

// The random number behind ExprOp::uniform; every backend computes these same bits.
[[nodiscard]] float uniform_at(std::uint32_t seed, std::uint32_t step, std::uint32_t id, std::uint64_t element);

[[nodiscard]] std::string to_string(const Expr& expr);

}  // namespace stoker
