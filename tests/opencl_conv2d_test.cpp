// OpenCL's convolution kernels against the references: each family of kernels with the parameters of each kind of
// device, whatever device runs them, on odd shapes, plain and fused.
#include <gtest/gtest.h>

#include <array>

#include "backends/opencl/opencl_backend.h"
#include "base/error.h"
#include "base/random.h"
#include "devices.h"
#include "graph/builder.h"
#include "graph_runner.h"
#include "ops/common.h"
#include "ops/evaluate.h"
#include "ops/ops.h"
#include "ops/window.h"

namespace stoker::test {
namespace {

struct Case {
  Shape x;
  Shape w;
  ops::Window window;
  std::int64_t groups = 1;
  bool fused = false;     // tried with prologue and epilogue, too: each case is a program of its own
  bool winograd = false;  // for Winograd
};

const std::vector<Case> kCases = {
    {{2, 8, 8, 16}, {3, 3, 16, 32}, {.pad = {1, 1, 1, 1}}, 1, true},
    {{3, 6, 10, 24}, {3, 3, 24, 40}, {.stride = {2, 2}, .pad = {1, 1, 1, 1}}, 1, true},
    {{2, 9, 7, 8}, {1, 1, 8, 16}, {.stride = {2, 2}}},
    {{2, 9, 11, 1}, {5, 5, 1, 20}, {}},
    {{2, 8, 9, 20}, {5, 5, 20, 50}, {}, 1, true},
    {{2, 9, 8, 3}, {3, 3, 3, 32}, {.pad = {1, 1, 1, 1}}},
    {{1, 15, 13, 3}, {7, 7, 3, 16}, {.stride = {2, 2}, .pad = {3, 3, 3, 3}}},
    {{2, 7, 5, 3}, {3, 3, 3, 7}, {.pad = {1, 1, 1, 1}}, 1, true},
    {{1, 7, 7, 5}, {2, 3, 5, 3}, {.stride = {2, 1}, .pad = {0, 1, 2, 0}}},
    {{1, 9, 9, 4}, {3, 3, 4, 12}, {.pad = {2, 2, 2, 2}, .dilation = {2, 2}}},
    {{1, 9, 9, 4}, {3, 3, 4, 4}, {.stride = {2, 2}, .pad = {2, 2, 2, 2}, .dilation = {2, 2}}},
    {{1, 4, 17, 4}, {1, 2, 4, 4}, {.stride = {1, 3}, .pad = {0, 1, 0, 0}}},
    {{2, 6, 5, 8}, {3, 3, 4, 12}, {.pad = {1, 1, 1, 1}}, 2},
    {{1, 4, 4, 64}, {3, 3, 64, 64}, {.pad = {1, 1, 1, 1}}},
    // Enough images for CPUs to add up input gradients in local memory, whole tiles of 12, 10, 9 and 8 rows.
    {{9, 12, 12, 20}, {5, 5, 20, 50}, {}, 1, true},
    {{8, 11, 13, 4}, {3, 3, 4, 20}, {.stride = {2, 2}, .pad = {1, 0, 0, 1}}},
    {{8, 9, 12, 3}, {3, 3, 3, 36}, {.pad = {2, 1, 2, 1}, .dilation = {2, 1}}, 1, true},
    {{8, 7, 10, 4}, {2, 3, 4, 16}, {.pad = {0, 2, 0, 0}, .dilation = {1, 2}}},
    // Winograd: tiles that hang over the edge, in several blocks and passes with the parameters below.
    {{2, 9, 7, 32}, {3, 3, 32, 144}, {.pad = {1, 1, 1, 1}}, 1, true, true},
    {{1, 8, 14, 80}, {3, 3, 80, 16}, {.pad = {0, 2, 1, 0}}, 1, true, true},
    {{3, 3, 4, 16}, {3, 3, 16, 16}, {.pad = {2, 0, 0, 2}}, 1, false, true},
};

constexpr std::array kParts = {"conv2d", "conv2d_input_grad", "conv2d_weight_grad"};

struct Tensors {
  Shape a, b, result;
};

Tensors tensors(const Case& c, std::size_t part) {
  const ops::Geometry g = ops::geometry_of("case", c.x, c.w[0], c.w[1], c.window);
  const Shape y{g.N, g.OH, g.OW, c.w[3]};
  if (part == 0) return {c.x, c.w, y};
  return part == 1 ? Tensors{y, c.w, c.x} : Tensors{c.x, y, c.w};
}

Value convolve(GraphBuilder& b, const Case& c, std::size_t part, Value x, Value y) {
  Attrs attrs;
  ops::set_window(attrs, c.window);
  attrs.set("groups", c.groups);
  if (part == 1) attrs.set("input_shape", ops::to_ints(c.x));
  if (part == 2) attrs.set("weight_shape", ops::to_ints(c.w));
  return ops::make(b, kParts[part], {x, y}, std::move(attrs));
}

Value input(GraphBuilder& b, const char* name, const Shape& shape) { return ops::input(b, name, {DType::f32, shape}); }

Graph plain_graph(const Case& c, std::size_t part) {
  const Tensors t = tensors(c, part);
  GraphBuilder b;
  b.set_output("y", convolve(b, c, part, input(b, "a", t.a), input(b, "b", t.b)));
  return std::move(b).finish();
}

// relu(a * scale + shift) for an operand; y + extra stored, y and y^2 summed per channel: what batch norm brings.
Value affine(GraphBuilder& b, Value x, const std::string& name) {
  const Shape channels{b.shape(x)[-1]};
  const Value scaled = ops::mul(b, x, input(b, (name + ".scale").c_str(), channels));
  return ops::relu(b, ops::add(b, scaled, input(b, (name + ".shift").c_str(), channels)));
}

Graph fused_graph(const Case& c, std::size_t part) {
  const Tensors t = tensors(c, part);
  GraphBuilder b;
  const Value x = affine(b, input(b, "a", t.a), "a");
  const Value w = input(b, "b", t.b);
  const Value y = convolve(b, c, part, x, part == 2 ? affine(b, w, "b") : w);
  b.set_output("y", ops::add(b, y, input(b, "extra", t.result)));
  b.set_output("sum", ops::reduce_sum(b, y, {0, 1, 2}));
  b.set_output("squares", ops::reduce_sum(b, ops::mul(b, y, y), {0, 1, 2}));
  return std::move(b).finish();
}

std::vector<RefTensor> random_inputs(const Graph& graph) {
  Random random(7);
  std::vector<RefTensor> inputs;
  for (const NamedValue& named : graph.inputs) {
    const Shape& shape = graph.spec(named.value).shape;
    RefTensor tensor{shape, std::vector<double>(static_cast<std::size_t>(shape.elements()))};
    for (double& value : tensor.data) value = static_cast<float>(random.uniform() - 0.5);
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

void expect_near(const std::vector<RefTensor>& want, const std::vector<RefTensor>& got, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(want.size(), got.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    double scale = 1e-3;
    for (const double value : want[i].data) scale = std::max(scale, std::abs(value));
    for (std::size_t k = 0; k < want[i].data.size(); ++k)
      ASSERT_NEAR(want[i].data[k], got[i].data[k], tolerance * scale) << what << ", output " << i << ", element " << k;
  }
}

// A set of parameters, as a kind of device has them. None: the seeds of the device at hand.
struct Kernels {
  const char* name;
  std::vector<std::pair<const char*, opencl::Params>> params;  // by kernel
  bool winograd = false;                                       // tried with the cases for Winograd
  bool others = true;                                          // tried with the other cases
};

std::vector<Kernels> all_kernels() {
  const opencl::Params patches{{"PANEL", 1}, {"LOCAL", 0}};
  // Winograd wherever it fits, with blocks of a few tiles and passes of a few channels.
  const opencl::Params whole{{"VEC", 4}, {"LX", 0}, {"KB", 256}, {"INTENSITY", 0}};
  const opencl::Params shared{{"VEC", 1}, {"LX", 16}, {"KB", 256}, {"INTENSITY", 0}};
  std::vector<Kernels> list{{"seeds", {}},
                            {"patches", {{"conv2d", patches}, {"conv2d_weight", patches}, {"winograd", whole}}, true},
                            {"plain", {{"conv2d", {}}, {"conv2d_weight", {}}, {"gemm", {}}, {"winograd", {}}}},
                            {"plain products", {{"gemm", {}}, {"winograd", shared}}, true, false}};
  for (const auto& [name, family] : {std::pair("adreno", opencl::Family::adreno), {"mali", opencl::Family::mali}}) {
    opencl::Device phone;
    phone.family = family;
    Kernels kernels{name, {}, family == opencl::Family::adreno};
    if (kernels.winograd) kernels.params.emplace_back("winograd", shared);
    for (const char* kernel : {"conv2d", "conv2d_weight", "gemm"})
      kernels.params.emplace_back(kernel, opencl::find_seed(kernel, phone)->params);
    list.push_back(std::move(kernels));
  }
  return list;
}

class OpenClConv2d : public ::testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OpenClConv2d);
INSTANTIATE_TEST_SUITE_P(Devices, OpenClConv2d, ::testing::ValuesIn(testing::opencl_ids()),
                         [](const auto& test) { return testing::as_test_name(test.param); });

void check(const std::string& device, bool fused) {
  for (const Kernels& kernels : all_kernels()) {
    const auto backend = opencl::make_seeded_backend(device, {});
    for (const auto& [kernel, params] : kernels.params) backend->tuning().set(kernel, "", params);
    for (const Case& c : kCases) {
      if ((fused && !c.fused) || !(c.winograd ? kernels.winograd : kernels.others)) continue;
      for (std::size_t part = 0; part < kParts.size(); ++part) {
        const Graph graph = fused ? fused_graph(c, part) : plain_graph(c, part);
        const std::vector<RefTensor> inputs = random_inputs(graph);
        std::vector<RefTensor> states;
        const std::vector<RefTensor> want = evaluate_reference(graph, inputs, states);
        const std::string what = str(kernels.name, " ", kParts[part], " ", to_string(c.x), " ", to_string(c.w));
        expect_near(want, run_on(*backend, graph, inputs, states), kernels.winograd ? 2e-5 : 1e-5, what);
      }
    }
  }
}

TEST_P(OpenClConv2d, matches_the_reference_with_the_parameters_of_every_family) { check(GetParam(), false); }

TEST_P(OpenClConv2d, takes_prologues_and_epilogues_with_the_parameters_of_every_family) { check(GetParam(), true); }

}  // namespace
}  // namespace stoker::test
