// Expressions, loads and stores as text: the part of rendering that knows nothing of nodes.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "backends/opencl/render.h"
#include "base/error.h"

namespace stoker::opencl {
namespace {

constexpr std::string_view kRandom = R"(#ifndef STOKER_RANDOM
#define STOKER_RANDOM
// Philox4x32-10, the bits of uniform_at(): elements 4i..4i+3 share a counter.
uint4 stoker_philox(uint seed, uint id, uint step, uint block) {
  uint2 key = (uint2)(seed, id);
  uint4 c = (uint4)(block, 0u, step, 0u);
  for (int round = 0; round < 10; ++round) {
    const uint high0 = mul_hi(0xD2511F53u, c.x);
    const uint high1 = mul_hi(0xCD9E8D57u, c.z);
    c = (uint4)(high1 ^ c.y ^ key.x, 0xCD9E8D57u * c.z, high0 ^ c.w ^ key.y, 0xD2511F53u * c.x);
    key += (uint2)(0x9E3779B9u, 0xBB67AE85u);
  }
  return c;
}
float4 stoker_uniform4(uint seed, uint id, uint step, uint element) {
  uint4 a = stoker_philox(seed, id, step, element / 4u);
  const uint skip = element & 3u;
  if (skip != 0u) {
    const uint4 b = stoker_philox(seed, id, step, element / 4u + 1u);
    a = skip == 1u ? (uint4)(a.yzw, b.x) : skip == 2u ? (uint4)(a.zw, b.xy) : (uint4)(a.w, b.xyz);
  }
  return convert_float4(a >> 8u) * 5.9604644775390625e-8f;
}
float stoker_uniform(uint seed, uint id, uint step, uint element) {
  const uint4 a = stoker_philox(seed, id, step, element / 4u);
  const uint skip = element & 3u;
  const uint word = skip == 0u ? a.x : skip == 1u ? a.y : skip == 2u ? a.z : a.w;
  return (float)(word >> 8u) * 5.9604644775390625e-8f;
}
#endif
)";

bool needs_math(ExprOp op) { return op == ExprOp::log || op == ExprOp::pow || op == ExprOp::expm1; }

// The C operator or function behind an instruction; masks are what comparisons give before they become 1 or 0.
const char* operator_of(ExprOp op) {
  switch (op) {
    case ExprOp::add: return "+";
    case ExprOp::sub: return "-";
    case ExprOp::mul: return "*";
    case ExprOp::div: return "/";
    default: return nullptr;
  }
}

const char* function_of(ExprOp op) {
  switch (op) {
    case ExprOp::abs: return "fabs";
    case ExprOp::exp: return "exp";
    case ExprOp::sqrt: return "sqrt";
    case ExprOp::rsqrt: return "rsqrt";
    case ExprOp::tanh: return "tanh";
    case ExprOp::erf: return "erf";
    case ExprOp::cos: return "cos";
    case ExprOp::floor: return "floor";
    default: return nullptr;
  }
}

const char* comparison_of(ExprOp op) {
  switch (op) {
    case ExprOp::eq: return "==";
    case ExprOp::ne: return "!=";
    case ExprOp::lt: return "<";
    case ExprOp::le: return "<=";
    case ExprOp::gt: return ">";
    case ExprOp::ge: return ">=";
    default: return nullptr;
  }
}

bool is_truth(ExprOp op) {
  return comparison_of(op) != nullptr || op == ExprOp::logical_and || op == ExprOp::logical_or ||
         op == ExprOp::logical_not;
}

// Writes one expression, a statement an instruction. Scalars and vectors share every formula: comparisons give int
// masks (1 or, in vectors, -1), and select() takes both.
class Body {
 public:
  Body(const Expr& expr, std::span<const OperandText> operands, int width, std::string_view element)
      : expr_(expr), operands_(operands), width_(width), element_(element) {}

  HoistedText run(const std::vector<bool>& fixed, std::span<const std::string> results) {
    HoistedText text;
    std::vector<bool> hoisted(expr_.code.size());
    for (std::size_t i = 0; i < expr_.code.size(); ++i) {
      const ExprInst& inst = expr_.code[i];
      hoisted[i] = is_fixed(inst, fixed, hoisted);
      if (inst.op == ExprOp::constant) continue;
      const bool truth = is_truth(inst.op);
      (hoisted[i] ? text.head : text.body) +=
          str("  const ", vector_type(truth ? "int" : "float", width_), truth ? " m" : " v", i, " = ",
              truth ? truth_of(inst) : formula(inst), ";\n");
    }
    for (std::size_t j = 0; j < results.size(); ++j)
      text.body += str("  ", results[j], " = ", value(expr_.outputs[j]), ";\n");
    return text;
  }

 private:
  [[nodiscard]] const ExprInst& inst_at(std::int32_t i) const { return expr_.code[static_cast<std::size_t>(i)]; }
  [[nodiscard]] static bool is_fixed(const ExprInst& inst, const std::vector<bool>& fixed,
                                     const std::vector<bool>& hoisted) {
    if (inst.op == ExprOp::input) return !fixed.empty() && fixed[static_cast<std::size_t>(inst.a)];
    if (inst.op == ExprOp::uniform) return false;
    const auto done = [&](std::int32_t i) { return i < 0 || hoisted[static_cast<std::size_t>(i)]; };
    return done(inst.a) && done(inst.b) && done(inst.c);
  }
  [[nodiscard]] std::string spread(const std::string& scalar) const {
    return width_ == 1 ? scalar : str("(", vector_type("float", width_), ")(", scalar, ")");
  }

  [[nodiscard]] std::string value(std::int32_t i) const {
    const ExprInst& inst = inst_at(i);
    if (inst.op == ExprOp::constant) return spread(literal(inst.imm));
    if (is_truth(inst.op)) return str("select(", spread("0.0f"), ", ", spread("1.0f"), ", m", i, ")");
    return str("v", i);
  }

  [[nodiscard]] std::string mask(std::int32_t i) const {
    return is_truth(inst_at(i).op) ? str("m", i) : str("(", value(i), " != ", spread("0.0f"), ")");
  }

  [[nodiscard]] std::string truth_of(const ExprInst& inst) const {
    if (inst.op == ExprOp::logical_not) return str(value(inst.a), " == ", spread("0.0f"));
    if (inst.op == ExprOp::logical_and) return str(mask(inst.a), " & ", mask(inst.b));
    if (inst.op == ExprOp::logical_or) return str(mask(inst.a), " | ", mask(inst.b));
    return str(value(inst.a), " ", comparison_of(inst.op), " ", value(inst.b));
  }

  [[nodiscard]] bool is_number(std::int32_t i) const {
    return inst_at(i).op == ExprOp::constant && !std::isnan(inst_at(i).imm);
  }

  // isnan(a) || a > b ? a : b, with one comparison where one side is known not to be NaN.
  [[nodiscard]] std::string extreme(const ExprInst& inst) const {
    const bool max = inst.op == ExprOp::maximum;
    const std::string a = value(inst.a);
    const std::string b = value(inst.b);
    const char* wins = max ? " > " : " < ";
    if (is_number(inst.a)) return str("select(", b, ", ", a, ", ", a, wins, b, ")");
    if (is_number(inst.b)) return str("select(", a, ", ", b, ", ", a, max ? " <= " : " >= ", b, ")");
    return str("select(", b, ", ", a, ", (", a, wins, b, ") | (", a, " != ", a, "))");
  }

  [[nodiscard]] std::string formula(const ExprInst& inst) const {
    switch (inst.op) {
      case ExprOp::input: return operands_[static_cast<std::size_t>(inst.a)].value;
      case ExprOp::neg: return "-" + value(inst.a);
      case ExprOp::sigmoid: return str(spread("1.0f"), " / (", spread("1.0f"), " + exp(-", value(inst.a), "))");
      case ExprOp::minimum:
      case ExprOp::maximum: return extreme(inst);
      case ExprOp::select: return str("select(", value(inst.c), ", ", value(inst.b), ", ", mask(inst.a), ")");
      case ExprOp::mul_add: return str(value(inst.a), " * ", value(inst.b), " + ", value(inst.c));
      case ExprOp::uniform: return uniform(inst);
      case ExprOp::log: return str("stoker_log_", width_, "(", value(inst.a), ")");
      case ExprOp::expm1: return str("stoker_expm1_", width_, "(", value(inst.a), ")");
      case ExprOp::pow: return str("stoker_pow_", width_, "(", value(inst.a), ", ", value(inst.b), ")");
      default: break;
    }
    if (const char* infix = operator_of(inst.op)) return str(value(inst.a), " ", infix, " ", value(inst.b));
    const char* function = function_of(inst.op);
    DCHECK(function != nullptr);
    return str(function, "(", value(inst.a), ")");
  }

  [[nodiscard]] std::string whole(std::int32_t i) const {
    const ExprInst& inst = inst_at(i);
    if (inst.op == ExprOp::input && !operands_[static_cast<std::size_t>(inst.a)].whole.empty())
      return str("(uint)", operands_[static_cast<std::size_t>(inst.a)].whole);
    return str("(uint)(", value(i), ")", width_ == 1 ? "" : ".s0");
  }

  [[nodiscard]] std::string uniform(const ExprInst& inst) const {
    const std::string key = str("(", whole(inst.a), ", ", static_cast<std::uint32_t>(inst.imm), "u, ", whole(inst.b),
                                ", (uint)(", element_);
    if (width_ == 1) return str("stoker_uniform", key, "))");
    if (width_ == 2) return str("stoker_uniform4", key, ")).xy");
    std::string all = str("(", vector_type("float", width_), ")(");
    for (int i = 0; i < width_; i += 4) all += str(i == 0 ? "" : ", ", "stoker_uniform4", key, ") + ", i, "u)");
    return all + ")";
  }

  const Expr& expr_;
  std::span<const OperandText> operands_;
  int width_;
  std::string_view element_;
};

}  // namespace

std::string render_body(const Expr& expr, std::span<const OperandText> operands, std::span<const std::string> results,
                        int width, std::string_view element) {
  return Body(expr, operands, width, element).run({}, results).body;
}

HoistedText render_hoisted(const Expr& expr, std::span<const OperandText> operands, const std::vector<bool>& fixed,
                           std::span<const std::string> results, int width, std::string_view element) {
  return Body(expr, operands, width, element).run(fixed, results);
}

std::string render_prelude(const Expr& expr, std::span<const int> widths) {
  std::string text;
  const auto any = [&](const auto& what) {
    return std::ranges::any_of(expr.code, [&](const ExprInst& inst) { return what(inst.op); });
  };
  if (any([](ExprOp op) { return op == ExprOp::uniform; })) text += kRandom;
  if (any(needs_math)) {
    for (const int width : widths) text += render_math(width);
  }
  return text;
}

std::vector<bool> used_operands(const Expr& expr) {
  std::vector<bool> used(static_cast<std::size_t>(expr.inputs), false);
  for (const ExprInst& inst : expr.code) {
    if (inst.op == ExprOp::input) used[static_cast<std::size_t>(inst.a)] = true;
  }
  return used;
}

std::string vector_type(std::string_view type, int width) { return width == 1 ? std::string(type) : str(type, width); }

std::string literal(float value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "(-INFINITY)";
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.9g", static_cast<double>(value));
  std::string text = digits;
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  text += "f";
  return std::signbit(value) ? "(" + text + ")" : text;
}

const char* element_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return "float";
    case DType::f16: return "half";
    case DType::i32: return "int";
    case DType::i64: return "long";
    case DType::u8:
    case DType::b8: return "uchar";
  }
  return "?";
}

std::string load_text(DType dtype, const std::string& pointer, const std::string& index, int width, bool aligned) {
  const std::string suffix = width == 1 ? "" : str(width);
  if (dtype == DType::f16) return str("vload_half", suffix, "(0, ", pointer, " + ", index, ")");
  std::string value;
  if (width == 1) {
    value = str(pointer, "[", index, "]");
  } else if (aligned) {
    value = str("*(global const ", element_type(dtype), width, "*)(", pointer, " + ", index, ")");
  } else {
    value = str("vload", width, "(0, ", pointer, " + ", index, ")");
  }
  return dtype == DType::f32 ? value : str("convert_float", suffix, "(", value, ")");
}

std::string store_text(DType dtype, const std::string& pointer, const std::string& index, const std::string& value,
                       int width, bool aligned) {
  const std::string suffix = width == 1 ? "" : str(width);
  if (dtype == DType::f16) return str("vstore_half", suffix, "_rte(", value, ", 0, ", pointer, " + ", index, ");");
  std::string converted = value;
  // A mask is 1, or -1 in vectors; a bool is 1.
  if (dtype == DType::b8) converted = str("convert_uchar", suffix, "((", value, " != 0.0f) & 1)");
  if (dtype == DType::u8 || dtype == DType::i32 || dtype == DType::i64)
    converted = str("convert_", element_type(dtype), suffix, "(", value, ")");
  if (width == 1) return str(pointer, "[", index, "] = ", converted, ";");
  if (aligned)
    return str("*(global ", element_type(dtype), width, "*)(", pointer, " + ", index, ") = ", converted, ";");
  return str("vstore", width, "(", converted, ", 0, ", pointer, " + ", index, ");");
}

}  // namespace stoker::opencl
