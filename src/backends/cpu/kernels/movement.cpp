// reshape, transpose, pad, slice, concat: strided copies of any element type.
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/movement_copy.h"
#include "backends/cpu/kernels/tile_steps.h"

namespace stoker::cpu {
namespace {

// One copy from an input to a place in the output.
struct Move {
  StridedCopy copy;
  const std::byte* src;
  std::byte* dst;
};

Kernel run_moves(std::vector<Move> moves) {
  return [moves = std::make_shared<std::vector<Move>>(std::move(moves))](ThreadPool& pool) {
    for (const Move& move : *moves) move.copy.run(move.src, move.dst, pool);
  };
}

std::int64_t offset_of(const Ints& position, const StridedCopy::Strides& strides) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < position.size(); ++i) offset += position[i] * strides[i];
  return offset;
}

Kernel prepare_reshape(const KernelContext& context) {
  const Spec& spec = context.input_spec(0);
  const Shape flat{spec.shape.elements()};
  const StridedCopy::Strides strides = contiguous_strides(flat);
  return run_moves({{.copy = StridedCopy(flat, strides, strides, size_of(spec.dtype)),
                     .src = context.inputs[0],
                     .dst = context.outputs[0]}});
}

Kernel prepare_transpose(const KernelContext& context) {
  const Spec& spec = context.input_spec(0);
  const Ints& order = context.node.attrs.ints("order");
  const StridedCopy::Strides from = contiguous_strides(spec.shape);
  StridedCopy::Strides permuted{};
  for (std::size_t i = 0; i < order.size(); ++i) permuted[i] = from[static_cast<std::size_t>(order[i])];
  const Shape& shape = context.output_spec(0).shape;
  return run_moves({{.copy = StridedCopy(shape, permuted, contiguous_strides(shape), size_of(spec.dtype)),
                     .src = context.inputs[0],
                     .dst = context.outputs[0]}});
}

Kernel prepare_slice(const KernelContext& context) {
  const Spec& spec = context.input_spec(0);
  const StridedCopy::Strides from = contiguous_strides(spec.shape);
  const Shape& shape = context.output_spec(0).shape;
  const std::int64_t offset = offset_of(context.node.attrs.ints("begin"), from) * size_of(spec.dtype);
  return run_moves({{.copy = StridedCopy(shape, from, contiguous_strides(shape), size_of(spec.dtype)),
                     .src = context.inputs[0] + offset,
                     .dst = context.outputs[0]}});
}

Kernel prepare_concat(const KernelContext& context) {
  const Spec& result = context.output_spec(0);
  const auto axis = static_cast<std::size_t>(context.node.attrs.integer("axis"));
  const StridedCopy::Strides to = contiguous_strides(result.shape);
  std::vector<Move> moves;
  std::int64_t position = 0;
  for (int i = 0; i < static_cast<int>(context.inputs.size()); ++i) {
    const Shape& part = context.input_spec(i).shape;
    moves.push_back({.copy = StridedCopy(part, contiguous_strides(part), to, size_of(result.dtype)),
                     .src = context.inputs[static_cast<std::size_t>(i)],
                     .dst = context.outputs[0] + position * to[axis] * size_of(result.dtype)});
    position += part[static_cast<int>(axis)];
  }
  return run_moves(std::move(moves));
}

// The value in the output's element type.
std::array<std::byte, 8> element_of(DType dtype, float value) {
  std::array<std::byte, 8> bytes{};
  store_tile(dtype, {.data = &value, .stride = 0, .step = 0}, 1, 1, bytes.data(), 1);
  return bytes;
}

Kernel prepare_pad(const KernelContext& context) {
  const Spec& spec = context.output_spec(0);
  const StridedCopy::Strides to = contiguous_strides(spec.shape);
  const Shape& shape = context.input_spec(0).shape;
  const int size = size_of(spec.dtype);
  const std::int64_t offset = offset_of(context.node.attrs.ints("before"), to) * size;
  const StridedCopy copy(shape, contiguous_strides(shape), to, size);
  const std::array<std::byte, 8> value = element_of(spec.dtype, static_cast<float>(context.node.attrs.real("value")));
  const Cut fill = cut_work(spec.shape.elements(), 0.2, 64);
  return [=, src = context.inputs[0], dst = context.outputs[0]](ThreadPool& pool) {
    pool.run(fill.tasks, [&](std::int64_t task, int) {
      std::byte* first = dst + fill.begin(task) * size;
      for (std::int64_t i = 0; i < fill.count(task); ++i)
        std::memcpy(first + i * size, value.data(), static_cast<std::size_t>(size));
    });
    copy.run(src, dst + offset, pool);
  };
}

}  // namespace

std::span<const KernelDef> movement_kernels() {
  static constexpr std::array kKernels = {
      KernelDef{.op = "reshape", .prepare = prepare_reshape},
      KernelDef{.op = "transpose", .prepare = prepare_transpose},
      KernelDef{.op = "pad", .prepare = prepare_pad},
      KernelDef{.op = "slice", .prepare = prepare_slice},
      KernelDef{.op = "concat", .prepare = prepare_concat},
  };
  return kKernels;
}

}  // namespace stoker::cpu
