// Softmax, gather and movement kernels against plain loops in double.
#include <algorithm>

#include "base/error.h"
#include "kernel_harness.h"

namespace stoker::cpu {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// For each row of n values.
std::vector<double> log_sum_exp(const std::vector<double>& x, std::int64_t n) {
  std::vector<double> logs;
  for (auto row = x.begin(); row != x.end(); row += n) {
    const double most = *std::max_element(row, row + n);
    double sum = 0.0;
    for (std::int64_t i = 0; i < n; ++i) sum += std::exp(row[i] - most);
    logs.push_back(most + std::log(sum));
  }
  return logs;
}

TEST(SoftmaxKernel, RowsSumToOneAndMatchTheFormula) {
  Random random(1);
  for (const Shape& shape : {Shape{7, 65}, Shape{1, 1}, Shape{63, 10}, Shape{2, 3, 1000}, Shape{700, 64}}) {
    std::vector<TestTensor> inputs = {random_tensor(shape, random)};
    for (double& value : inputs[0].values) value *= 32.0;
    const std::int64_t n = shape[-1];
    const std::vector<double> totals = log_sum_exp(inputs[0].values, n);
    std::vector<double> soft;
    std::vector<double> logs;
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      logs.push_back(inputs[0].values[at(i)] - totals[at(i / n)]);
      soft.push_back(std::exp(logs.back()));
    }
    const TestNode test("softmax", inputs, {{.shape = shape}});
    expect_near(run_kernel(find_kernel(softmax_kernels(), "softmax"), test, inputs)[0], soft, 1e-6, "softmax");
    const TestNode log_test("log_softmax", inputs, {{.shape = shape}});
    expect_near(run_kernel(find_kernel(softmax_kernels(), "log_softmax"), log_test, inputs)[0], logs, 1e-6, "log");
  }
}

TEST(SoftmaxKernel, CrossEntropyGivesLossAndGradient) {
  Random random(2);
  for (const std::int64_t n : {1, 7, 10, 65, 1000}) {
    for (const double smoothing : {0.0, 0.125}) {
      const Shape shape{63, n};
      std::vector<TestTensor> inputs = {random_tensor(shape, random),
                                        random_integers({63}, static_cast<std::uint64_t>(n), DType::i32, random)};
      inputs[1].values[5] = -1.0;
      inputs[1].values[6] = static_cast<double>(n);
      const std::vector<double> totals = log_sum_exp(inputs[0].values, n);
      std::vector<double> loss(63, 0.0);
      std::vector<double> grad;
      for (std::int64_t i = 0; i < shape.elements(); ++i) {
        const double label = inputs[1].values[at(i / n)];
        const double target =
            smoothing / static_cast<double>(n) + (static_cast<double>(i % n) == label ? 1.0 - smoothing : 0.0);
        const double bad = label < 0 || label >= static_cast<double>(n) ? std::nan("") : 0.0;
        const double log = inputs[0].values[at(i)] - totals[at(i / n)];
        grad.push_back(std::exp(log) - target + bad);
        loss[at(i / n)] -= target * log + bad;
      }
      const TestNode test("softmax_cross_entropy", inputs, {{.shape = {63}}, {.shape = shape}},
                          {{"label_smoothing", smoothing}});
      const auto got = run_kernel(find_kernel(softmax_kernels(), "softmax_cross_entropy"), test, inputs);
      expect_near(got[0], loss, 1e-6, "loss");
      expect_near(got[1], grad, 1e-6, "gradient");
    }
  }
}

TEST(SoftmaxKernel, NanInARowStaysInThatRow) {
  std::vector<TestTensor> inputs = {{.spec = {.shape = {2, 33}}, .values = std::vector<double>(66, 1.0)}};
  inputs[0].values[40] = std::nan("");
  std::vector<double> want(66, std::nan(""));
  std::fill_n(want.begin(), 33, 1.0 / 33.0);
  const TestNode test("softmax", inputs, {{.shape = {2, 33}}});
  expect_near(run_kernel(find_kernel(softmax_kernels(), "softmax"), test, inputs)[0], want, 1e-6, "softmax");
}

TEST(GatherKernel, RowsOutOfRangeAreNanAndNeverAdded) {
  Random random(3);
  for (const std::int64_t width : {1, 7, 65, 300}) {
    const std::int64_t size = 63;
    std::vector<TestTensor> inputs = {random_tensor({size, width}, random),
                                      random_integers({40, 50}, static_cast<std::uint64_t>(size), DType::i32, random)};
    inputs[1].values[3] = -1.0;
    inputs[1].values[4] = static_cast<double>(size);
    const Shape out{40, 50, width};
    const std::vector<TestTensor> grads = {inputs[1], random_tensor(out, random)};
    std::vector<double> want;
    std::vector<double> sums(at(size * width));
    for (std::int64_t i = 0; i < out.elements(); ++i) {
      const double row = inputs[1].values[at(i / width)];
      const bool inside = row >= 0 && row < static_cast<double>(size);
      const std::size_t place = inside ? at(static_cast<std::int64_t>(row) * width + i % width) : 0;
      want.push_back(inside ? inputs[0].values[place] : std::nan(""));
      if (inside) sums[place] += grads[1].values[at(i)];
    }
    const TestNode test("gather", inputs, {{.shape = out}});
    expect_near(run_kernel(find_kernel(gather_kernels(), "gather"), test, inputs)[0], want, 0.0, "gather");
    const TestNode grad("scatter_add", grads, {{.shape = {size, width}}}, {{"shape", Ints{size, width}}});
    expect_near(run_kernel(find_kernel(gather_kernels(), "scatter_add"), grad, grads)[0], sums, 1e-5, "scatter_add");
  }
}

// Row-major index of an element of `shape`.
Ints index_of(const Shape& shape, std::int64_t element) {
  Ints index(at(shape.rank()));
  for (int i = shape.rank() - 1; i >= 0; --i) {
    index[at(i)] = element % shape[i];
    element /= shape[i];
  }
  return index;
}

std::int64_t element_at(const Shape& shape, const Ints& index) {
  std::int64_t element = 0;
  for (int i = 0; i < shape.rank(); ++i) element = element * shape[i] + index[at(i)];
  return element;
}

struct OrderCase {
  Shape shape;
  Ints order;
};

TEST(MovementKernel, TransposesAnyOrderAndType) {
  Random random(4);
  const std::vector<OrderCase> cases = {{{7, 65}, {1, 0}},
                                        {{300, 257}, {1, 0}},
                                        {{2, 5, 7, 9}, {0, 3, 1, 2}},
                                        {{4, 3, 5}, {2, 1, 0}},
                                        {{4, 3, 5}, {1, 0, 2}},
                                        {{64, 64}, {1, 0}},
                                        {{3, 48, 5, 32}, {0, 2, 1, 3}},
                                        {{9}, {0}},
                                        {{2, 32, 3, 48}, {1, 3, 0, 2}}};
  for (const OrderCase& c : cases) {
    for (const DType dtype : {DType::f32, DType::u8, DType::i64}) {
      const std::vector<TestTensor> inputs = {random_integers(c.shape, 200, dtype, random)};
      Shape out;
      for (const std::int64_t axis : c.order) out.push_back(c.shape[static_cast<int>(axis)]);
      std::vector<double> want;
      for (std::int64_t i = 0; i < out.elements(); ++i) {
        const Ints to = index_of(out, i);
        Ints from(to.size());
        for (std::size_t k = 0; k < to.size(); ++k) from[at(c.order[k])] = to[k];
        want.push_back(inputs[0].values[at(element_at(c.shape, from))]);
      }
      const TestNode test("transpose", inputs, {{.dtype = dtype, .shape = out}}, {{"order", c.order}});
      expect_near(run_kernel(find_kernel(movement_kernels(), "transpose"), test, inputs)[0], want, 0.0,
                  str("transpose ", c.shape));
    }
  }
}

TEST(MovementKernel, PadsSlicesJoinsAndReshapes) {
  Random random(5);
  const Shape big{6, 7, 65};
  const Shape small{3, 7, 20};
  const Ints begin = {2, 0, 11};
  const std::vector<TestTensor> whole = {random_tensor(big, random)};
  std::vector<double> cut;
  for (std::int64_t i = 0; i < small.elements(); ++i) {
    Ints index = index_of(small, i);
    for (std::size_t k = 0; k < 3; ++k) index[k] += begin[k];
    cut.push_back(whole[0].values[at(element_at(big, index))]);
  }
  const TestNode slice("slice", whole, {{.shape = small}}, {{"begin", begin}, {"size", Ints{3, 7, 20}}});
  expect_near(run_kernel(find_kernel(movement_kernels(), "slice"), slice, whole)[0], cut, 0.0, "slice");

  const std::vector<TestTensor> part = {random_tensor(small, random)};
  std::vector<double> padded(at(big.elements()), -2.5);
  for (std::int64_t i = 0; i < small.elements(); ++i) {
    Ints index = index_of(small, i);
    for (std::size_t k = 0; k < 3; ++k) index[k] += begin[k];
    padded[at(element_at(big, index))] = part[0].values[at(i)];
  }
  const TestNode pad("pad", part, {{.shape = big}}, {{"before", begin}, {"after", Ints{1, 0, 34}}, {"value", -2.5}});
  expect_near(run_kernel(find_kernel(movement_kernels(), "pad"), pad, part)[0], padded, 0.0, "pad");

  const std::vector<TestTensor> parts = {random_tensor({2, 3, 4}, random), random_tensor({2, 1, 4}, random),
                                         random_tensor({2, 5, 4}, random)};
  std::vector<double> joined(72);
  std::int64_t position = 0;
  for (const TestTensor& piece : parts) {
    for (std::int64_t i = 0; i < piece.spec.shape.elements(); ++i) {
      Ints index = index_of(piece.spec.shape, i);
      index[1] += position;
      joined[at(element_at({2, 9, 4}, index))] = piece.values[at(i)];
    }
    position += piece.spec.shape[1];
  }
  const TestNode concat("concat", parts, {{.shape = {2, 9, 4}}}, {{"axis", std::int64_t{1}}});
  expect_near(run_kernel(find_kernel(movement_kernels(), "concat"), concat, parts)[0], joined, 0.0, "concat");

  const std::vector<TestTensor> flat = {random_tensor({65536, 2}, random)};
  const TestNode reshape("reshape", flat, {{.shape = {2, 65536}}}, {});
  expect_near(run_kernel(find_kernel(movement_kernels(), "reshape"), reshape, flat)[0], flat[0].values, 0.0, "reshape");
}

}  // namespace
}  // namespace stoker::cpu
