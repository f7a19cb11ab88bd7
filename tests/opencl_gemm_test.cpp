// Matrix products on the OpenCL devices of this machine against the reference: all layouts, batched, odd sizes, with
// prologues, epilogues and sums, K in parts; the plain kernel, and the others with the parameters of CPUs and of
// phones' GPUs.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/opencl/kernels/gemm.h"
#include "backends/opencl/opencl_backend.h"
#include "base/error.h"
#include "base/random.h"
#include "devices.h"
#include "graph_runner.h"
#include "ops/evaluate.h"
#include "ops/ops.h"

namespace stoker::test {
namespace {

struct Case {
  Shape x, y;
  bool transpose_x = false, transpose_y = false;
  bool fused = false;  // with prologues on both sides, and an epilogue with two sums
};

const std::vector<Case> kCases = {
    {{1, 1}, {1, 1}},
    {{7, 5}, {5, 3}},
    {{13, 37}, {37, 33}},
    {{64, 64}, {64, 64}},
    {{24, 96}, {96, 64}},
    {{32, 300}, {10, 300}, false, true},
    {{33, 260}, {65, 260}, false, true},
    {{64, 36}, {64, 68}, true, false},
    {{9, 30}, {9, 17}, true, false},
    {{200, 16}, {16, 40}},
    {{4096, 12}, {4096, 20}, true, false},  // K in parts
    {{4099, 10}, {4099, 7}, true, false},
    {{300, 260}, {260, 130}},  // several macro-tiles
    {{3, 5, 8}, {3, 8, 12}},
    {{3, 5, 7}, {3, 9, 7}, false, true},
    {{3, 8, 8}, {3, 8, 4}, true, false},
    {{3, 5, 8}, {8, 12}},
    {{8, 5}, {3, 8, 12}, true, false},
};

std::string name_of(const Case& c) {
  return str(c.x, c.transpose_x ? "^T " : " ", c.y, c.transpose_y ? "^T" : "", c.fused ? " fused" : "");
}

RefTensor random_tensor(const Shape& shape, Random& random) {
  RefTensor tensor{shape, std::vector<double>(static_cast<std::size_t>(shape.elements()))};
  for (double& value : tensor.data) value = random.uniform() - 0.5;
  return tensor;
}

Graph graph_of(const Case& c, std::vector<Shape>& inputs) {
  GraphBuilder b;
  const auto input = [&](const Shape& shape) {
    inputs.push_back(shape);
    return ops::input(b, str("x", inputs.size()), {DType::f32, shape});
  };
  Value x = input(c.x);
  Value y = input(c.y);
  if (!c.fused) {
    b.set_output("z", ops::matmul(b, x, y, c.transpose_x, c.transpose_y));
    return std::move(b).finish();
  }
  x = ops::relu(b, ops::add(b, ops::mul(b, x, input({c.x[-1]})), input({c.x[-1]})));
  y = ops::add(b, y, ops::mul(b, input(c.y), 0.5F));
  const Value product = ops::matmul(b, x, y, c.transpose_x, c.transpose_y);
  const Value z = ops::add(b, product, input({b.shape(product)[-1]}));
  std::vector<std::int64_t> rows;
  for (int i = 0; i + 1 < b.shape(z).rank(); ++i) rows.push_back(i);
  b.set_output("z", ops::relu(b, z));
  b.set_output("sum", ops::reduce_sum(b, z, rows));
  b.set_output("squares", ops::reduce_sum(b, ops::mul(b, z, z), rows));
  return std::move(b).finish();
}

void expect_right(Backend& backend, const Case& c, const std::string& what) {
  std::vector<Shape> shapes;
  const Graph graph = graph_of(c, shapes);
  Random random(3);
  std::vector<RefTensor> inputs;
  for (const Shape& shape : shapes) inputs.push_back(random_tensor(shape, random));
  std::vector<RefTensor> none;
  const std::vector<RefTensor> expected = evaluate_reference(graph, inputs, none);
  const std::vector<RefTensor> actual = run_on(backend, graph, inputs, none);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    double scale = 1;
    for (const double value : expected[i].data) scale = std::max(scale, std::abs(value));
    for (std::size_t k = 0; k < expected[i].data.size(); ++k) {
      ASSERT_NEAR(expected[i].data[k], actual[i].data[k], 2e-5 * scale)
          << what << ", " << name_of(c) << ", output " << i << ", element " << k;
    }
  }
}

class OpenClGemm : public ::testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OpenClGemm);
INSTANTIATE_TEST_SUITE_P(Devices, OpenClGemm, ::testing::ValuesIn(testing::opencl_ids()),
                         [](const auto& row) { return testing::as_test_name(row.param); });

enum class Forms { plain, fused, both };

// Every case with these parameters; with none, the plain kernel.
void expect_all_right(const std::string& device, const opencl::Params& params, Forms forms) {
  const std::unique_ptr<opencl::ClBackend> backend = opencl::make_seeded_backend(device, {});
  if (params.empty()) {
    backend->tuning().quarantine("gemm");
  } else {
    backend->tuning().set("gemm", "", params);
  }
  for (Case c : kCases) {
    for (const bool fused : {false, true}) {
      if (forms == (fused ? Forms::plain : Forms::fused)) continue;
      c.fused = fused;
      expect_right(*backend, c, opencl::to_string(params));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST_P(OpenClGemm, plain_kernel_matches_the_reference) { expect_all_right(GetParam(), {}, Forms::fused); }

TEST_P(OpenClGemm, seed_matches_the_reference) {
  const std::unique_ptr<opencl::ClBackend> backend = opencl::make_seeded_backend(GetParam(), {});
  expect_all_right(GetParam(), opencl::find_seed("gemm", backend->device())->params, Forms::both);
}

TEST_P(OpenClGemm, small_panels_match_the_reference) {
  const std::unique_ptr<opencl::ClBackend> backend = opencl::make_seeded_backend(GetParam(), {});
  if (backend->device().quirks.short_loops) GTEST_SKIP() << "no kernel with long loops is right here: see quirks.cpp";
  expect_all_right(GetParam(), {{"V", 4}, {"NV", 2}, {"MR", 6}, {"KC", 64}, {"MC", 24}, {"NC", 16}}, Forms::fused);
}

TEST_P(OpenClGemm, the_kernel_of_gpus_matches_the_reference_through_buffers) {
  expect_all_right(GetParam(), {{"TM", 4}, {"TN", 4}, {"IMAGE", 0}, {"GX", 8}, {"GY", 4}}, Forms::fused);
}

TEST_P(OpenClGemm, the_kernel_of_gpus_matches_the_reference_through_images) {
  expect_all_right(GetParam(), {{"TM", 4}, {"TN", 8}, {"IMAGE", 3}, {"GX", 4}, {"GY", 8}}, Forms::plain);
}

}  // namespace
}  // namespace stoker::test
