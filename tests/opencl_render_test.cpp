// Rendered expressions on every OpenCL device, in vectors of every width, against the plain evaluator: NaN, infinities
// and random bits included.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "backends/opencl/api.h"
#include "backends/opencl/devices.h"
#include "backends/opencl/render.h"
#include "base/error.h"
#include "base/random.h"

namespace stoker::opencl {
namespace {

constexpr int kElements = 256;
constexpr int kInputs = 5;  // three tensors, a seed and a step
constexpr std::int32_t kSeed = 123456789;
constexpr std::int32_t kStep = 16777217;  // no float holds it
constexpr int kFirstElement = 3;

// The instructions from `first` to before `last`: on tensors, and with a constant on either side.
Expr instructions(ExprOp first, ExprOp last) {
  ExprBuilder e;
  std::vector<int> outputs;
  const int x[] = {e.input(0), e.input(1), e.input(2)};
  for (int op = static_cast<int>(first); op < static_cast<int>(last); ++op) {
    const auto code = static_cast<ExprOp>(op);
    const int operands = arity(code);
    outputs.push_back(e.emit(code, x[0], operands > 1 ? x[1] : -1, operands > 2 ? x[2] : -1));
    if (operands != 2) continue;
    outputs.push_back(e.emit(code, x[0], e.constant(0.5F)));
    outputs.push_back(e.emit(code, e.constant(-0.25F), x[1]));
    if (code >= ExprOp::eq) outputs.push_back(e.select(e.emit(code, x[0], x[1]), x[2], x[1]));
  }
  if (last == ExprOp::uniform) outputs.push_back(e.emit(ExprOp::uniform, e.input(3), e.input(4), -1, 77.0F));
  return e.finish(outputs, kInputs);
}

// Numbers that formulas trip over, each against each, then random ones. No denormals: devices may flush them.
std::vector<std::vector<float>> tensors() {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kSpecial[] = {0.0F, -0.0F, kInf, -kInf, kNan, 1.0F, -1.0F, 0.5F, 2.0F, 6.0F, -30.0F};
  constexpr std::size_t kCount = std::size(kSpecial);
  std::vector<std::vector<float>> all(3, std::vector<float>(kElements));
  Random random(4);
  for (std::size_t i = 0; i < kElements; ++i) {
    const bool special = i < kCount * kCount;
    all[0][i] = special ? kSpecial[i % kCount] : random.uniform(-4, 4);
    all[1][i] = special ? kSpecial[i / kCount] : random.uniform(-4, 4);
    all[2][i] = random.uniform(-4, 4);
  }
  return all;
}

std::string program_text(const Expr& expr, int width, bool aligned) {
  const std::string type = vector_type("float", width);
  std::vector<OperandText> operands;
  for (const char* tensor : {"a", "b", "c"})
    operands.push_back({load_text(DType::f32, tensor, "i", width, aligned), {}});
  for (const char* number : {"numbers[0]", "numbers[1]"})
    operands.push_back({str("(", type, ")((float)", number, ")"), number});
  std::vector<std::string> results;
  std::string stores;
  for (std::size_t j = 0; j < expr.outputs.size(); ++j) {
    results.push_back(str("const ", type, " y", j));
    const std::string at = str(j * kElements, " + i");
    stores += store_text(DType::f32, "out", at, str("y", j), width, aligned) + "\n";
  }
  return str(render_prelude(expr, std::span(&width, 1)),
             "kernel void run(global const float* a, global const float* b, global const float* c, global const int* "
             "numbers, global float* out) {\n  const int i = (int)get_global_id(0) * ",
             width, ";\n", render_body(expr, operands, results, width, str("i + ", kFirstElement)), stores, "}\n");
}

class DeviceRun {
 public:
  explicit DeviceRun(const OpenedDevice& device, const std::shared_ptr<const Library>& library)
      : api_(library),
        id_(device.id),
        context_(api_.create_context(id_)),
        queue_(api_.create_queue(context_.get(), id_, false)) {}

  std::vector<float> run(const std::string& source, const std::vector<std::vector<float>>& x, std::size_t results,
                         int width) {
    const Handle<cl_program> program =
        api_.build_from_source(context_.get(), id_, source, "-cl-std=CL1.2 -cl-mad-enable");
    const Handle<cl_kernel> kernel = api_.create_kernel(program.get(), "run");
    const std::int32_t numbers[] = {kSeed, kStep};
    std::vector<Handle<cl_mem>> buffers;
    for (const std::vector<float>& tensor : x) add(buffers, std::as_bytes(std::span(tensor)));
    add(buffers, std::as_bytes(std::span(numbers)));
    std::vector<float> out(results * kElements);
    add(buffers, std::as_bytes(std::span(out)));
    for (std::size_t k = 0; k < buffers.size(); ++k) {
      const cl_mem buffer = buffers[k].get();
      api_.set_arg(kernel.get(), static_cast<int>(k), sizeof(cl_mem), &buffer);
    }
    api_.enqueue_kernel(queue_.get(), kernel.get(), {static_cast<std::size_t>(kElements / width), 1, 1}, {1, 1, 1});
    api_.read(queue_.get(), buffers.back().get(), 0, std::as_writable_bytes(std::span(out)), true);
    return out;
  }

 private:
  void add(std::vector<Handle<cl_mem>>& buffers, std::span<const std::byte> bytes) {
    buffers.push_back(api_.create_buffer(context_.get(), CL_MEM_READ_WRITE, static_cast<std::int64_t>(bytes.size())));
    api_.write(queue_.get(), buffers.back().get(), 0, bytes, true);
  }

  Api api_;
  cl_device_id id_;
  Handle<cl_context> context_;
  Handle<cl_command_queue> queue_;
};

void expect_same(float actual, double expected, bool exact, const std::string& what) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual)) << what << ": expected NaN, got " << actual;
  } else if (exact || std::isinf(static_cast<float>(expected))) {
    EXPECT_EQ(actual, static_cast<float>(expected)) << what;
  } else {
    EXPECT_NEAR(actual, expected, 4e-6 * (std::abs(expected) + 1)) << what;
  }
}

void expect_evaluators_values(DeviceRun& runner, const Expr& expr, int width, const std::string& device) {
  const std::vector<std::vector<float>> x = tensors();
  std::vector<double> y(expr.outputs.size());
  const std::vector<float> out = runner.run(program_text(expr, width, width != 16), x, y.size(), width);
  for (std::size_t i = 0; i < kElements; ++i) {
    const double in[kInputs] = {x[0][i], x[1][i], x[2][i], kSeed, kStep};
    evaluate(expr, in, y, i + kFirstElement);
    for (std::size_t j = 0; j < y.size(); ++j) {
      const ExprOp op = expr.code[static_cast<std::size_t>(expr.outputs[j])].op;
      expect_same(out[j * kElements + i], y[j], op == ExprOp::uniform,
                  str(device, ", width ", width, ", ", to_string(op), " of ", x[0][i], ", ", x[1][i]));
    }
  }
}

TEST(Render, gives_the_evaluators_values_on_every_device_and_width) {
  const LoadReport& loaded = load_library();
  if (!loaded.library) GTEST_SKIP() << "there is no OpenCL library";
  const DeviceList list = find_devices(*loaded.library);
  if (list.devices.empty()) GTEST_SKIP() << "there is no OpenCL device";
  // Several programs: compilers take more than twice the time for twice the code.
  constexpr ExprOp kCuts[] = {ExprOp::neg, ExprOp::sqrt, ExprOp::erf,         ExprOp::add,
                              ExprOp::pow, ExprOp::eq,   ExprOp::logical_and, ExprOp::uniform};
  for (const OpenedDevice& device : list.devices) {
    DeviceRun runner(device, loaded.library);
    for (const int width : {1, 4, 16}) {
      for (std::size_t k = 0; k + 1 < std::size(kCuts); ++k)
        expect_evaluators_values(runner, instructions(kCuts[k], kCuts[k + 1]), width, device.info.name);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(Render, writes_floats_that_read_back_as_the_same_bits) {
  for (const float value : {0.1F, -1.0F / 3.0F, 1e-30F, 3.4028235e38F, 16777217.0F, 5.0F, -0.0F}) {
    std::string text = literal(value);
    std::erase_if(text, [](char c) { return c == '(' || c == ')' || c == 'f'; });
    EXPECT_EQ(std::bit_cast<std::uint32_t>(std::stof(text)), std::bit_cast<std::uint32_t>(value)) << text;
    EXPECT_NE(literal(value).find_first_of(".e"), std::string::npos) << "an integer literal divides as integers do";
  }
  EXPECT_EQ(literal(std::numeric_limits<float>::infinity()), "INFINITY");
  EXPECT_EQ(literal(-std::numeric_limits<float>::infinity()), "(-INFINITY)");
  EXPECT_EQ(literal(std::numeric_limits<float>::quiet_NaN()), "NAN");
}

TEST(Render, takes_what_is_fixed_out_of_the_loop) {
  ExprBuilder e;
  const int scale = e.emit(ExprOp::pow, e.input(1), e.constant(2.0F));
  const int outputs[] = {e.mul(e.input(0), scale)};
  const OperandText operands[] = {{"x[i]", {}}, {"s[0]", {}}};
  const std::string result = "r";
  const HoistedText text = render_hoisted(e.finish(outputs, 2), operands, {false, true}, std::span(&result, 1), 1, "i");
  EXPECT_NE(text.head.find("pow"), std::string::npos);
  EXPECT_EQ(text.body.find("pow"), std::string::npos);
  EXPECT_NE(text.body.find("x[i]"), std::string::npos);
}

}  // namespace
}  // namespace stoker::opencl
