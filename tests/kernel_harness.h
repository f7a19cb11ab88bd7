// Runs one CPU kernel on a node made by hand: inputs as doubles, outputs as doubles, the same bits for 1, 2, 3 threads.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "backends/cpu/kernel.h"
#include "base/float_mode.h"
#include "base/random.h"
#include "graph/op_def.h"
#include "kernel_runner.h"

namespace stoker::cpu {

// 64-byte aligned bytes with a guard behind them that must stay as it is.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::int64_t size)
      : size_(static_cast<std::size_t>(size)),
        data_(static_cast<std::byte*>(::operator new(size_ + kGuard, std::align_val_t(64)))) {
    std::memset(data_, 0xA5, size_ + kGuard);
  }
  AlignedBytes(AlignedBytes&& other) noexcept : size_(other.size_), data_(std::exchange(other.data_, nullptr)) {}
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  AlignedBytes& operator=(AlignedBytes&&) = delete;
  ~AlignedBytes() { ::operator delete(data_, std::align_val_t(64)); }

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool guard_is_whole() const {
    for (std::size_t i = 0; i < kGuard; ++i) {
      if (data_[size_ + i] != std::byte{0xA5}) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kGuard = 64;
  std::size_t size_;
  std::byte* data_;
};

struct TestTensor {
  Spec spec;
  std::vector<double> values;
};

inline void write_values(const TestTensor& tensor, std::byte* to) {
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    const double value = tensor.values[i];
    switch (tensor.spec.dtype) {
      case DType::f32: reinterpret_cast<float*>(to)[i] = static_cast<float>(value); break;
      case DType::i32: reinterpret_cast<std::int32_t*>(to)[i] = static_cast<std::int32_t>(value); break;
      case DType::i64: reinterpret_cast<std::int64_t*>(to)[i] = static_cast<std::int64_t>(value); break;
      default: reinterpret_cast<std::uint8_t*>(to)[i] = static_cast<std::uint8_t>(value);
    }
  }
}

inline std::vector<double> read_values(const Spec& spec, const std::byte* from) {
  std::vector<double> values(static_cast<std::size_t>(spec.shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    switch (spec.dtype) {
      case DType::f32: values[i] = static_cast<double>(reinterpret_cast<const float*>(from)[i]); break;
      case DType::i32: values[i] = static_cast<double>(reinterpret_cast<const std::int32_t*>(from)[i]); break;
      case DType::i64: values[i] = static_cast<double>(reinterpret_cast<const std::int64_t*>(from)[i]); break;
      default: values[i] = static_cast<double>(reinterpret_cast<const std::uint8_t*>(from)[i]);
    }
  }
  return values;
}

// Values that a float holds exactly, so that the double reference sees the same input.
inline TestTensor random_tensor(const Shape& shape, Random& random) {
  TestTensor tensor{.spec = {.shape = shape}, .values = {}};
  for (std::int64_t i = 0; i < shape.elements(); ++i) tensor.values.push_back(static_cast<double>(random.normal()));
  return tensor;
}

inline TestTensor random_integers(const Shape& shape, std::uint64_t bound, DType dtype, Random& random) {
  TestTensor tensor{.spec = {.dtype = dtype, .shape = shape}, .values = {}};
  for (std::int64_t i = 0; i < shape.elements(); ++i) tensor.values.push_back(static_cast<double>(random.below(bound)));
  return tensor;
}

// A node whose inputs are tensors, with its graph.
struct TestNode {
  OpDef op;
  OpDef source;
  Graph graph;

  TestNode(const std::string& name, const std::vector<TestTensor>& inputs, std::vector<Spec> outputs, Attrs attrs = {},
           std::shared_ptr<const Fusion> fusion = nullptr) {
    op.name = name;
    Node node{.op = &op, .attrs = std::move(attrs), .outputs = std::move(outputs), .fusion = std::move(fusion)};
    for (const TestTensor& input : inputs) {
      graph.nodes.push_back({.op = &source, .outputs = {input.spec}});
      node.inputs.push_back({.node = static_cast<int>(graph.nodes.size()) - 1});
    }
    graph.nodes.push_back(std::move(node));
  }
  TestNode(const TestNode&) = delete;
  TestNode& operator=(const TestNode&) = delete;
  [[nodiscard]] const Node& node() const { return graph.nodes.back(); }
};

// `in_place`: output 0 stands where this input stands; -1: nowhere.
inline std::vector<std::vector<double>> run_kernel(const KernelDef& kernel, const TestNode& test,
                                                   const std::vector<TestTensor>& inputs, int in_place = -1) {
  std::vector<std::vector<double>> first;
  for (const int threads : {1, 2, 3}) {
    std::vector<AlignedBytes> memory;
    KernelContext context{.graph = test.graph, .node = test.node(), .threads = threads};
    for (const TestTensor& input : inputs) {
      memory.emplace_back(input.spec.bytes());
      write_values(input, memory.back().data());
      context.inputs.push_back(memory.back().data());
    }
    for (std::size_t i = 0; i < test.node().outputs.size(); ++i) {
      memory.emplace_back(test.node().outputs[i].bytes());
      context.outputs.push_back(i == 0 && in_place >= 0 ? memory[static_cast<std::size_t>(in_place)].data()
                                                        : memory.back().data());
    }
    memory.emplace_back(kernel.workspace == nullptr ? 0 : kernel.workspace(test.graph, test.node(), threads));
    context.scratch = memory.back().data();
    const Kernel run = kernel.prepare(context);
    const FlushDenormals flush;  // as the backend does
    ThreadPool pool(threads);
    run(pool);
    if (in_place < 0) run(pool);  // a second time: nothing may be left over from the first
    std::vector<std::vector<double>> outputs;
    for (std::size_t i = 0; i < context.outputs.size(); ++i)
      outputs.push_back(read_values(test.node().outputs[i], context.outputs[i]));
    for (const AlignedBytes& bytes : memory) EXPECT_TRUE(bytes.guard_is_whole());
    if (threads == 1) {
      first = outputs;
      continue;
    }
    for (std::size_t i = 0; i < outputs.size(); ++i)
      EXPECT_EQ(std::memcmp(outputs[i].data(), first[i].data(), outputs[i].size() * sizeof(double)), 0)
          << kernel.op << ": other bits with " << threads << " threads";
  }
  return first;
}

inline void expect_near(const std::vector<double>& got, const std::vector<double>& want, double tolerance,
                        const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) {
      ASSERT_TRUE(std::isnan(got[i])) << what << " at " << i;
    } else {
      ASSERT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::abs(want[i]))) << what << " at " << i;
    }
  }
}

}  // namespace stoker::cpu
