// The functions of ops.h that add one pointwise node.
#include "ops/common.h"
#include "ops/ops.h"

namespace stoker::ops {

Value add(B& b, Value x, Value y) { return make(b, "add", {x, y}); }
Value sub(B& b, Value x, Value y) { return make(b, "sub", {x, y}); }
Value mul(B& b, Value x, Value y) { return make(b, "mul", {x, y}); }
Value div(B& b, Value x, Value y) { return make(b, "div", {x, y}); }
Value minimum(B& b, Value x, Value y) { return make(b, "minimum", {x, y}); }
Value maximum(B& b, Value x, Value y) { return make(b, "maximum", {x, y}); }
Value pow(B& b, Value x, Value y) { return make(b, "pow", {x, y}); }
Value eq(B& b, Value x, Value y) { return make(b, "eq", {x, y}); }
Value ne(B& b, Value x, Value y) { return make(b, "ne", {x, y}); }
Value lt(B& b, Value x, Value y) { return make(b, "lt", {x, y}); }
Value le(B& b, Value x, Value y) { return make(b, "le", {x, y}); }
Value gt(B& b, Value x, Value y) { return make(b, "gt", {x, y}); }
Value ge(B& b, Value x, Value y) { return make(b, "ge", {x, y}); }
Value logical_and(B& b, Value x, Value y) { return make(b, "logical_and", {x, y}); }
Value logical_or(B& b, Value x, Value y) { return make(b, "logical_or", {x, y}); }
Value logical_not(B& b, Value x) { return make(b, "logical_not", {x}); }
Value select(B& b, Value condition, Value yes, Value no) { return make(b, "select", {condition, yes, no}); }
Value neg(B& b, Value x) { return make(b, "neg", {x}); }
Value abs(B& b, Value x) { return make(b, "abs", {x}); }
Value exp(B& b, Value x) { return make(b, "exp", {x}); }
Value expm1(B& b, Value x) { return make(b, "expm1", {x}); }
Value log(B& b, Value x) { return make(b, "log", {x}); }
Value sqrt(B& b, Value x) { return make(b, "sqrt", {x}); }
Value rsqrt(B& b, Value x) { return make(b, "rsqrt", {x}); }
Value tanh(B& b, Value x) { return make(b, "tanh", {x}); }
Value sigmoid(B& b, Value x) { return make(b, "sigmoid", {x}); }
Value erf(B& b, Value x) { return make(b, "erf", {x}); }
Value cos(B& b, Value x) { return make(b, "cos", {x}); }
Value floor(B& b, Value x) { return make(b, "floor", {x}); }
Value relu(B& b, Value x) { return make(b, "relu", {x}); }
Value relu6(B& b, Value x) { return make(b, "relu6", {x}); }
Value leaky_relu(B& b, Value x, double slope) { return make(b, "leaky_relu", {x}, {{"slope", slope}}); }
Value gelu(B& b, Value x) { return make(b, "gelu", {x}); }
Value silu(B& b, Value x) { return make(b, "silu", {x}); }
Value hard_swish(B& b, Value x) { return make(b, "hard_swish", {x}); }
Value cast(B& b, Value x, DType dtype) { return make(b, "cast", {x}, {{"dtype", static_cast<std::int64_t>(dtype)}}); }
Value stop_gradient(B& b, Value x) { return make(b, "stop_gradient", {x}); }

Value add(B& b, Value x, float y) { return add(b, x, constant(b, y)); }
Value mul(B& b, Value x, float y) { return mul(b, x, constant(b, y)); }

Value dropout(B& b, Value x, double p, Value seed, Value step, std::int64_t id) {
  const Value mask = make(b, "dropout_mask", {seed, step}, {{"shape", to_ints(b.shape(x))}, {"p", p}, {"id", id}});
  return mul(b, x, mask);
}

}  // namespace stoker::ops
