// Op cases of sources, pointwise ops and movement.
#include "op_cases.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/registry.h"

namespace stoker::test {
namespace {

using Values = std::vector<Value>;

struct Unary {
  const char* op;
  Range range;
  bool differentiable;
  double tolerance = 1e-5;
};

constexpr Range kAny{-3.0, 3.0};
constexpr Range kPositive{0.2, 3.0};

constexpr Unary kUnary[] = {
    {"neg", kAny, true},
    {"abs", kAny, true},
    {"exp", kAny, true},
    {"expm1", kAny, true},
    {"log", kPositive, true},
    {"sqrt", kPositive, true},
    {"rsqrt", kPositive, true},
    {"tanh", kAny, true},
    {"sigmoid", kAny, true},
    {"erf", kAny, true},
    {"cos", {-6.0, 6.0}, true},
    {"floor", kAny, true},
    {"relu", kAny, true},
    {"relu6", {-3.0, 9.0}, true},
    {"gelu", kAny, true},
    {"silu", kAny, true},
    {"hard_swish", {-5.0, 5.0}, true},
    {"stop_gradient", kAny, false},
};

struct Binary {
  const char* op;
  Range x;
  Range y;
  bool differentiable;
};

constexpr Binary kBinary[] = {
    {"add", kAny, kAny, true},
    {"sub", kAny, kAny, true},
    {"mul", kAny, kAny, true},
    {"div", kAny, kPositive, true},
    {"minimum", kAny, kAny, true},
    {"maximum", kAny, kAny, true},
    {"pow", {0.2, 2.0}, {-2.0, 2.0}, true},
};

const std::vector<Shape> kSizes = {{}, {1}, {7}, {63}, {65}, {3, 5, 7}, {2, 1, 3, 65}};
const std::vector<std::pair<Shape, Shape>> kPairs = {
    {{7}, {7}},          {{63}, {1}},
    {{}, {65}},          {{5, 1, 65}, {3, 1}},
    {{2, 3, 5, 7}, {7}}, {{4, 7, 1}, {4, 1, 9}},
    {{9, 63}, {9, 1}},   {{1, 1, 1, 3}, {2, 5, 1, 3}},
};

void unary(std::vector<OpCase>& cases, const Unary& row, const Attrs& attrs = {}) {
  for (const Shape& shape : kSizes) {
    cases.push_back({.name = std::string(row.op) + " " + to_string(shape) + " " + to_string(attrs),
                     .op = row.op,
                     .build = [=](GraphBuilder& b, const Values& x) { return ops::make(b, row.op, {x[0]}, attrs); },
                     .inputs = {f32(shape)},
                     .ranges = {row.range},
                     .differentiable = row.differentiable,
                     .tolerance = row.tolerance});
  }
}

// Comparisons and logic, on integers so that equal pairs turn up, in each of the dtypes that they meet.
void bool_cases(std::vector<OpCase>& cases) {
  for (const char* op : {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or"}) {
    for (const DType dtype : {DType::f32, DType::i32, DType::b8, DType::u8}) {
      for (const Shape& shape : {Shape{65}, Shape{3, 7}}) {
        const Range range{0.0, dtype == DType::b8 ? 1.0 : 3.0};
        cases.push_back({.name = std::string(op) + " " + to_string(Spec{dtype, shape}),
                         .op = op,
                         .build =
                             [=](GraphBuilder& b, const Values& x) {
                               return ops::make(b, op, {x[0], x[1]});
                             },
                         .inputs = {{dtype, shape}, {dtype, {shape[-1]}}},
                         .ranges = {range, range},
                         .differentiable = false});
      }
    }
  }
  cases.push_back({.name = "logical_not",
                   .op = "logical_not",
                   .build = [](GraphBuilder& b, const Values& x) { return ops::logical_not(b, x[0]); },
                   .inputs = {{DType::b8, {7, 9}}},
                   .ranges = {{0.0, 1.0}},
                   .differentiable = false});
}

void cast_cases(std::vector<OpCase>& cases) {
  for (const DType from : {DType::f32, DType::i32, DType::u8, DType::b8}) {
    for (const DType to : {DType::f32, DType::i32, DType::u8, DType::b8}) {
      // A negative number has no value in u8.
      const double low = from == DType::u8 || from == DType::b8 || to == DType::u8 ? 0.0 : -9.0;
      cases.push_back({.name = "cast " + std::string(to_string(from)) + " to " + std::string(to_string(to)),
                       .op = "cast",
                       .build = [=](GraphBuilder& b, const Values& x) { return ops::cast(b, x[0], to); },
                       .inputs = {{from, {3, 65}}},
                       .ranges = {{low, from == DType::b8 ? 1.0 : 9.0}},
                       .differentiable = from == DType::f32 && to == DType::f32});
    }
  }
}

void select_cases(std::vector<OpCase>& cases) {
  const auto build = [](GraphBuilder& b, const Values& x) { return ops::select(b, x[0], x[1], x[2]); };
  for (const DType dtype : {DType::b8, DType::f32, DType::i32, DType::u8}) {
    cases.push_back({.name = "select by " + std::string(to_string(dtype)),
                     .op = "select",
                     .build = build,
                     .inputs = {{dtype, {5, 7}}, f32({3, 5, 7}), f32({7})},
                     .ranges = {{0.0, 1.0}, kAny, kAny}});
  }
  cases.push_back({.name = "select stretches the condition",
                   .op = "select",
                   .build = build,
                   .inputs = {{DType::b8, {63, 1}}, f32({}), f32({63, 5})},
                   .ranges = {{0.0, 1.0}, kAny, kAny}});
}

void dropout_cases(std::vector<OpCase>& cases) {
  for (const Shape& shape : {Shape{1}, Shape{63}, Shape{7, 65}}) {
    cases.push_back({.name = "dropout_mask " + to_string(shape),
                     .op = "dropout_mask",
                     .build =
                         [=](GraphBuilder& b, const Values& x) {
                           return ops::make(b, "dropout_mask", {x[0], x[1]},
                                            {{"shape", ops::to_ints(shape)}, {"p", 0.3}, {"id", std::int64_t{5}}});
                         },
                     .inputs = {i32({}), i32({})},
                     .ranges = {{1.0, 99.0}, {1.0, 99.0}},
                     .differentiable = false});
  }
}

template <typename Build>
void moved(std::vector<OpCase>& cases, const char* op, const char* what, const Shape& shape, Build build) {
  cases.push_back({.name = std::string(op) + " " + what,
                   .op = op,
                   .build = [=](GraphBuilder& b, const Values& x) { return build(b, x[0]); },
                   .inputs = {f32(shape)}});
}

using B = GraphBuilder;

}  // namespace

void source_cases(std::vector<OpCase>& cases) {
  cases.push_back({.name = "input",
                   .op = "input",
                   .build = [](B& b, const Values& x) { return ops::neg(b, x[0]); },
                   .inputs = {f32({7})}});
  cases.push_back({.name = "state",
                   .op = "state",
                   .build =
                       [](B& b, const Values& x) {
                         return ops::add(b, x[0], ops::state(b, b.declare_state({"s", f32({7})})));
                       },
                   .inputs = {f32({3, 7})}});
  cases.push_back({.name = "constant",
                   .op = "constant",
                   .build =
                       [](B& b, const Values& x) {
                         return ops::mul(b, x[0], ops::constant(b, {3}, {1, -2, 0.5}));
                       },
                   .inputs = {f32({5, 3})}});
}

void pointwise_cases(std::vector<OpCase>& cases) {
  for (const Unary& row : kUnary) unary(cases, row);
  unary(cases, {"leaky_relu", kAny, true}, {{"slope", 0.1}});
  unary(cases, {"leaky_relu", kAny, true}, {{"slope", -0.5}});
  for (const Binary& row : kBinary) {
    for (const auto& [x_shape, y_shape] : kPairs) {
      cases.push_back({.name = std::string(row.op) + " " + to_string(x_shape) + " " + to_string(y_shape),
                       .op = row.op,
                       .build =
                           [=](B& b, const Values& x) {
                             return ops::make(b, row.op, {x[0], x[1]});
                           },
                       .inputs = {f32(x_shape), f32(y_shape)},
                       .ranges = {row.x, row.y},
                       .differentiable = row.differentiable});
    }
  }
  bool_cases(cases);
  cast_cases(cases);
  select_cases(cases);
  dropout_cases(cases);
  cases.push_back({.name = "pointwise: relu(x0 * x1 + x2) stored, its square summed",
                   .op = "pointwise",
                   .build =
                       [](B& b, const Values& x) {
                         ExprBuilder e;
                         const int sum = e.add(e.mul(e.input(0), e.input(1)), e.input(2));
                         const int y = e.maximum(sum, e.constant(0.0F));
                         const int results[] = {y, e.mul(y, y)};
                         const Fusion fusion{.epilogue = e.finish(results, 3),
                                             .extra = {{0, Access::full}, {1, Access::channel}, {2, Access::row}},
                                             .results = {ResultKind::store, ResultKind::sum_channel}};
                         return b.add_node({.op = &find_op("pointwise"),
                                            .inputs = x,
                                            .outputs = {f32({9, 65}), f32({65})},
                                            .fusion = std::make_shared<const Fusion>(fusion)});
                       },
                   .inputs = {f32({9, 65}), f32({65}), f32({9, 1})},
                   .differentiable = false});
}

void movement_cases(std::vector<OpCase>& cases) {
  moved(cases, "reshape", "[7,9] to [63]", {7, 9}, [](B& b, Value x) { return ops::reshape(b, x, {63}); });
  moved(cases, "reshape", "scalar to [1,1]", {}, [](B& b, Value x) { return ops::reshape(b, x, {1, 1}); });
  moved(cases, "broadcast_to", "[7] to [65,7]", {7}, [](B& b, Value x) { return ops::broadcast_to(b, x, {65, 7}); });
  moved(cases, "broadcast_to", "[5,1,3] to [2,5,7,3]", {5, 1, 3}, [](B& b, Value x) {
    return ops::broadcast_to(b, x, {2, 5, 7, 3});
  });
  moved(cases, "broadcast_to", "scalar to [63]", {}, [](B& b, Value x) { return ops::broadcast_to(b, x, {63}); });
  moved(cases, "transpose", "[63,65]", {63, 65}, [](B& b, Value x) { return ops::transpose(b, x, {1, 0}); });
  moved(cases, "transpose", "[1,7]", {1, 7}, [](B& b, Value x) { return ops::transpose(b, x, {1, 0}); });
  moved(cases, "transpose", "NHWC to NCHW", {3, 5, 4, 7}, [](B& b, Value x) {
    return ops::transpose(b, x, {0, 3, 1, 2});
  });
  moved(cases, "transpose", "heads apart", {2, 9, 3, 5}, [](B& b, Value x) {
    return ops::transpose(b, x, {0, 2, 1, 3});
  });
  moved(cases, "transpose", "a cycle", {3, 5, 7}, [](B& b, Value x) { return ops::transpose(b, x, {2, 0, 1}); });
  moved(cases, "pad", "with 0", {5, 7}, [](B& b, Value x) { return ops::pad(b, x, {1, 0}, {0, 3}); });
  moved(cases, "pad", "with a value", {2, 3, 4, 5}, [](B& b, Value x) {
    return ops::pad(b, x, {0, 1, 2, 0}, {0, 1, 0, 2}, 1.5F);
  });
  moved(cases, "slice", "[65]", {65}, [](B& b, Value x) { return ops::slice(b, x, {1}, {63}); });
  moved(cases, "slice", "in the middle", {4, 6, 7}, [](B& b, Value x) {
    return ops::slice(b, x, {1, 2, 3}, {2, 1, 4});
  });
  for (const std::int64_t axis : {0, 1, -1}) {
    std::vector<Spec> parts(3, f32({2, 5, 7}));
    const int varied = axis < 0 ? 2 : static_cast<int>(axis);
    parts[1].shape.set(varied, 1);
    parts[2].shape.set(varied, 9);
    cases.push_back({.name = "concat along " + std::to_string(axis),
                     .op = "concat",
                     .build = [=](B& b, const Values& x) { return ops::concat(b, x, axis); },
                     .inputs = parts});
  }
}

}  // namespace stoker::test
