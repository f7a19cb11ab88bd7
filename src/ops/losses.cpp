// Losses written with other ops: the mean over all elements, PyTorch's formulas and gradients. Targets take no gradient
// in binary_cross_entropy.
#include "base/error.h"
#include "ops/ops.h"

namespace stoker::ops {
namespace {

void require_same(B& b, const char* op, Value x, Value target) {
  require(b.shape(x) == b.shape(target), Code::bad_argument, op, ": the prediction is ", b.shape(x), ", the target ",
          b.shape(target));
}

Value one_minus(B& b, Value x) { return sub(b, constant(b, 1.0F), x); }

}  // namespace

Value mse(B& b, Value prediction, Value target) {
  require_same(b, "mse", prediction, target);
  const Value error = sub(b, prediction, target);
  return reduce_mean(b, mul(b, error, error), {});
}

Value binary_cross_entropy(B& b, Value probability, Value target) {
  require_same(b, "binary_cross_entropy", probability, target);
  const Value p = probability;
  const Value floor = constant(b, -100.0F);
  const Value yes = mul(b, target, maximum(b, log(b, p), floor));
  const Value no = mul(b, one_minus(b, target), maximum(b, log(b, one_minus(b, p)), floor));
  const Value loss = stop_gradient(b, neg(b, add(b, yes, no)));
  // The clamped logarithm has no useful slope at 0 and 1. PyTorch's gradient is (p - t) / max(p * (1 - p), 1e-12):
  // a term that is zero in value, slope * (p - p), carries it.
  const Value width = maximum(b, mul(b, p, one_minus(b, p)), constant(b, 1e-12F));
  const Value slope = stop_gradient(b, div(b, sub(b, p, target), width));
  const Value carrier = mul(b, slope, sub(b, p, stop_gradient(b, p)));
  return reduce_mean(b, add(b, loss, carrier), {});
}

Value binary_cross_entropy_with_logits(B& b, Value logits, Value target) {
  require_same(b, "binary_cross_entropy_with_logits", logits, target);
  // (1 - t) * x - log(sigmoid(x)), with log(sigmoid(x)) = min(x, 0) - log(1 + exp(-|x|)): nothing overflows.
  const Value tail = log(b, add(b, exp(b, neg(b, abs(b, logits))), 1.0F));
  const Value log_sigmoid = sub(b, minimum(b, logits, constant(b, 0.0F)), tail);
  return reduce_mean(b, sub(b, mul(b, one_minus(b, target), logits), log_sigmoid), {});
}

}  // namespace stoker::ops
