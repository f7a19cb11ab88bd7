// The pointwise ops: a table, one row an op. A new one is a row here and a function in ops.h.
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "graph/expr.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/pointwise_grad.h"
#include "ops/registry.h"

namespace stoker::ops {
namespace {

using X = const double*;  // the arguments of one element
using Args = std::span<const int>;

struct Row {
  const char* name;
  int arity;
  DType result;
  double (*scalar)(X x, const Attrs& attrs);  // the reference: plain <cmath>, apart from `emit`
  int (*emit)(ExprBuilder& e, Args x, const Attrs& attrs);
  PointwiseGrad grad;  // null: not differentiable
};

// The op is one instruction.
template <ExprOp op>
int one(ExprBuilder& e, Args x, const Attrs&) {
  return e.emit(op, x[0], x.size() > 1 ? x[1] : -1, x.size() > 2 ? x[2] : -1);
}

int emit_relu6(ExprBuilder& e, Args x, const Attrs&) {
  return e.minimum(e.maximum(x[0], e.constant(0.0F)), e.constant(6.0F));
}

int emit_leaky_relu(ExprBuilder& e, Args x, const Attrs& attrs) {
  const int scaled = e.mul(x[0], e.constant(static_cast<float>(attrs.real("slope"))));
  return e.select(e.gt(x[0], e.constant(0.0F)), x[0], scaled);
}

int emit_gelu(ExprBuilder& e, Args x, const Attrs&) {
  const int erf = e.emit(ExprOp::erf, e.mul(x[0], e.constant(1.0F / std::numbers::sqrt2_v<float>)));
  return e.mul(e.mul(x[0], e.constant(0.5F)), e.add(erf, e.constant(1.0F)));
}

int emit_hard_swish(ExprBuilder& e, Args x, const Attrs&) {
  const int shifted = e.add(x[0], e.constant(3.0F));
  const int clipped = e.minimum(e.maximum(shifted, e.constant(0.0F)), e.constant(6.0F));
  return e.mul(x[0], e.mul(clipped, e.constant(1.0F / 6.0F)));
}

// Conversion to a narrow type happens at the store; what is said here holds within a fused expression, too.
int emit_cast(ExprBuilder& e, Args x, const Attrs& attrs) {
  switch (static_cast<DType>(attrs.integer("dtype"))) {
    case DType::f32:
    case DType::f16: return x[0];
    case DType::b8: return e.emit(ExprOp::ne, x[0], e.constant(0.0F));
    default: break;
  }
  const int floor_of_negated = e.emit(ExprOp::floor, e.emit(ExprOp::neg, x[0]));
  return e.select(e.lt(x[0], e.constant(0.0F)), e.emit(ExprOp::neg, floor_of_negated), e.emit(ExprOp::floor, x[0]));
}

double cast_to(double x, const Attrs& attrs) {
  const auto type = static_cast<DType>(attrs.integer("dtype"));
  if (type == DType::b8) return x != 0.0 ? 1.0 : 0.0;
  return is_float(type) ? x : std::trunc(x);
}

double truth(bool x) { return x ? 1.0 : 0.0; }
// NaN wins, whichever side it is on.
double larger(double x, double y) { return std::isnan(x) || x > y ? x : y; }
double smaller(double x, double y) { return std::isnan(x) || x < y ? x : y; }
double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

#define SCALAR(formula)                   \
  [](X x, const Attrs& attrs) -> double { \
    static_cast<void>(attrs);             \
    return formula;                       \
  }

constexpr DType kF = DType::f32;
constexpr DType kB = DType::b8;

constexpr Row kRows[] = {
    {"add", 2, kF, SCALAR(x[0] + x[1]), one<ExprOp::add>, add_grad},
    {"sub", 2, kF, SCALAR(x[0] - x[1]), one<ExprOp::sub>, sub_grad},
    {"mul", 2, kF, SCALAR(x[0] * x[1]), one<ExprOp::mul>, mul_grad},
    {"div", 2, kF, SCALAR(x[0] / x[1]), one<ExprOp::div>, div_grad},
    {"minimum", 2, kF, SCALAR(smaller(x[0], x[1])), one<ExprOp::minimum>, minimum_grad},
    {"maximum", 2, kF, SCALAR(larger(x[0], x[1])), one<ExprOp::maximum>, maximum_grad},
    {"pow", 2, kF, SCALAR(std::pow(x[0], x[1])), one<ExprOp::pow>, pow_grad},
    {"eq", 2, kB, SCALAR(truth(x[0] == x[1])), one<ExprOp::eq>, nullptr},
    {"ne", 2, kB, SCALAR(truth(x[0] != x[1])), one<ExprOp::ne>, nullptr},
    {"lt", 2, kB, SCALAR(truth(x[0] < x[1])), one<ExprOp::lt>, nullptr},
    {"le", 2, kB, SCALAR(truth(x[0] <= x[1])), one<ExprOp::le>, nullptr},
    {"gt", 2, kB, SCALAR(truth(x[0] > x[1])), one<ExprOp::gt>, nullptr},
    {"ge", 2, kB, SCALAR(truth(x[0] >= x[1])), one<ExprOp::ge>, nullptr},
    {"logical_and", 2, kB, SCALAR(truth(x[0] != 0 && x[1] != 0)), one<ExprOp::logical_and>, nullptr},
    {"logical_or", 2, kB, SCALAR(truth(x[0] != 0 || x[1] != 0)), one<ExprOp::logical_or>, nullptr},
    {"logical_not", 1, kB, SCALAR(truth(x[0] == 0)), one<ExprOp::logical_not>, nullptr},
    {"select", 3, kF, SCALAR(x[0] != 0 ? x[1] : x[2]), one<ExprOp::select>, select_grad},
    {"neg", 1, kF, SCALAR(-x[0]), one<ExprOp::neg>, neg_grad},
    {"abs", 1, kF, SCALAR(std::abs(x[0])), one<ExprOp::abs>, abs_grad},
    {"exp", 1, kF, SCALAR(std::exp(x[0])), one<ExprOp::exp>, exp_grad},
    {"expm1", 1, kF, SCALAR(std::expm1(x[0])), one<ExprOp::expm1>, expm1_grad},
    {"log", 1, kF, SCALAR(std::log(x[0])), one<ExprOp::log>, log_grad},
    {"sqrt", 1, kF, SCALAR(std::sqrt(x[0])), one<ExprOp::sqrt>, sqrt_grad},
    {"rsqrt", 1, kF, SCALAR(1.0 / std::sqrt(x[0])), one<ExprOp::rsqrt>, rsqrt_grad},
    {"tanh", 1, kF, SCALAR(std::tanh(x[0])), one<ExprOp::tanh>, tanh_grad},
    {"sigmoid", 1, kF, SCALAR(logistic(x[0])), one<ExprOp::sigmoid>, sigmoid_grad},
    {"erf", 1, kF, SCALAR(std::erf(x[0])), one<ExprOp::erf>, erf_grad},
    {"cos", 1, kF, SCALAR(std::cos(x[0])), one<ExprOp::cos>, cos_grad},
    {"floor", 1, kF, SCALAR(std::floor(x[0])), one<ExprOp::floor>, no_gradient},
    {"relu", 1, kF, SCALAR(x[0] <= 0 ? 0.0 : x[0]),
     [](ExprBuilder& e, Args x, const Attrs&) { return e.maximum(x[0], e.constant(0.0F)); }, relu_grad},
    {"relu6", 1, kF, SCALAR(x[0] <= 0 ? 0.0 : smaller(x[0], 6.0)), emit_relu6, relu6_grad},
    {"leaky_relu", 1, kF, SCALAR(x[0] > 0 ? x[0] : x[0] * attrs.real("slope")), emit_leaky_relu, leaky_relu_grad},
    {"gelu", 1, kF, SCALAR(x[0] * 0.5 * std::erfc(-x[0] / std::numbers::sqrt2)), emit_gelu, gelu_grad},
    {"silu", 1, kF, SCALAR(x[0] * logistic(x[0])),
     [](ExprBuilder& e, Args x, const Attrs&) { return e.mul(x[0], e.emit(ExprOp::sigmoid, x[0])); }, silu_grad},
    {"hard_swish", 1, kF, SCALAR(x[0] * smaller(larger(x[0] + 3, 0.0), 6.0) / 6), emit_hard_swish, hard_swish_grad},
    {"cast", 1, kF, SCALAR(cast_to(x[0], attrs)), emit_cast, cast_grad},
    {"stop_gradient", 1, kF, SCALAR(x[0]), [](ExprBuilder&, Args x, const Attrs&) { return x[0]; }, no_gradient},
};

#undef SCALAR

std::vector<Spec> infer(const Row& row, std::span<const Spec> inputs, const Attrs& attrs) {
  Shape shape = inputs[0].shape;
  for (const Spec& input : inputs.subspan(1)) shape = broadcast(shape, input.shape, row.name);
  const bool typed = attrs.has("dtype");
  if (typed) {
    const std::int64_t type = attrs.integer("dtype");
    require(type >= 0 && type <= static_cast<std::int64_t>(DType::b8), Code::bad_argument, row.name,
            ": there is no dtype ", type);
  }
  return {{typed ? static_cast<DType>(attrs.integer("dtype")) : row.result, shape}};
}

void reference(const Row& row, std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs& attrs) {
  RefTensor& y = outputs[0];
  double x[3] = {};
  for (std::size_t i = 0; i < y.data.size(); ++i) {
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const auto at = broadcast_offset(inputs[k].shape, y.shape, static_cast<std::int64_t>(i));
      x[k] = inputs[k].data[static_cast<std::size_t>(at)];
    }
    y.data[i] = row.scalar(x, attrs);
  }
}

Cost cost(const OpDef::Emit& emit, std::span<const Spec> inputs, std::span<const Spec> outputs, const Attrs& attrs) {
  ExprBuilder builder;
  std::vector<int> arguments;
  for (std::size_t i = 0; i < inputs.size(); ++i) arguments.push_back(builder.input(static_cast<int>(i)));
  const int result[] = {emit(builder, arguments, attrs)};
  double flops = 0;
  for (const ExprInst& inst : builder.finish(result, static_cast<int>(inputs.size())).code) flops += arity(inst.op) > 0;
  return {.flops = flops * static_cast<double>(outputs[0].shape.elements()),
          .bytes = bytes_of(inputs) + bytes_of(outputs)};
}

OpDef::CostRule cost_of_emit(OpDef::Emit emit) {
  return [emit = std::move(emit)](auto inputs, auto outputs, const Attrs& attrs) {
    return cost(emit, inputs, outputs, attrs);
  };
}

OpDef::Grad summed_down(PointwiseGrad rule) {
  return [rule](GradContext& c) {
    std::vector<Value> grads = rule(c);
    for (std::size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].is_none()) grads[i] = sum_to(c.builder, grads[i], Shape(c.builder.shape(c.inputs[i])));
    }
    return grads;
  };
}

// dropout_mask(seed, step): 0 with probability p, else 1 / (1 - p).
int emit_dropout_mask(ExprBuilder& e, Args x, const Attrs& attrs) {
  const double p = attrs.real("p");
  const int random = e.emit(ExprOp::uniform, x[0], x[1], -1, static_cast<float>(attrs.integer("id")));
  const int kept = e.emit(ExprOp::ge, random, e.constant(static_cast<float>(p)));
  return e.select(kept, e.constant(static_cast<float>(1.0 / (1.0 - p))), e.constant(0.0F));
}

std::vector<Spec> infer_dropout_mask(std::span<const Spec> inputs, const Attrs& attrs) {
  for (const Spec& spec : inputs) {
    require(spec == Spec{DType::i32, {}}, Code::bad_argument, "dropout: seed and step are scalars of i32, got ", spec);
  }
  const double p = attrs.real("p");
  require(p >= 0 && p < 1, Code::bad_argument, "dropout: p must be at least 0 and below 1, got ", p);
  // The expression holds the id as a float.
  const std::int64_t id = attrs.integer("id");
  require(id >= 0 && id < (1 << 24), Code::bad_argument, "dropout: id must be in [0, 2^24), got ", id);
  return {{DType::f32, to_shape(attrs.ints("shape"))}};
}

void dropout_mask_reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs& attrs) {
  const auto seed = static_cast<std::uint32_t>(inputs[0].data[0]);
  const auto step = static_cast<std::uint32_t>(inputs[1].data[0]);
  const auto id = static_cast<std::uint32_t>(attrs.integer("id"));
  const auto p = static_cast<float>(attrs.real("p"));
  for (std::size_t i = 0; i < outputs[0].data.size(); ++i) {
    outputs[0].data[i] = uniform_at(seed, step, id, i) >= p ? 1.0 / (1.0 - attrs.real("p")) : 0.0;
  }
}

}  // namespace

void register_pointwise(std::vector<OpDef>& table) {
  for (const Row& row : kRows) {
    OpDef op{.name = row.name, .min_inputs = row.arity, .max_inputs = row.arity, .traits = {.pointwise = true}};
    op.infer = [&row](auto inputs, const Attrs& attrs) { return infer(row, inputs, attrs); };
    op.no_grad = row.grad == nullptr;
    if (row.grad != nullptr) op.grad = summed_down(row.grad);
    op.reference = [&row](auto inputs, auto outputs, const Attrs& attrs) { reference(row, inputs, outputs, attrs); };
    op.emit = row.emit;
    op.cost = cost_of_emit(op.emit);
    if (op.name == "stop_gradient") {  // once the gradients are built it has done its work
      op.traits.composite = true;
      op.expand = [](GraphBuilder&, const Node&, auto inputs) { return std::vector<Value>{inputs[0]}; };
    }
    table.push_back(std::move(op));
  }
  table.push_back({.name = "dropout_mask",
                   .min_inputs = 2,
                   .max_inputs = 2,
                   .traits = {.pointwise = true},
                   .infer = infer_dropout_mask,
                   .grad = no_gradient,
                   .cost = cost_of_emit(emit_dropout_mask),
                   .reference = dropout_mask_reference,
                   .emit = emit_dropout_mask});
}

}  // namespace stoker::ops
