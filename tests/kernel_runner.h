// Runs one CPU kernel on a node built by hand: for the tests and benches of kernels, below graphs and plans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include "backends/cpu/kernel.h"
#include "base/error.h"
#include "base/float_mode.h"
#include "base/threads.h"
#include "graph/graph.h"

namespace stoker::cpu {

// A tensor's memory, 64-byte aligned as the arena's is.
class Tensor {
 public:
  explicit Tensor(const Shape& shape)
      : shape_(shape),
        data_(static_cast<float*>(::operator new(static_cast<std::size_t>(shape.elements()) * 4 + 64, kAlign))) {}

  // Small numbers that differ from element to element, from -1 to 1.
  Tensor& fill(std::uint32_t seed) {
    std::uint32_t state = seed * 2654435761U + 12345U;
    for (float& x : span()) {
      state = state * 1664525U + 1013904223U;
      x = static_cast<float>(static_cast<std::int32_t>(state)) * (1.0F / 2147483648.0F);
    }
    return *this;
  }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] std::span<float> span() const { return {data_.get(), static_cast<std::size_t>(shape_.elements())}; }
  [[nodiscard]] std::byte* bytes() const { return reinterpret_cast<std::byte*>(data_.get()); }
  [[nodiscard]] float operator[](std::int64_t i) const { return data_.get()[i]; }

 private:
  static constexpr std::align_val_t kAlign{64};
  struct Free {
    void operator()(float* p) const { ::operator delete(p, kAlign); }
  };
  Shape shape_;
  std::unique_ptr<float, Free> data_;
};

[[nodiscard]] inline const KernelDef& find_kernel(std::span<const KernelDef> kernels, std::string_view op) {
  for (const KernelDef& kernel : kernels) {
    if (kernel.op == op) return kernel;
  }
  fail(Code::bad_argument, "no kernel for ", op);
}

// A kernel with its graph and scratch; inputs and outputs stay the caller's.
class KernelRunner {
 public:
  KernelRunner(const KernelDef& def, std::span<const Tensor* const> inputs, const Attrs& attrs,
               std::span<const Tensor* const> outputs, int threads, std::shared_ptr<const Fusion> fusion = nullptr)
      : pool_(threads), scratch_(Shape{}) {
    Node node{.attrs = attrs, .fusion = std::move(fusion)};
    for (const Tensor* input : inputs) {
      node.inputs.push_back({.node = static_cast<int>(graph_.nodes.size())});
      graph_.nodes.push_back({.outputs = {{.shape = input->shape()}}});
    }
    for (const Tensor* output : outputs) node.outputs.push_back({.shape = output->shape()});
    graph_.nodes.push_back(std::move(node));
    const Node& added = graph_.nodes.back();
    const std::int64_t bytes = def.workspace == nullptr ? 0 : def.workspace(graph_, added, threads);
    scratch_ = Tensor(Shape{bytes / 4 + 1});
    KernelContext context{.graph = graph_, .node = added, .scratch = scratch_.bytes(), .threads = threads};
    for (const Tensor* input : inputs) context.inputs.push_back(input->bytes());
    for (const Tensor* output : outputs) context.outputs.push_back(output->bytes());
    kernel_ = def.prepare(context);
  }
  void run() {
    const FlushDenormals flush;  // as the backend does
    kernel_(pool_);
  }

 private:
  Graph graph_;
  ThreadPool pool_;
  Tensor scratch_;
  Kernel kernel_;
};

}  // namespace stoker::cpu
