#include "backends/opencl/target.h"

#include <algorithm>

#include "graph/op_def.h"

namespace stoker::opencl {
namespace {

using Table = std::map<std::string, const KernelDef*, std::less<>>;

const Table& table() {
  static const Table kTable = [] {
    Table all;
    for (const std::span<const KernelDef> family :
         {pointwise_kernels(), reduction_kernels(), matmul_kernels(), conv2d_kernels(), depthwise_kernels(),
          pooling_kernels(), softmax_kernels(), gather_kernels(), movement_kernels()}) {
      for (const KernelDef& kernel : family) all.emplace(kernel.op, &kernel);
    }
    return all;
  }();
  return kTable;
}

// Offsets are ints that count elements of one byte at the smallest.
constexpr std::int64_t kMostBytes = (std::int64_t{1} << 31) - (std::int64_t{1} << 16);
// The largest vector that kernels load at a tensor's beginning.
constexpr std::int64_t kLeastAlignment = 128;

}  // namespace

Place part(const Place& place, std::int64_t offset, std::int64_t bytes) {
  Place result = place;
  result.offset += offset;
  result.bytes = bytes;
  return result;
}

const KernelDef* find_kernel(const Node& node) {
  const auto at = table().find(node.op->traits.pointwise ? "pointwise" : std::string_view(node.op->name));
  return at == table().end() ? nullptr : at->second;
}

ClTarget::ClTarget(const Device& device, const Tuning& tuning, std::int64_t largest_buffer)
    : device_(device), tuning_(tuning), alignment_(std::max(kLeastAlignment, device.base_alignment)) {
  const std::int64_t most = std::min(device.largest_buffer, kMostBytes);
  largest_buffer_ = (largest_buffer > 0 ? std::min(largest_buffer, most) : most) / alignment_ * alignment_;
}

KernelContext ClTarget::context(const Graph& graph, const Node& node) const {
  return {.graph = graph,
          .node = node,
          .inputs = std::vector<Place>(node.inputs.size()),
          .outputs = std::vector<Place>(node.outputs.size()),
          .scratch = {},
          .device = device_,
          .tuning = tuning_};
}

bool ClTarget::supports(const Graph& graph, const Node& node) const {
  const KernelDef* kernel = find_kernel(node);
  return kernel != nullptr && (kernel->supports == nullptr || kernel->supports(graph, node, device_));
}

std::int64_t ClTarget::workspace(const Graph& graph, const Node& node) const {
  const KernelDef* kernel = find_kernel(node);
  return kernel != nullptr && kernel->workspace != nullptr ? kernel->workspace(context(graph, node)) : 0;
}

int ClTarget::prologue_tensors(const Graph& graph, const Node& node, int operand) const {
  const KernelDef* kernel = find_kernel(node);
  return kernel != nullptr && kernel->prologue_tensors != nullptr
             ? kernel->prologue_tensors(graph, node, operand, device_)
             : 0;
}

bool ClTarget::takes_epilogue(const Graph& graph, const Node& node) const {
  const KernelDef* kernel = find_kernel(node);
  return kernel != nullptr && kernel->takes_epilogue != nullptr && kernel->takes_epilogue(graph, node, device_);
}

bool ClTarget::is_small(const Graph& graph, const Node& node) const {
  if (node.op->traits.kernel && node.op->name != "pointwise") return false;  // spares preparing the large ones
  const std::vector<Work> work = find_kernel(node)->prepare(context(graph, node));
  return std::ranges::all_of(work, [](const Work& item) { return std::holds_alternative<Stage>(item); });
}

}  // namespace stoker::opencl
