// The convolution kernels against plain loops in double: strides, padding, dilation, groups, prologues and epilogues.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>
#include <string>

#include "kernel_runner.h"

namespace stoker::cpu {
namespace {

struct Case {
  std::string name;
  std::int64_t n, h, w, c_in, c_out, kh, kw;
  Ints stride = {1, 1};
  Ints pad = {0, 0, 0, 0};
  Ints dilation = {1, 1};
  std::int64_t groups = 1;
  std::int64_t winograd = 0;

  [[nodiscard]] std::int64_t oh() const { return (h + pad[0] + pad[2] - (kh - 1) * dilation[0] - 1) / stride[0] + 1; }
  [[nodiscard]] std::int64_t ow() const { return (w + pad[1] + pad[3] - (kw - 1) * dilation[1] - 1) / stride[1] + 1; }
  [[nodiscard]] Shape x() const { return {n, h, w, c_in}; }
  [[nodiscard]] Shape y() const { return {n, oh(), ow(), c_out}; }
  [[nodiscard]] Shape weights() const { return {kh, kw, c_in / groups, c_out}; }
  [[nodiscard]] Attrs attrs() const {
    return {{"stride", stride},
            {"pad", pad},
            {"dilation", dilation},
            {"groups", groups},
            {"winograd", winograd},
            {"input_shape", Ints{n, h, w, c_in}},
            {"weight_shape", Ints{kh, kw, c_in / groups, c_out}}};
  }
  friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }
};

// Calls visit(index into x, into w, into y) for every product of the convolution.
template <typename Visit>
void for_each_product(const Case& c, const Visit& visit) {
  const std::int64_t gi = c.c_in / c.groups;
  const std::int64_t go = c.c_out / c.groups;
  for (std::int64_t pixel = 0; pixel < c.n * c.oh() * c.ow(); ++pixel) {
    const std::int64_t image = pixel / (c.oh() * c.ow());
    for (std::int64_t tap = 0; tap < c.kh * c.kw; ++tap) {
      const std::int64_t h = pixel / c.ow() % c.oh() * c.stride[0] - c.pad[0] + tap / c.kw * c.dilation[0];
      const std::int64_t w = pixel % c.ow() * c.stride[1] - c.pad[1] + tap % c.kw * c.dilation[1];
      if (h < 0 || h >= c.h || w < 0 || w >= c.w) continue;
      for (std::int64_t ci = 0; ci < gi; ++ci) {
        for (std::int64_t co = 0; co < c.c_out; ++co) {
          visit(((image * c.h + h) * c.w + w) * c.c_in + co / go * gi + ci, (tap * gi + ci) * c.c_out + co,
                pixel * c.c_out + co);
        }
      }
    }
  }
}

struct Part {
  const char* op;
  int a, b, result;  // which of x, w, y
};
constexpr Part kParts[] = {{"conv2d", 0, 1, 2}, {"conv2d_input_grad", 2, 1, 0}, {"conv2d_weight_grad", 0, 2, 1}};

Shape shape_of(const Case& c, int which) { return which == 0 ? c.x() : which == 1 ? c.weights() : c.y(); }

std::vector<double> reference(const Case& c, const Part& part, std::span<const double> a, std::span<const double> b) {
  std::vector<double> result(static_cast<std::size_t>(shape_of(c, part.result).elements()));
  for_each_product(c, [&](std::int64_t x, std::int64_t w, std::int64_t y) {
    const std::size_t at[] = {static_cast<std::size_t>(x), static_cast<std::size_t>(w), static_cast<std::size_t>(y)};
    result[at[part.result]] += a[at[part.a]] * b[at[part.b]];
  });
  return result;
}

std::vector<double> doubles(const Tensor& t) { return {t.span().begin(), t.span().end()}; }

// The largest difference, relative to the largest value.
double error(const Tensor& got, std::span<const double> want) {
  double worst = 0;
  double largest = 1e-30;
  for (std::size_t i = 0; i < want.size(); ++i) {
    worst = std::max(worst, std::abs(want[i] - static_cast<double>(got.span()[i])));
    largest = std::max(largest, std::abs(want[i]));
  }
  return worst / largest;
}

class Conv2d : public ::testing::TestWithParam<Case> {};

TEST_P(Conv2d, MatchesPlainLoopsForAnyNumberOfThreads) {
  const Case& c = GetParam();
  for (const Part& part : kParts) {
    Tensor a(shape_of(c, part.a));
    Tensor b(shape_of(c, part.b));
    a.fill(1);
    b.fill(2);
    const std::vector<double> want = reference(c, part, doubles(a), doubles(b));
    const Tensor* inputs[] = {&a, &b};
    Tensor first(shape_of(c, part.result));
    for (const int threads : {1, 2, 3}) {
      Tensor got(shape_of(c, part.result));
      got.fill(3);
      const Tensor* outputs[] = {&got};
      KernelRunner(find_kernel(conv2d_kernels(), part.op), inputs, c.attrs(), outputs, threads).run();
      EXPECT_LT(error(got, want), c.winograd == 2 ? 1e-5 : 2e-6) << part.op;
      if (threads == 1) std::ranges::copy(got.span(), first.span().begin());
      EXPECT_EQ(std::memcmp(first.bytes(), got.bytes(), got.span().size_bytes()), 0) << part.op << threads;
    }
  }
}

// Operand 0: relu(a * scale[c] + shift[c]). Result: y' = max(y + extra, 0) stored, y and y^2 summed per channel.
std::shared_ptr<const Fusion> example_fusion(bool prologue_on_b) {
  Fusion fusion;
  ExprBuilder pro;
  const int scaled = pro.emit(ExprOp::mul_add, pro.input(0), pro.input(1), pro.input(2));
  const int relu[] = {pro.maximum(scaled, pro.constant(0.0F))};
  const Expr relu_expr = pro.finish(relu, 3);
  fusion.operands.push_back({relu_expr, {{0, Access::full}, {2, Access::channel}, {3, Access::channel}}});
  if (prologue_on_b) {
    fusion.operands.push_back({relu_expr, {{1, Access::full}, {5, Access::channel}, {6, Access::channel}}});
  } else {
    fusion.operands.push_back({identity_expr(), {{1, Access::full}}});
  }
  ExprBuilder epi;
  const int y = epi.input(0);
  const int results[] = {epi.maximum(epi.add(y, epi.input(1)), epi.constant(0.0F)), y, epi.mul(y, y)};
  fusion.epilogue = epi.finish(results, 2);
  fusion.extra = {{4, Access::full}};
  fusion.results = {ResultKind::store, ResultKind::sum_channel, ResultKind::sum_channel};
  return std::make_shared<const Fusion>(std::move(fusion));
}

std::vector<double> scaled_relu(const Tensor& t, const Tensor& scale, const Tensor& shift) {
  std::vector<double> out = doubles(t);
  const auto channels = scale.span().size();
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = std::max(0.0, out[i] * static_cast<double>(scale.span()[i % channels]) +
                               static_cast<double>(shift.span()[i % channels]));
  }
  return out;
}

TEST_P(Conv2d, TakesProloguesAndEpilogues) {
  const Case& c = GetParam();
  for (const Part& part : kParts) {
    Tensor a(shape_of(c, part.a));
    Tensor b(shape_of(c, part.b));
    const Shape result = shape_of(c, part.result);
    Tensor scale(Shape{a.shape()[-1]});
    Tensor shift(Shape{a.shape()[-1]});
    Tensor scale_b(Shape{b.shape()[-1]});
    Tensor shift_b(Shape{b.shape()[-1]});
    Tensor extra(result);
    int seed = 1;
    for (Tensor* t : {&a, &b, &scale, &shift, &scale_b, &shift_b, &extra}) t->fill(static_cast<std::uint32_t>(seed++));
    const bool on_b = part.b == 2;
    const std::vector<double> plain =
        reference(c, part, scaled_relu(a, scale, shift), on_b ? scaled_relu(b, scale_b, shift_b) : doubles(b));
    std::vector<double> want(plain.size());
    const auto channels = static_cast<std::size_t>(result[-1]);
    std::vector<double> sum(channels);
    std::vector<double> squares(channels);
    for (std::size_t i = 0; i < plain.size(); ++i) {
      want[i] = std::max(0.0, plain[i] + static_cast<double>(extra.span()[i]));
      sum[i % channels] += plain[i];
      squares[i % channels] += plain[i] * plain[i];
    }
    Tensor got(result);
    Tensor got_sum(Shape{result[-1]});
    Tensor got_squares(Shape{result[-1]});
    const Tensor* inputs[] = {&a, &b, &scale, &shift, &extra, &scale_b, &shift_b};
    const Tensor* outputs[] = {&got, &got_sum, &got_squares};
    KernelRunner(find_kernel(conv2d_kernels(), part.op), inputs, c.attrs(), outputs, 2, example_fusion(on_b)).run();
    const double limit = c.winograd == 2 ? 2e-5 : 4e-6;
    EXPECT_LT(error(got, want), limit) << part.op;
    EXPECT_LT(error(got_squares, squares), 4 * limit) << part.op;
    EXPECT_LT(error(got_sum, sum), 8 * limit) << part.op;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Conv2d,
    ::testing::Values(
        Case{"same3x3", 2, 7, 9, 5, 6, 3, 3, {1, 1}, {1, 1, 1, 1}}, Case{"valid5x5", 3, 13, 11, 3, 7, 5, 5},
        Case{"pointwise", 2, 9, 7, 33, 24, 1, 1}, Case{"stride2", 2, 8, 10, 16, 20, 3, 3, {2, 2}, {1, 1, 1, 1}},
        Case{"stride2_odd", 2, 9, 7, 4, 33, 3, 3, {2, 2}, {0, 0, 1, 1}},
        Case{"shortcut", 2, 8, 8, 17, 35, 1, 1, {2, 2}}, Case{"shortcut_odd", 2, 7, 9, 16, 16, 1, 1, {2, 2}},
        Case{"stride3x1", 1, 11, 6, 5, 3, 4, 2, {3, 1}, {2, 0, 1, 1}},
        Case{"dilated", 2, 10, 12, 6, 4, 3, 3, {1, 1}, {2, 2, 2, 2}, {2, 2}},
        Case{"dilated_strided", 2, 11, 12, 6, 4, 3, 3, {2, 2}, {2, 1, 2, 3}, {2, 3}},
        Case{"grouped", 2, 6, 6, 12, 18, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 3},
        Case{"grouped_strided", 2, 9, 6, 8, 4, 3, 3, {2, 2}, {1, 1, 1, 1}, {1, 1}, 4},
        Case{"grouped_pointwise", 2, 5, 6, 8, 12, 1, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, 2},
        Case{"first_layer", 4, 32, 32, 3, 32, 3, 3, {1, 1}, {1, 1, 1, 1}},
        Case{"seven", 1, 30, 30, 3, 16, 7, 7, {2, 2}, {3, 3, 3, 3}},
        // Images enough for the kernels that take one at a time.
        Case{"many_valid5x5", 9, 12, 12, 20, 50, 5, 5}, Case{"many_first_layer", 10, 28, 28, 1, 20, 5, 5},
        Case{"many_strided", 8, 13, 11, 9, 6, 3, 3, {2, 2}, {1, 0, 1, 2}},
        Case{"many_padded", 8, 9, 10, 11, 7, 3, 3, {1, 1}, {1, 2, 0, 1}},
        Case{"many_dilated", 8, 12, 10, 9, 7, 3, 3, {1, 1}, {2, 1, 2, 1}, {2, 1}},
        Case{"many_dilated_columns", 8, 9, 12, 4, 5, 3, 3, {1, 1}, {0, 2, 0, 2}, {1, 2}},
        Case{"many_deep", 8, 7, 7, 9, 520, 3, 3, {2, 2}, {1, 1, 1, 1}},
        // Channels enough for the weights to be transformed in several passes.
        Case{"winograd4_wide", 1, 4, 5, 512, 512, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, 2},
        Case{"one_channel", 2, 28, 28, 1, 6, 5, 5, {1, 1}, {2, 2, 2, 2}}, Case{"lenet", 5, 12, 12, 20, 50, 5, 5},
        Case{"small_image", 5, 2, 2, 40, 48, 3, 3, {1, 1}, {1, 1, 1, 1}},
        Case{"pad_larger_than_kernel", 1, 3, 4, 2, 3, 2, 2, {1, 1}, {3, 2, 3, 4}},
        Case{"many_channels", 2, 5, 6, 130, 70, 3, 3, {1, 1}, {1, 1, 1, 1}},
        Case{"wide", 2, 4, 4, 20, 600, 3, 3, {1, 1}, {1, 1, 1, 1}},
        Case{"large", 3, 16, 20, 32, 48, 3, 3, {1, 1}, {1, 1, 1, 1}}),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Winograd, Conv2d,
    ::testing::Values(Case{"f2", 2, 8, 10, 32, 48, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, 1},
                      Case{"f4", 2, 8, 10, 32, 48, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, 2},
                      Case{"f2_odd", 3, 7, 9, 16, 32, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, 1},
                      Case{"f4_odd", 3, 7, 9, 16, 32, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, 2},
                      Case{"f2_valid", 2, 9, 6, 16, 16, 3, 3, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, 1},
                      Case{"f4_uneven_pad", 2, 9, 6, 16, 16, 3, 3, {1, 1}, {0, 2, 1, 1}, {1, 1}, 1, 2},
                      Case{"f4_small", 9, 4, 4, 80, 208, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, 2},
                      Case{"f2_deep", 3, 5, 5, 272, 144, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, 1},
                      Case{"f4_large", 3, 20, 24, 32, 48, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, 2},
                      Case{"f4_wide", 1, 3, 300, 16, 16, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, 2}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace stoker::cpu
