// Matrix products on a backend: x [M, K] times W^T, W being [N, K], as a fully connected layer has them.
#include <chrono>
#include <random>

#include "backends/run_graph.h"
#include "graph/builder.h"
#include "ops/ops.h"
#include "passes/pass.h"
#include "study/measure.h"

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kPatience = 10.0;  // a first run that takes so many times `seconds` is the only one

Bytes random_bytes(std::int64_t floats, unsigned seed) {
  std::minstd_rand random(seed);
  std::uniform_real_distribution<float> between(-1.0F, 1.0F);
  std::vector<float> values(static_cast<std::size_t>(floats));
  for (float& value : values) value = between(random);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

Plan product(const MatmulRow& row, Backend& backend) {
  GraphBuilder b;
  const Value x = ops::input(b, "x", {DType::f32, {row.m, row.k}});
  const Value w = ops::input(b, "w", {DType::f32, {row.n, row.k}});
  b.set_output("y", ops::matmul(b, x, w, false, true));
  return make_plan(run_passes(std::move(b).finish(), backend.target(), {}), backend.target());
}

// Seconds of one product, many of them one after the other and one wait at the end.
double product_seconds(const MatmulRow& row, Backend& backend, double seconds) {
  const std::vector<Bytes> inputs{random_bytes(row.m * row.k, 1), random_bytes(row.n * row.k, 2)};
  GraphRun run(backend, product(row, backend), inputs);
  const auto timed = [&](int times) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < times; ++i) run.run();
    run.wait();
    return std::chrono::duration<double>(Clock::now() - start).count() / times;
  };
  static_cast<void>(timed(1));  // some devices compile a kernel when it first runs
  const double once = timed(1);
  if (once > kPatience * seconds) return once;
  const int times = std::max(1, static_cast<int>(std::min(seconds / 3 / once, 1000.0)));
  return std::min({timed(times), timed(times), timed(times)});
}

}  // namespace

void measure_matmul(MatmulRow& row, Backend& cpu, Backend& mnn, Backend& tuned, double seconds) {
  const double gigaflops = 2e-9 * static_cast<double>(row.m) * static_cast<double>(row.n) * static_cast<double>(row.k);
  row.cpu = gigaflops / product_seconds(row, cpu, seconds);
  row.tuned = gigaflops / product_seconds(row, tuned, seconds);
  row.mnn = gigaflops / product_seconds(row, mnn, seconds);
}

}  // namespace stoker
