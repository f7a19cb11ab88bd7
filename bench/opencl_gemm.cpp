// Matrix products on the CPU backend, an OpenCL device and, where built with it, CLBlast on that device, in turns in
// one run: GFLOPS, and the ratios to the CPU backend.
//   bench_opencl_gemm [DEVICE (opencl)] [SIZES like 512 or 32x784x256 ...]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "base/error.h"
#include "graph/builder.h"
#include "graph_runner.h"
#include "ops/ops.h"

#ifdef STOKER_HAVE_CLBLAST
#include "opencl_gemm_clblast.h"
#endif

namespace {

using namespace stoker;

struct Sizes {
  std::int64_t m = 0, n = 0, k = 0;

  [[nodiscard]] double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

// A product ready to run many times.
class Product {
 public:
  Product(Backend& backend, const Sizes& size, bool tx, bool ty) : backend_(backend) {
    GraphBuilder b;
    const Value x = ops::input(b, "x", {DType::f32, tx ? Shape{size.k, size.m} : Shape{size.m, size.k}});
    const Value y = ops::input(b, "y", {DType::f32, ty ? Shape{size.n, size.k} : Shape{size.k, size.n}});
    b.set_output("z", ops::matmul(b, x, y, tx, ty));
    plan_ = make_plan(run_passes(std::move(b).finish(), backend.target()), backend.target());
    arena_ = backend.allocate(plan_.arena_bytes);
    Bindings bindings{.arena = arena_.get()};
    for (int slot = 0; slot < backend.batch_slots(); ++slot) {
      std::vector<Memory*>& batch = bindings.batches.emplace_back();
      for (const NamedValue& input : plan_.graph.inputs) batch.push_back(filled(plan_.graph.spec(input.value)));
    }
    executable_ = backend.compile(plan_, bindings);
    run(1);
  }

  void run(int times) {
    for (int i = 0; i < times; ++i) executable_->run(0);
    std::byte last[4];
    backend_.download(*arena_, plan_.outputs[0].offset, last);  // waits
  }

 private:
  Memory* filled(const Spec& spec) {
    Memory* memory = batches_.emplace_back(backend_.allocate(spec.bytes(), MemoryKind::batch)).get();
    std::vector<double> values(static_cast<std::size_t>(spec.shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 17) / 17.0 - 0.5;
    std::ranges::copy(test::packed(spec.dtype, values), backend_.map(*memory).begin());
    backend_.unmap(*memory);
    return memory;
  }

  Backend& backend_;
  Plan plan_;
  std::unique_ptr<Memory> arena_;
  std::vector<std::unique_ptr<Memory>> batches_;
  std::unique_ptr<Executable> executable_;
};

// The best time of one product over rounds in which the sides take turns.
std::vector<double> measure(const std::vector<std::function<void(int)>>& sides) {
  constexpr int kRounds = 8;
  using Clock = std::chrono::steady_clock;
  std::vector<double> best(sides.size(), 1e30);
  std::vector<int> times(sides.size(), 1);
  for (int round = 0; round <= kRounds; ++round) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const auto start = Clock::now();
      sides[i](times[i]);
      const double each = std::chrono::duration<double>(Clock::now() - start).count() / times[i];
      best[i] = std::min(best[i], each);
      times[i] = std::clamp(static_cast<int>(0.03 / each), 1, 1000);
    }
  }
  return best;
}

void row(Backend& cpu, Backend& device, [[maybe_unused]] const std::string& id, const Sizes& size, bool tx, bool ty) {
  Product on_cpu(cpu, size, tx, ty);
  Product on_device(device, size, tx, ty);
  std::vector<std::function<void(int)>> sides = {[&](int times) { on_cpu.run(times); },
                                                 [&](int times) { on_device.run(times); }};
#ifdef STOKER_HAVE_CLBLAST
  ClblastProduct other(id, size.m, size.n, size.k, tx, ty);
  sides.emplace_back([&](int times) { other.run(times); });
#endif
  const std::vector<double> seconds = measure(sides);
  const auto gflops = [&](std::size_t side) { return size.flops() / seconds[side] * 1e-9; };
  std::printf("%s%s %5lldx%lldx%lld  %9.3f ms  cpu %7.1f  opencl %7.1f GFLOPS  ratio %.2f", tx ? "T" : "N",
              ty ? "T" : "N", static_cast<long long>(size.m), static_cast<long long>(size.n),
              static_cast<long long>(size.k), 1e3 * seconds[1], gflops(0), gflops(1), seconds[0] / seconds[1]);
  if (seconds.size() > 2) std::printf("  CLBlast %7.1f", gflops(2));
  std::printf("\n");
  std::fflush(stdout);
}

Sizes parse(const std::string& text) {
  Sizes size;
  long long m = 0;
  long long n = 0;
  long long k = 0;
  const int read = std::sscanf(text.c_str(), "%lldx%lldx%lld", &m, &n, &k);
  require(read == 1 || read == 3, Code::bad_argument, "a size is 512 or 32x256x784 (M x N x K), not ", text);
  return read == 1 ? Sizes{m, m, m} : Sizes{m, n, k};
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string id = argc > 1 ? argv[1] : "opencl";
    std::vector<Sizes> sizes;
    for (int i = 2; i < argc; ++i) sizes.push_back(parse(argv[i]));
    if (sizes.empty()) sizes = {{256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}};
    const std::unique_ptr<Backend> cpu = make_backend("cpu", {.threads = 2});
    const std::unique_ptr<Backend> device = make_backend(id, {.self_test = false});
    std::printf("%s; the CPU backend with 2 threads; M x N x K\n", device->describe().name.c_str());
    for (const Sizes& size : sizes) {
      row(*cpu, *device, id, size, false, false);
      row(*cpu, *device, id, size, false, true);
      row(*cpu, *device, id, size, true, false);
    }
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
