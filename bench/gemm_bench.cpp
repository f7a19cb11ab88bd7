// Measures matmul and convolution kernels: GFLOPS, share of the measured FMA peak and, where built with it, the ratio
// to OpenBLAS in the same run. Arguments: words that a row's name must contain one of.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "backends/cpu/kernels/gemm.h"
#include "kernel_runner.h"

#ifdef STOKER_HAVE_OPENBLAS
extern "C" {
void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda,
                 const float* b, int ldb, float beta, float* c, int ldc);
void openblas_set_num_threads(int threads);
}
#endif

namespace stoker::cpu {
namespace {

// The best of several runs, each long enough for the clock: the machine's noise only ever adds.
double seconds(const std::function<void()>& body) {
  using Clock = std::chrono::steady_clock;
  const auto once = [&](int times) {
    const auto start = Clock::now();
    for (int i = 0; i < times; ++i) body();
    return std::chrono::duration<double>(Clock::now() - start).count() / times;
  };
  once(1);
  const int times = std::clamp(static_cast<int>(0.01 / once(1)), 1, 1000);
  double best = once(times);
  const int repeats = std::clamp(static_cast<int>(0.2 / (best * times)), 3, 20);
  for (int i = 0; i < repeats; ++i) best = std::min(best, once(times));
  return best;
}

// The peak is what the micro-kernel itself does on one tile's operands that stay in L1.
double measure_peak(int threads) {
  constexpr std::int64_t kDepth = 192;
  constexpr int kTimes = 2000;
  const GemmTile tile = gemm_tile();
  ThreadPool pool(threads);
  std::vector<Tensor> memory;
  for (int i = 0; i < 3 * threads; ++i) memory.emplace_back(Shape{kDepth * 64}).fill(1);
  const double time = seconds([&] {
    pool.run(threads, [&](std::int64_t task, int) {
      const auto at = [&](int i) { return memory[static_cast<std::size_t>(3 * task + i)].span().data(); };
      for (int i = 0; i < kTimes; ++i) {
        gemm_block({.m = tile.rows,
                    .n = tile.columns,
                    .k = kDepth,
                    .a = at(0),
                    .a_row = 1,
                    .a_k = tile.rows,
                    .b = at(1),
                    .b_k = tile.columns,
                    .c = at(2),
                    .c_row = tile.columns});
      }
    });
  });
  return 2e-9 * static_cast<double>(tile.rows * tile.columns * kDepth) * kTimes * threads / time;
}

struct Bench {
  double peak[3] = {0, 0, 0};
  std::vector<std::string> filter;

  [[nodiscard]] bool wants(const std::string& name) const {
    return filter.empty() ||
           std::ranges::any_of(filter, [&](const std::string& word) { return name.find(word) != std::string::npos; });
  }

  void row(const std::string& name, int threads, double flops, double time, double other) const {
    const double gflops = flops / time * 1e-9;
    std::printf("%-44s %d  %9.3f ms  %7.1f GFLOPS  %5.1f %% of peak", name.c_str(), threads, time * 1e3, gflops,
                100 * gflops / peak[threads]);
    if (other > 0) std::printf("  OpenBLAS %7.1f  ratio %.2f", flops / other * 1e-9, other / time);
    std::printf("\n");
    std::fflush(stdout);
  }

  void matmul(std::int64_t m, std::int64_t n, std::int64_t k, bool tx, bool ty, bool compare) const {
    const std::string name = str("matmul ", tx ? "T" : "N", ty ? "T" : "N", " ", m, "x", n, "x", k);
    if (!wants(name)) return;
    Tensor x(tx ? Shape{k, m} : Shape{m, k});
    Tensor y(ty ? Shape{n, k} : Shape{k, n});
    Tensor z(Shape{m, n});
    x.fill(1);
    y.fill(2);
    const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    for (int threads = 1; threads <= 2; ++threads) {
      double other = 0;
#ifdef STOKER_HAVE_OPENBLAS
      if (compare) {
        openblas_set_num_threads(threads);
        const auto i = [](std::int64_t v) { return static_cast<int>(v); };
        other = seconds([&] {
          cblas_sgemm(101, tx ? 112 : 111, ty ? 112 : 111, i(m), i(n), i(k), 1.0F, x.span().data(), i(tx ? m : k),
                      y.span().data(), i(ty ? k : n), 0.0F, z.span().data(), i(n));
        });
      }
#endif
      const Tensor* inputs[] = {&x, &y};
      const Tensor* outputs[] = {&z};
      KernelRunner runner(find_kernel(matmul_kernels(), "matmul"), inputs,
                          {{"transpose_x", std::int64_t{tx}}, {"transpose_y", std::int64_t{ty}}}, outputs, threads);
      row(name, threads, flops, seconds([&] { runner.run(); }), compare ? other : 0);
    }
  }

  // A convolution with "same" padding in all three directions; `winograd` < 0 leaves the choice to the kernel.
  void conv(std::int64_t n, std::int64_t size, std::int64_t c_in, std::int64_t c_out, std::int64_t k,
            std::int64_t stride, std::int64_t winograd) const {
    const std::int64_t out = (size + stride - 1) / stride;
    const std::int64_t pad = k / 2;
    Tensor tensors[] = {Tensor(Shape{n, size, size, c_in}), Tensor(Shape{k, k, c_in, c_out}),
                        Tensor(Shape{n, out, out, c_out})};
    for (Tensor& t : tensors) t.fill(1);
    Attrs attrs{{"stride", Ints{stride, stride}},
                {"pad", Ints{pad, pad, pad, pad}},
                {"dilation", Ints{1, 1}},
                {"groups", std::int64_t{1}},
                {"input_shape", Ints{n, size, size, c_in}},
                {"weight_shape", Ints{k, k, c_in, c_out}}};
    if (winograd >= 0) attrs.set("winograd", winograd);
    const double flops = 2.0 * static_cast<double>(n * out * out * c_out * c_in * k * k);
    const char* const kOps[] = {"conv2d", "conv2d_input_grad", "conv2d_weight_grad"};
    const int operands[][3] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}};
    for (int part = 0; part < 3; ++part) {
      const std::string name = str(kOps[part], " ", k, "x", k, "/", stride, " ", n, "x", size, "x", size, "x", c_in,
                                   "->", c_out, winograd < 0 ? "" : str(" w", winograd));
      if (!wants(name)) continue;
      const Tensor* inputs[] = {&tensors[operands[part][0]], &tensors[operands[part][1]]};
      const Tensor* outputs[] = {&tensors[operands[part][2]]};
      for (int threads = 1; threads <= 2; ++threads) {
        KernelRunner runner(find_kernel(conv2d_kernels(), kOps[part]), inputs, attrs, outputs, threads);
        row(name, threads, flops, seconds([&] { runner.run(); }), 0);
      }
    }
  }
};

void run(const Bench& bench) {
  // resnet18-32's convolutions at batch 64, then lenet5's and resnet18-224's first.
  const std::int64_t resnet[][5] = {{32, 3, 64, 3, 1},   {32, 64, 64, 3, 1},   {32, 64, 128, 3, 2},
                                    {32, 64, 128, 1, 2}, {16, 128, 128, 3, 1}, {16, 128, 256, 3, 2},
                                    {8, 256, 256, 3, 1}, {8, 256, 512, 3, 2},  {4, 512, 512, 3, 1}};
  for (const auto& [size, c_in, c_out, k, stride] : resnet) {
    const bool plain = k == 3 && stride == 1 && c_in > 3;
    for (const std::int64_t winograd : {-1, 0, 1, 2}) {
      if (winograd < 0 || plain) bench.conv(64, size, c_in, c_out, k, stride, winograd);
    }
  }
  bench.conv(64, 28, 1, 32, 5, 1, -1);
  bench.conv(64, 14, 32, 64, 5, 1, -1);
  bench.conv(8, 224, 3, 64, 7, 2, -1);

  for (const std::int64_t size : {256, 512, 1024, 2048}) {
    bench.matmul(size, size, size, false, false, true);
    bench.matmul(size, size, size, false, true, true);
    bench.matmul(size, size, size, true, false, true);
  }
  // The mlp net's products at batch 32: forward, input gradient, weight gradient.
  const std::int64_t layers[][2] = {{784, 256}, {256, 128}, {128, 16}};
  for (const auto& [in, out] : layers) {
    bench.matmul(32, out, in, false, true, true);
    bench.matmul(32, in, out, false, false, true);
    bench.matmul(out, in, 32, true, false, true);
  }
  // The GPT's: rows x (qkv, projection, mlp), and their weight gradients.
  for (const auto& [in, out] : {std::pair{128, 384}, std::pair{128, 512}, std::pair{512, 128}}) {
    bench.matmul(2048, out, in, false, true, true);
    bench.matmul(out, in, 2048, true, false, true);
  }
  // mobilenetv2-32's pointwise convolutions as products.
  const std::int64_t pointwise[][3] = {{65536, 16, 32},  {65536, 96, 16},  {65536, 24, 96},  {65536, 144, 24},
                                       {65536, 24, 144}, {16384, 32, 144}, {16384, 192, 32}, {4096, 384, 64},
                                       {4096, 64, 384},  {4096, 576, 96},  {1024, 960, 160}, {1024, 320, 960},
                                       {1024, 1280, 320}};
  for (const auto& [m, n, k] : pointwise) {
    bench.matmul(m, n, k, false, false, true);
    bench.matmul(m, k, n, false, true, true);
    bench.matmul(k, n, m, true, false, true);
  }
}

}  // namespace
}  // namespace stoker::cpu

int main(int argc, char** argv) {
  stoker::cpu::Bench bench;
  for (int i = 1; i < argc; ++i) bench.filter.emplace_back(argv[i]);
  for (int threads = 1; threads <= 2; ++threads) {
    bench.peak[threads] = stoker::cpu::measure_peak(threads);
    std::printf("FMA peak, %d thread(s): %.1f GFLOPS\n", threads, bench.peak[threads]);
  }
  stoker::cpu::run(bench);
  return 0;
}
