// matmul: NN, NT and TN on the last two dimensions, with batch dimensions equal or absent on one side.
#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/registry.h"

namespace stoker::ops {
namespace {

struct Sizes {
  std::int64_t m, k, n;
};

bool transposed(const Attrs& attrs, const char* which) { return attrs.integer(which) != 0; }

Shape batch_of(const Shape& shape) { return Shape(shape.dims().first(static_cast<std::size_t>(shape.rank() - 2))); }

Sizes sizes_of(const Shape& x, const Shape& y, const Attrs& attrs) {
  const bool tx = transposed(attrs, "transpose_x");
  const bool ty = transposed(attrs, "transpose_y");
  return {.m = x[tx ? -1 : -2], .k = x[tx ? -2 : -1], .n = y[ty ? -2 : -1]};
}

std::vector<Spec> infer(std::span<const Spec> inputs, const Attrs& attrs) {
  require_f32("matmul", inputs);
  const Shape& x = inputs[0].shape;
  const Shape& y = inputs[1].shape;
  require(x.rank() >= 2 && y.rank() >= 2, Code::bad_argument, "matmul: expected two matrices, got ", x, " and ", y);
  require(!transposed(attrs, "transpose_x") || !transposed(attrs, "transpose_y"), Code::bad_argument,
          "matmul: transposing both sides is not provided; A^T B^T = (B A)^T");
  const Sizes size = sizes_of(x, y, attrs);
  const std::int64_t inner = y[transposed(attrs, "transpose_y") ? -1 : -2];
  require(size.k == inner, Code::bad_argument, "matmul: inner sizes differ: ", size.k, " and ", inner, " (", x, " and ",
          y, ")");
  require(x.rank() == 2 || y.rank() == 2 || batch_of(x) == batch_of(y), Code::bad_argument,
          "matmul: batch dimensions differ: ", x, " and ", y);
  Shape shape = batch_of(x.rank() > 2 ? x : y);
  shape.push_back(size.m);
  shape.push_back(size.n);
  return {{DType::f32, shape}};
}

void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs& attrs) {
  const auto [M, K, N] = sizes_of(inputs[0].shape, inputs[1].shape, attrs);
  const bool tx = transposed(attrs, "transpose_x");
  const bool ty = transposed(attrs, "transpose_y");
  const std::int64_t batches = batch_of(outputs[0].shape).elements();
  for (std::int64_t i = 0; i < batches; ++i) {
    const double* x = inputs[0].data.data() + (inputs[0].shape.rank() > 2 ? i * M * K : 0);
    const double* y = inputs[1].data.data() + (inputs[1].shape.rank() > 2 ? i * K * N : 0);
    double* z = outputs[0].data.data() + i * M * N;
    for (std::int64_t m = 0; m < M; ++m) {
      for (std::int64_t n = 0; n < N; ++n) {
        double sum = 0;
        for (std::int64_t k = 0; k < K; ++k) sum += x[tx ? k * M + m : m * K + k] * y[ty ? n * K + k : k * N + n];
        z[m * N + n] = sum;
      }
    }
  }
}

Cost cost(std::span<const Spec> inputs, std::span<const Spec> outputs, const Attrs& attrs) {
  const Sizes size = sizes_of(inputs[0].shape, inputs[1].shape, attrs);
  return {.flops = 2.0 * static_cast<double>(outputs[0].shape.elements()) * static_cast<double>(size.k),
          .bytes = bytes_of(inputs) + bytes_of(outputs)};
}

// [..., M, K] as one matrix [... * M, K].
Value fold(B& b, Value x) {
  const Shape shape = b.shape(x);
  return shape.rank() == 2 ? x : reshape(b, x, {shape.elements(0, shape.rank() - 1), shape[-1]});
}

// With z = X Y (X and Y after transposition): dX = dz Y^T, dY = X^T dz; transposed where the operand is.
std::vector<Value> grad(GradContext& c) {
  B& b = c.builder;
  const bool tx = transposed(c.node.attrs, "transpose_x");
  const bool ty = transposed(c.node.attrs, "transpose_y");
  Value x = c.inputs[0];
  const Value y = c.inputs[1];
  Value dz = c.cotangents[0];
  const Shape x_shape = b.shape(x);
  const Shape y_shape = b.shape(y);
  const Value dx = tx ? matmul(b, y, dz, ty, true) : matmul(b, dz, y, false, !ty);
  if (x_shape.rank() > 2 && y_shape.rank() == 2 && !tx) {  // the batch is just more rows: no sum over it afterwards
    x = fold(b, x);
    dz = fold(b, dz);
  }
  const Value dy = ty ? matmul(b, dz, x, true, tx) : matmul(b, x, dz, !tx, false);
  return {sum_to(b, dx, x_shape), sum_to(b, dy, y_shape)};
}

}  // namespace

void register_matmul(std::vector<OpDef>& table) {
  table.push_back({.name = "matmul",
                   .min_inputs = 2,
                   .max_inputs = 2,
                   .traits = {.kernel = true},
                   .infer = infer,
                   .grad = grad,
                   .cost = cost,
                   .reference = reference});
}

Value matmul(B& b, Value x, Value y, bool transpose_x, bool transpose_y) {
  return make(b, "matmul", {x, y},
              {{"transpose_x", std::int64_t{transpose_x}}, {"transpose_y", std::int64_t{transpose_y}}});
}

}  // namespace stoker::ops
