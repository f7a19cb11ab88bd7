// matmul's kernel against plain loops in double, on odd sizes, every transpose, and any number of threads.
#include "backends/cpu/kernels/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <tuple>

#include "kernel_runner.h"

namespace stoker::cpu {
namespace {

Attrs transposes(bool x, bool y) { return {{"transpose_x", std::int64_t{x}}, {"transpose_y", std::int64_t{y}}}; }

void run_matmul(const Tensor& x, const Tensor& y, const Attrs& attrs, const Tensor& z, int threads) {
  const Tensor* inputs[] = {&x, &y};
  const Tensor* outputs[] = {&z};
  KernelRunner(find_kernel(matmul_kernels(), "matmul"), inputs, attrs, outputs, threads).run();
}

// The largest difference from plain loops, relative to sqrt(k): the operands are between -1 and 1.
double matmul_error(const Tensor& x, const Tensor& y, bool tx, bool ty, const Tensor& z) {
  const std::int64_t m = z.shape()[-2];
  const std::int64_t n = z.shape()[-1];
  const std::int64_t k = x.shape()[tx ? -2 : -1];
  const std::int64_t batch = z.shape().elements(0, z.shape().rank() - 2);
  const std::int64_t x_step = x.shape().rank() > 2 ? m * k : 0;
  const std::int64_t y_step = y.shape().rank() > 2 ? n * k : 0;
  double worst = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < k; ++l) {
          sum += static_cast<double>(x[b * x_step + (tx ? l * m + i : i * k + l)]) *
                 static_cast<double>(y[b * y_step + (ty ? j * k + l : l * n + j)]);
        }
        worst = std::max(worst, std::abs(sum - static_cast<double>(z[(b * m + i) * n + j])));
      }
    }
  }
  return worst / std::sqrt(static_cast<double>(k));
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.bytes(), b.bytes(), a.span().size_bytes()) == 0;
}

class MatMulSizes : public ::testing::TestWithParam<std::tuple<int, int, int>> {};

TEST_P(MatMulSizes, EveryTransposeMatchesPlainLoops) {
  const auto [m, n, k] = GetParam();
  for (const auto& [tx, ty] : {std::pair{false, false}, {false, true}, {true, false}, {true, true}}) {
    Tensor x(tx ? Shape{k, m} : Shape{m, k});
    Tensor y(ty ? Shape{n, k} : Shape{k, n});
    x.fill(1);
    y.fill(2);
    Tensor z(Shape{m, n});
    z.fill(3);
    run_matmul(x, y, transposes(tx, ty), z, 2);
    EXPECT_LT(matmul_error(x, y, tx, ty, z), 2e-6) << tx << ty;
  }
}

INSTANTIATE_TEST_SUITE_P(Odd, MatMulSizes,
                         ::testing::Values(std::tuple{1, 1, 1}, std::tuple{7, 5, 3}, std::tuple{1, 65, 63},
                                           std::tuple{65, 1, 7}, std::tuple{63, 65, 129}, std::tuple{14, 32, 256},
                                           std::tuple{15, 33, 257}, std::tuple{32, 256, 784}, std::tuple{150, 530, 300},
                                           std::tuple{256, 256, 256}, std::tuple{17, 24, 9000},
                                           std::tuple{130, 48, 5000}, std::tuple{1000, 24, 96},
                                           std::tuple{1000, 16, 33}, std::tuple{40, 10, 128}));

TEST(MatMul, IsTheSameToTheBitForAnyNumberOfThreads) {
  for (const auto& [m, n, k] : {std::tuple{200, 300, 500}, std::tuple{24, 40, 20000}, std::tuple{32, 700, 300}}) {
    for (const auto& [tx, ty] : {std::pair{false, false}, {false, true}, {true, false}}) {
      Tensor x(tx ? Shape{k, m} : Shape{m, k});
      Tensor y(ty ? Shape{n, k} : Shape{k, n});
      x.fill(4);
      y.fill(5);
      Tensor one(Shape{m, n});
      run_matmul(x, y, transposes(tx, ty), one, 1);
      for (const int threads : {2, 3}) {
        Tensor z(Shape{m, n});
        run_matmul(x, y, transposes(tx, ty), z, threads);
        EXPECT_TRUE(same_bits(one, z)) << m << " " << n << " " << k << " with " << threads << " threads";
      }
    }
  }
}

TEST(MatMul, TakesBatchesOnBothSidesOrOnOne) {
  for (const auto& [tx, ty] : {std::pair{false, false}, {false, true}, {true, false}, {true, true}}) {
    for (const auto& [bx, by] : {std::pair{true, true}, {true, false}, {false, true}}) {
      const std::int64_t m = 33;
      const std::int64_t n = 21;
      const std::int64_t k = 65;
      Shape x_shape = bx ? Shape{2, 3} : Shape{};
      x_shape.push_back(tx ? k : m);
      x_shape.push_back(tx ? m : k);
      Shape y_shape = by ? Shape{2, 3} : Shape{};
      y_shape.push_back(ty ? n : k);
      y_shape.push_back(ty ? k : n);
      Tensor x(x_shape);
      Tensor y(y_shape);
      x.fill(6);
      y.fill(7);
      Tensor z(Shape{2, 3, m, n});
      run_matmul(x, y, transposes(tx, ty), z, 2);
      EXPECT_LT(matmul_error(x, y, tx, ty, z), 2e-6) << tx << ty << bx << by;
    }
  }
}

TEST(MatMul, RejectsDifferentInnerSizes) {
  const Tensor x(Shape{2, 3});
  const Tensor y(Shape{4, 5});
  const Tensor z(Shape{2, 5});
  EXPECT_THROW(run_matmul(x, y, transposes(false, false), z, 1), Error);
}

}  // namespace
}  // namespace stoker::cpu
