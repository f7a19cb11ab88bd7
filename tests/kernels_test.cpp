// The memory-bound CPU kernels against plain loops in double, on odd shapes: pointwise and reductions.
#include <limits>

#include "backends/cpu/kernels/pointwise.h"
#include "base/error.h"
#include "kernel_harness.h"

namespace stoker::cpu {
namespace {

// Row-major positions of a tensor of `shape` that broadcasts to `to`.
std::int64_t broadcast_position(const Shape& shape, const Shape& to, std::int64_t element) {
  std::int64_t position = 0;
  std::int64_t stride = 1;
  for (int i = 1; i <= to.rank(); ++i) {
    const std::int64_t index = element % to[-i];
    element /= to[-i];
    if (i > shape.rank()) continue;
    if (shape[-i] != 1) position += index * stride;
    stride *= shape[-i];
  }
  return position;
}

std::vector<double> inputs_at(const std::vector<TestTensor>& inputs, const Shape& to, std::int64_t element) {
  std::vector<double> values;
  for (const TestTensor& input : inputs)
    values.push_back(input.values[static_cast<std::size_t>(broadcast_position(input.spec.shape, to, element))]);
  return values;
}

Fusion fusion_of(const std::vector<TestTensor>& inputs, Expr expr, std::vector<ResultKind> results) {
  Fusion fusion{.epilogue = std::move(expr), .results = std::move(results)};
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i)
    fusion.extra.push_back({.input = i, .access = Access::broadcast});
  return fusion;
}

TEST(PointwiseKernel, BroadcastsAnyShapes) {
  Random random(1);
  const std::vector<std::vector<Shape>> cases = {
      {{7, 65}, {65}, {7, 1}},
      {{3, 5, 7, 9}, {3, 1, 1, 9}, {5, 1, 1}},
      {{3, 5, 7, 9}, {1, 5, 1, 9}, {3, 1, 7, 1}},
      {{2, 3, 63, 63}, {63, 63}, {1}},
      {{4, 1, 6}, {1, 5, 6}, {4, 5, 1}},
      {{100003}, {100003}, {1}},
      {{64, 33, 97}, {97}, {64, 33, 1}},
      {{}, {}, {}},
      {{1}, {7}, {1}},
      {{5, 1}, {1, 1}, {1, 300}},
  };
  for (const std::vector<Shape>& shapes : cases) {
    std::vector<TestTensor> inputs;
    Shape out;
    for (const Shape& shape : shapes) {
      inputs.push_back(random_tensor(shape, random));
      out = broadcast(out, shape, "test");
    }
    ExprBuilder b;
    const int value = b.add(b.mul(b.input(0), b.input(1)), b.input(2));
    const Expr expr = b.finish(std::vector{value, b.gt(value, b.constant(0.0F))}, 3);
    const auto fusion = std::make_shared<Fusion>(fusion_of(inputs, expr, {ResultKind::store, ResultKind::store}));
    const TestNode test("pointwise", inputs, {{.shape = out}, {.dtype = DType::b8, .shape = out}}, {}, fusion);
    const auto got = run_kernel(pointwise_kernels()[0], test, inputs);
    std::vector<std::vector<double>> want(2);
    for (std::int64_t i = 0; i < out.elements(); ++i) {
      const std::vector<double> in = inputs_at(inputs, out, i);
      want[0].push_back(in[0] * in[1] + in[2]);
      want[1].push_back(got[0][static_cast<std::size_t>(i)] > 0 ? 1.0 : 0.0);
    }
    expect_near(got[0], want[0], 1e-6, to_string(out));
    expect_near(got[1], want[1], 0.0, to_string(out));
  }
}

TEST(PointwiseKernel, SumsPerChannelWithAndWithoutBroadcasting) {
  Random random(2);
  const std::vector<std::vector<Shape>> cases = {
      {{63, 65}, {65}}, {{2, 9, 9, 24}, {2, 1, 1, 24}}, {{40, 32, 32, 16}, {16}}, {{1, 7}, {7}}, {{4099, 1}, {1}}};
  for (const std::vector<Shape>& shapes : cases) {
    std::vector<TestTensor> inputs = {random_tensor(shapes[0], random), random_tensor(shapes[1], random)};
    ExprBuilder b;
    const int shifted = b.sub(b.input(0), b.input(1));
    const Expr expr = b.finish(std::vector{shifted, b.mul(shifted, shifted)}, 2);
    const auto fusion =
        std::make_shared<Fusion>(fusion_of(inputs, expr, {ResultKind::sum_channel, ResultKind::sum_channel}));
    const std::int64_t channels = shapes[0][-1];
    const TestNode test("pointwise", inputs, {{.shape = {channels}}, {.shape = {channels}}}, {}, fusion);
    const auto got = run_kernel(pointwise_kernels()[0], test, inputs);
    std::vector<std::vector<double>> want(2, std::vector<double>(static_cast<std::size_t>(channels)));
    for (std::int64_t i = 0; i < shapes[0].elements(); ++i) {
      const std::vector<double> in = inputs_at(inputs, shapes[0], i);
      want[0][static_cast<std::size_t>(i % channels)] += in[0] - in[1];
      want[1][static_cast<std::size_t>(i % channels)] += (in[0] - in[1]) * (in[0] - in[1]);
    }
    expect_near(got[0], want[0], 1e-5 * std::sqrt(static_cast<double>(shapes[0].elements())), "sum");
    expect_near(got[1], want[1], 1e-6, "sum of squares");
  }
}

TEST(PointwiseKernel, RunsPlainOpsByTheirEmitRule) {
  Random random(3);
  const std::vector<TestTensor> inputs = {random_tensor({6, 1, 63}, random), random_tensor({5, 63}, random)};
  TestNode test("sub", inputs, {{.shape = {6, 5, 63}}});
  test.op.emit = [](ExprBuilder& b, std::span<const int> in, const Attrs&) { return b.sub(in[0], in[1]); };
  const auto got =
      run_kernel({.op = "sub", .prepare = prepare_pointwise, .workspace = workspace_pointwise}, test, inputs);
  std::vector<double> want;
  for (std::int64_t i = 0; i < 6 * 5 * 63; ++i) {
    const auto in = inputs_at(inputs, {6, 5, 63}, i);
    want.push_back(in[0] - in[1]);
  }
  expect_near(got[0], want, 1e-6, "sub");
}

TEST(PointwiseKernel, MayWriteOverAFullInput) {
  Random random(4);
  const std::vector<TestTensor> inputs = {random_tensor({200, 501}, random), random_tensor({200, 501}, random),
                                          random_tensor({501}, random)};
  ExprBuilder b;  // momentum: v = 0.9 v + g, w = w - 0.1 v
  const int v = b.add(b.mul(b.input(1), b.constant(0.9F)), b.input(2));
  const Expr expr = b.finish(std::vector{b.sub(b.input(0), b.mul(v, b.constant(0.1F))), v}, 3);
  const auto fusion = std::make_shared<Fusion>(fusion_of(inputs, expr, {ResultKind::store, ResultKind::store}));
  const TestNode test("pointwise", inputs, {{.shape = {200, 501}}, {.shape = {200, 501}}}, {}, fusion);
  const auto got = run_kernel(pointwise_kernels()[0], test, inputs, 0);
  std::vector<std::vector<double>> want(2);
  for (std::int64_t i = 0; i < 200 * 501; ++i) {
    const auto in = inputs_at(inputs, {200, 501}, i);
    want[1].push_back(in[1] * 0.9 + in[2]);
    want[0].push_back(in[0] - 0.1 * want[1].back());
  }
  expect_near(got[0], want[0], 1e-6, "w");
  expect_near(got[1], want[1], 1e-6, "v");
}

struct ReduceCase {
  Shape shape;
  Ints axes;
};

TEST(ReductionKernel, SumsAndMaximaOverAnyAxes) {
  Random random(5);
  const std::vector<ReduceCase> cases = {{{7, 65}, {0}},
                                         {{7, 65}, {1}},
                                         {{63, 5}, {0, 1}},
                                         {{3, 7, 5, 9}, {1, 2}},
                                         {{64, 8, 8, 96}, {1, 2}},
                                         {{5000, 33}, {0}},
                                         {{33, 5001}, {1}},
                                         {{3, 5, 7, 9}, {0, 2}},
                                         {{3, 5, 7, 9}, {1, 3}},
                                         {{2, 3, 4, 5, 6}, {0, 2, 4}},
                                         {{300001}, {0}},
                                         {{1, 7, 1, 3}, {0, 2}},
                                         {{40000, 1}, {0}},
                                         {{2, 60000}, {1}},
                                         {{9}, {}}};
  for (const ReduceCase& c : cases) {
    const std::vector<TestTensor> inputs = {random_tensor(c.shape, random)};
    Shape kept = c.shape;
    for (const std::int64_t axis : c.axes) kept.set(static_cast<int>(axis), 1);
    const auto n = static_cast<std::size_t>(kept.elements());
    std::vector<double> sums(n, 0.0);
    std::vector<double> maxima(n, -std::numeric_limits<double>::infinity());
    for (std::int64_t i = 0; i < c.shape.elements(); ++i) {
      const auto to = static_cast<std::size_t>(broadcast_position(kept, c.shape, i));
      const double value = inputs[0].values[static_cast<std::size_t>(i)];
      sums[to] += value;
      maxima[to] = std::max(maxima[to], value);
    }
    const double scale = std::sqrt(static_cast<double>(c.shape.elements()) / static_cast<double>(n));
    for (const char* op : {"reduce_sum", "reduce_max"}) {
      const TestNode test(op, inputs, {{.shape = kept}}, {{"axes", c.axes}, {"keep_dims", std::int64_t{1}}});
      const auto got = run_kernel(find_kernel(reduction_kernels(), op), test, inputs);
      const bool sum = std::string(op) == "reduce_sum";
      expect_near(got[0], sum ? sums : maxima, sum ? 4e-7 * scale : 0.0, str(op, " of ", c.shape));
    }
  }
}

TEST(ReductionKernel, NanWinsInMaximaAndSpreadsInSums) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<TestTensor> inputs = {{.spec = {.shape = {2, 20}}, .values = std::vector<double>(40, 1.0)}};
  for (const int place : {0, 7, 19}) {
    std::vector<TestTensor> with_nan = inputs;
    with_nan[0].values[static_cast<std::size_t>(20 + place)] = nan;
    const TestNode test("reduce_max", with_nan, {{.shape = {2}}}, {{"axes", Ints{1}}, {"keep_dims", std::int64_t{0}}});
    const auto got = run_kernel(find_kernel(reduction_kernels(), "reduce_max"), test, with_nan);
    expect_near(got[0], {1.0, nan}, 0.0, "max");
    const TestNode arg("argmax", with_nan, {{.dtype = DType::i32, .shape = {2}}}, {{"axes", Ints{1}}});
    const auto position = run_kernel(find_kernel(reduction_kernels(), "argmax"), arg, with_nan);
    expect_near(position[0], {0.0, static_cast<double>(place)}, 0.0, "argmax");
  }
}

TEST(ReductionKernel, ArgmaxTakesTheFirstOfTies) {
  Random random(6);
  for (const int axis : {0, 1, 2}) {
    const Shape shape{7, 65, 3};
    const std::vector<TestTensor> inputs = {[&] {
      TestTensor tensor = random_integers(shape, 5, DType::i32, random);
      tensor.spec.dtype = DType::f32;
      return tensor;
    }()};
    Shape kept = shape;
    kept.set(axis, 1);
    std::vector<double> best(static_cast<std::size_t>(kept.elements()), -1.0);
    std::vector<double> want(best.size());
    const std::int64_t inner = shape.elements(axis + 1, 3);
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      const auto to = static_cast<std::size_t>(broadcast_position(kept, shape, i));
      const double value = inputs[0].values[static_cast<std::size_t>(i)];
      if (value > best[to]) {
        best[to] = value;
        want[to] = static_cast<double>(i / inner % shape[axis]);
      }
    }
    const TestNode test("argmax", inputs, {{.dtype = DType::i32, .shape = kept}}, {{"axes", Ints{axis}}});
    expect_near(run_kernel(find_kernel(reduction_kernels(), "argmax"), test, inputs)[0], want, 0.0, "argmax");
  }
}

}  // namespace
}  // namespace stoker::cpu
