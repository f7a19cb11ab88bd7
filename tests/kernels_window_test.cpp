// Depthwise convolutions and pooling against plain loops in double, with prologues and epilogues.
#include "base/error.h"
#include "kernel_harness.h"

namespace stoker::cpu {
namespace {

struct Window {
  Shape x;
  Ints kernel;
  Ints stride = {1, 1};
  Ints pad = {0, 0, 0, 0};
  Ints dilation = {1, 1};

  [[nodiscard]] std::int64_t output(int axis) const {
    const auto i = static_cast<std::size_t>(axis);
    return (x[axis + 1] + pad[i] + pad[i + 2] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1;
  }
  [[nodiscard]] Shape y() const { return {x[0], output(0), output(1), x[3]}; }
  [[nodiscard]] Shape weight() const { return {kernel[0], kernel[1], 1, x[3]}; }
  [[nodiscard]] Attrs attrs() const { return {{"stride", stride}, {"pad", pad}, {"dilation", dilation}}; }

  // Calls visit(x element, y element, tap) for all pairs within the image.
  template <typename Visit>
  void for_pairs(const Visit& visit) const {
    const Shape out = y();
    for (std::int64_t i = 0; i < out.elements(); ++i) {
      const std::int64_t c = i % out[3];
      const std::int64_t ow = i / out[3] % out[2];
      const std::int64_t oh = i / out[3] / out[2] % out[1];
      const std::int64_t n = i / out[3] / out[2] / out[1];
      for (std::int64_t tap = 0; tap < kernel[0] * kernel[1]; ++tap) {
        const std::int64_t ih = oh * stride[0] - pad[0] + tap / kernel[1] * dilation[0];
        const std::int64_t iw = ow * stride[1] - pad[1] + tap % kernel[1] * dilation[1];
        if (ih < 0 || iw < 0 || ih >= x[1] || iw >= x[2]) continue;
        visit(((n * x[1] + ih) * x[2] + iw) * x[3] + c, i, tap);
      }
    }
  }
};

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

const std::vector<Window> kWindows = {
    {.x = {2, 9, 7, 24}, .kernel = {3, 3}, .pad = {1, 1, 1, 1}},
    {.x = {3, 8, 13, 65}, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1, 1, 1}},
    {.x = {2, 4, 4, 63}, .kernel = {3, 3}, .stride = {2, 2}, .pad = {0, 0, 1, 1}},
    {.x = {1, 1, 1, 7}, .kernel = {3, 3}, .pad = {1, 1, 1, 1}},
    {.x = {1, 11, 12, 1}, .kernel = {5, 5}, .stride = {2, 1}, .pad = {2, 2, 2, 2}},
    {.x = {2, 10, 9, 17}, .kernel = {3, 3}, .pad = {2, 2, 2, 2}, .dilation = {2, 2}},
    {.x = {2, 6, 9, 16}, .kernel = {1, 2}, .stride = {3, 2}, .pad = {0, 0, 0, 1}},
    {.x = {40, 17, 16, 40}, .kernel = {3, 3}, .pad = {1, 1, 1, 1}},
    {.x = {33, 16, 15, 40}, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1, 1, 1}},
};

// A prologue of two full tensors and one of channels: max(0, a * scale + b).
Prologue relu_of_affine(int a, int b, int scale) {
  ExprBuilder e;
  const int value = e.add(e.mul(e.input(0), e.input(2)), e.input(1));
  return {.expr = e.finish(std::vector{e.maximum(value, e.constant(0.0F))}, 3),
          .args = {{.input = a}, {.input = b}, {.input = scale, .access = Access::channel}}};
}

// Appends the three tensors of such a prologue; returns its value.
std::vector<double> add_prologue(const Shape& shape, Random& random, std::vector<TestTensor>& inputs,
                                 std::vector<Prologue>& operands) {
  const int first = static_cast<int>(inputs.size());
  inputs.push_back(random_tensor(shape, random));
  inputs.push_back(random_tensor(shape, random));
  inputs.push_back(random_tensor({shape[-1]}, random));
  operands.push_back(relu_of_affine(first, first + 1, first + 2));
  std::vector<double> value;
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    value.push_back(std::max(0.0, inputs[at(first)].values[at(i)] * inputs[at(first + 2)].values[at(i % shape[-1])] +
                                      inputs[at(first + 1)].values[at(i)]));
  return value;
}

std::vector<double> add_plain(const Shape& shape, Random& random, std::vector<TestTensor>& inputs,
                              std::vector<Prologue>& operands) {
  operands.push_back({.args = {{.input = static_cast<int>(inputs.size())}}});
  inputs.push_back(random_tensor(shape, random));
  return inputs.back().values;
}

// Epilogue: y + bias[c] stored, its sum and its sum of squares by channel.
Fusion with_epilogue(std::vector<Prologue> operands, int bias) {
  ExprBuilder e;
  const int value = e.add(e.input(0), e.input(1));
  return {.operands = std::move(operands),
          .epilogue = e.finish(std::vector{value, value, e.mul(value, value)}, 2),
          .extra = {{.input = bias, .access = Access::channel}},
          .results = {ResultKind::store, ResultKind::sum_channel, ResultKind::sum_channel}};
}

void check_epilogue(const std::vector<std::vector<double>>& got, const std::vector<double>& plain,
                    const std::vector<double>& bias, const std::string& what) {
  std::vector<double> want = plain;
  std::vector<double> sum(bias.size());
  std::vector<double> squares(bias.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    want[i] += bias[i % bias.size()];
    sum[i % bias.size()] += want[i];
    squares[i % bias.size()] += want[i] * want[i];
  }
  expect_near(got[0], want, 2e-6 * 10, what);
  expect_near(got[1], sum, 1e-3, what + " sum");
  expect_near(got[2], squares, 1e-5, what + " squares");
}

TEST(DepthwiseKernel, ForwardMatchesWithAndWithoutFusion) {
  Random random(1);
  for (const Window& window : kWindows) {
    for (const bool fused : {false, true}) {
      std::vector<TestTensor> inputs;
      std::vector<Prologue> operands;
      const std::vector<double> x =
          fused ? add_prologue(window.x, random, inputs, operands) : add_plain(window.x, random, inputs, operands);
      const std::vector<double> w = add_plain(window.weight(), random, inputs, operands);
      const Shape y = window.y();
      std::vector<double> want(at(y.elements()));
      window.for_pairs([&](std::int64_t from, std::int64_t to, std::int64_t tap) {
        want[at(to)] += x[at(from)] * w[at(tap * y[3] + to % y[3])];
      });
      const KernelDef& kernel = find_kernel(depthwise_kernels(), "depthwise");
      if (!fused) {
        const TestNode test("depthwise", inputs, {{.shape = y}}, window.attrs());
        expect_near(run_kernel(kernel, test, inputs)[0], want, 1e-5, str("depthwise ", window.x));
        continue;
      }
      inputs.push_back(random_tensor({y[3]}, random));
      const auto fusion = std::make_shared<Fusion>(with_epilogue(operands, static_cast<int>(inputs.size()) - 1));
      const TestNode test("depthwise", inputs, {{.shape = y}, {.shape = {y[3]}}, {.shape = {y[3]}}}, window.attrs(),
                          fusion);
      check_epilogue(run_kernel(kernel, test, inputs), want, inputs.back().values, str("fused ", window.x));
    }
  }
}

TEST(DepthwiseKernel, InputGradientMatchesWithAndWithoutFusion) {
  Random random(2);
  for (const Window& window : kWindows) {
    for (const bool fused : {false, true}) {
      std::vector<TestTensor> inputs;
      std::vector<Prologue> operands;
      const Shape y = window.y();
      const std::vector<double> dy =
          fused ? add_prologue(y, random, inputs, operands) : add_plain(y, random, inputs, operands);
      const std::vector<double> w = add_plain(window.weight(), random, inputs, operands);
      std::vector<double> want(at(window.x.elements()));
      window.for_pairs([&](std::int64_t from, std::int64_t to, std::int64_t tap) {
        want[at(from)] += dy[at(to)] * w[at(tap * y[3] + to % y[3])];
      });
      Attrs attrs = window.attrs();
      attrs.set("input_shape", Ints(window.x.dims().begin(), window.x.dims().end()));
      const KernelDef& kernel = find_kernel(depthwise_kernels(), "depthwise_input_grad");
      if (!fused) {
        const TestNode test("depthwise_input_grad", inputs, {{.shape = window.x}}, attrs);
        expect_near(run_kernel(kernel, test, inputs)[0], want, 1e-5, str("input grad ", window.x));
        continue;
      }
      inputs.push_back(random_tensor({y[3]}, random));
      const auto fusion = std::make_shared<Fusion>(with_epilogue(operands, static_cast<int>(inputs.size()) - 1));
      const TestNode test("depthwise_input_grad", inputs, {{.shape = window.x}, {.shape = {y[3]}}, {.shape = {y[3]}}},
                          attrs, fusion);
      check_epilogue(run_kernel(kernel, test, inputs), want, inputs.back().values, str("fused grad ", window.x));
    }
  }
}

TEST(DepthwiseKernel, WeightGradientMatchesWithAndWithoutFusion) {
  Random random(3);
  for (const Window& window : kWindows) {
    for (const bool fused : {false, true}) {
      std::vector<TestTensor> inputs;
      std::vector<Prologue> operands;
      const auto add = fused ? add_prologue : add_plain;
      const std::vector<double> x = add(window.x, random, inputs, operands);
      const std::vector<double> dy = add(window.y(), random, inputs, operands);
      const std::int64_t channels = window.x[3];
      std::vector<double> want(at(window.weight().elements()));
      window.for_pairs([&](std::int64_t from, std::int64_t to, std::int64_t tap) {
        want[at(tap * channels + to % channels)] += x[at(from)] * dy[at(to)];
      });
      Attrs attrs = window.attrs();
      attrs.set("weight_shape", Ints{window.kernel[0], window.kernel[1], 1, channels});
      const Fusion fusion{.operands = operands, .results = {ResultKind::store}};
      const TestNode test("depthwise_weight_grad", inputs, {{.shape = window.weight()}}, attrs,
                          fused ? std::make_shared<Fusion>(fusion) : nullptr);
      const auto got = run_kernel(find_kernel(depthwise_kernels(), "depthwise_weight_grad"), test, inputs);
      expect_near(got[0], want, 2e-4, str("weight grad ", window.x));
    }
  }
}

Attrs pool_attrs(const Window& window) {
  Attrs attrs = window.attrs();
  attrs.set("kernel", window.kernel);
  attrs.set("input_shape", Ints(window.x.dims().begin(), window.x.dims().end()));
  return attrs;
}

const std::vector<Window> kPools = {
    {.x = {3, 8, 10, 20}, .kernel = {2, 2}, .stride = {2, 2}},
    {.x = {2, 9, 7, 65}, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1, 1, 1}},
    {.x = {1, 7, 7, 63}, .kernel = {3, 2}, .pad = {1, 0, 1, 1}},
    {.x = {2, 11, 9, 7}, .kernel = {2, 3}, .stride = {3, 2}, .pad = {0, 1, 0, 1}, .dilation = {2, 2}},
    {.x = {64, 24, 24, 20}, .kernel = {2, 2}, .stride = {2, 2}},
    {.x = {1, 1, 1, 1}, .kernel = {1, 1}},
};

TEST(PoolingKernel, MaximumTakesTheFirstOfTiesAndNanWins) {
  Random random(4);
  for (const Window& window : kPools) {
    std::vector<TestTensor> inputs = {random_integers(window.x, 4, DType::i32, random)};
    inputs[0].spec.dtype = DType::f32;
    inputs[0].values[inputs[0].values.size() / 2] = std::nan("");
    const Shape y = window.y();
    std::vector<double> want(at(y.elements()), -1e30);
    std::vector<double> index(want.size());
    window.for_pairs([&](std::int64_t from, std::int64_t to, std::int64_t tap) {
      const double value = inputs[0].values[at(from)];
      if (std::isnan(want[at(to)]) || !(value > want[at(to)] || std::isnan(value))) return;
      want[at(to)] = value;
      index[at(to)] = static_cast<double>(tap);
    });
    const TestNode test("max_pool", inputs, {{.shape = y}, {.dtype = DType::u8, .shape = y}}, pool_attrs(window));
    const auto got = run_kernel(find_kernel(pooling_kernels(), "max_pool"), test, inputs);
    expect_near(got[0], want, 0.0, str("max_pool ", window.x));
    expect_near(got[1], index, 0.0, str("max_pool index ", window.x));

    std::vector<TestTensor> grad_inputs = {{.spec = {.dtype = DType::u8, .shape = y}, .values = index},
                                           random_tensor(y, random)};
    std::vector<double> dx(at(window.x.elements()));
    window.for_pairs([&](std::int64_t from, std::int64_t to, std::int64_t tap) {
      if (index[at(to)] == static_cast<double>(tap)) dx[at(from)] += grad_inputs[1].values[at(to)];
    });
    const TestNode grad("max_pool_grad", grad_inputs, {{.shape = window.x}}, pool_attrs(window));
    expect_near(run_kernel(find_kernel(pooling_kernels(), "max_pool_grad"), grad, grad_inputs)[0], dx, 1e-6,
                str("max_pool_grad ", window.x));
  }
}

TEST(PoolingKernel, AverageCountsPaddingOrNot) {
  Random random(5);
  for (const Window& window : kPools) {
    for (const std::int64_t include : {0, 1}) {
      const Shape y = window.y();
      std::vector<double> count(at(y.elements()), include == 1 ? window.kernel[0] * window.kernel[1] : 0);
      if (include == 0) window.for_pairs([&](std::int64_t, std::int64_t to, std::int64_t) { count[at(to)] += 1.0; });
      const std::vector<TestTensor> x = {random_tensor(window.x, random)};
      const std::vector<TestTensor> dy = {random_tensor(y, random)};
      std::vector<double> want(count.size());
      std::vector<double> dx(at(window.x.elements()));
      window.for_pairs([&](std::int64_t from, std::int64_t to, std::int64_t) {
        want[at(to)] += x[0].values[at(from)] / count[at(to)];
        dx[at(from)] += dy[0].values[at(to)] / count[at(to)];
      });
      Attrs attrs = pool_attrs(window);
      attrs.set("count_include_pad", include);
      const TestNode test("avg_pool", x, {{.shape = y}}, attrs);
      expect_near(run_kernel(find_kernel(pooling_kernels(), "avg_pool"), test, x)[0], want, 1e-6, "avg_pool");
      const TestNode grad("avg_pool_grad", dy, {{.shape = window.x}}, attrs);
      expect_near(run_kernel(find_kernel(pooling_kernels(), "avg_pool_grad"), grad, dy)[0], dx, 1e-6,
                  str("avg_pool_grad ", window.x));
    }
  }
}

}  // namespace
}  // namespace stoker::cpu
