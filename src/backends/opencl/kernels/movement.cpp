// reshape, transpose, pad, slice, concat: strided copies of any element type, by its size.
#include "backends/opencl/kernels/movement.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "backends/opencl/single.h"
#include "backends/opencl/stage_builder.h"

namespace stoker::opencl {
namespace {

using Strides = std::vector<std::int64_t>;

Strides contiguous(const Shape& shape) {
  Strides strides;
  for (int i = 0; i < shape.rank(); ++i) strides.push_back(shape.elements(i + 1, shape.rank()));
  return strides;
}

std::int64_t offset_of(const Ints& position, const Strides& strides) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < position.size(); ++i) offset += position[i] * strides[i];
  return offset;
}

struct Dim {
  std::int64_t size = 1;
  std::int64_t from = 0;  // strides, in elements
  std::int64_t to = 0;
};

// A block of elements that is copied from one tensor to a part of another.
struct Copy {
  Place from;
  Place to;
  std::int64_t from_at = 0;
  std::int64_t to_at = 0;
  std::vector<Dim> dims;  // outermost first; neighbours that run on are one
  int element_bytes = 4;
};

Copy make_copy(const Shape& sizes, const Strides& from, const Strides& to, int element_bytes) {
  Copy copy{.element_bytes = element_bytes};
  for (int i = 0; i < sizes.rank(); ++i) {
    const Dim dim{sizes[i], from[static_cast<std::size_t>(i)], to[static_cast<std::size_t>(i)]};
    if (dim.size == 1) continue;
    if (!copy.dims.empty() && copy.dims.back().from == dim.from * dim.size &&
        copy.dims.back().to == dim.to * dim.size) {
      copy.dims.back() = {copy.dims.back().size * dim.size, dim.from, dim.to};
    } else {
      copy.dims.push_back(dim);
    }
  }
  if (copy.dims.empty()) copy.dims.push_back({1, 1, 1});
  return copy;
}

// The vector width in which the innermost dimension can be copied.
int width_of(const Copy& copy, const Device& device) {
  const Dim& inner = copy.dims.back();
  if (inner.from != 1 || inner.to != 1 || copy.element_bytes != 4 || device.is_cpu()) return 1;
  const auto whole = [](std::int64_t n) { return n % 4 == 0; };
  if (!whole(inner.size) || !whole(copy.from_at) || !whole(copy.to_at)) return 1;
  return std::ranges::all_of(copy.dims.begin(), copy.dims.end() - 1,
                             [&](const Dim& dim) { return whole(dim.from) && whole(dim.to); })
             ? 4
             : 1;
}

// A GPU's work-item has one vector; a CPU's has a whole innermost run, and a plain copy parts of it.
Work copy_work(const Copy& copy, const Device& device) {
  StageBuilder stage;
  stage.bits("x", copy.element_bytes, copy.from, false);
  stage.bits("y", copy.element_bytes, copy.to, true);
  stage.integer("x_at", copy.from_at);
  stage.integer("y_at", copy.to_at);
  const int width = width_of(copy, device);
  std::vector<Dim> dims = copy.dims;
  dims.back() = {dims.back().size / width, dims.back().from * width, dims.back().to * width};
  constexpr std::int64_t kRun = 1024;
  if (device.is_cpu() && dims.size() == 1 && dims[0].size > kRun) {
    const std::int64_t size = dims[0].size % kRun == 0 ? kRun : 1;
    dims = {{dims[0].size / size, dims[0].from * size, dims[0].to * size}, {size, dims[0].from, dims[0].to}};
  }
  std::int64_t elements = 1;
  for (const Dim& dim : dims) elements *= dim.size;
  const bool runs = device.is_cpu() && dims.back().size > 1;
  const std::int64_t items = runs ? elements / dims.back().size : elements;
  stage.integer("n", items);
  std::string from = "x_at";
  std::string to = "y_at";
  std::string position = "  int rest = u;\n";
  for (std::size_t d = dims.size(); d-- > 0;) {
    const bool inner = runs && d + 1 == dims.size();
    stage.integer(str("D", d), dims[d].size);
    stage.integer(str("a", d), dims[d].from);
    stage.integer(str("b", d), dims[d].to);
    if (inner) continue;
    position +=
        d == 0 ? "  const int p0 = rest;\n" : str("  const int p", d, " = rest % D", d, "; rest /= D", d, ";\n");
    from += str(" + p", d, " * a", d);
    to += str(" + p", d, " * b", d);
  }
  stage.add("  FOR_ITEMS(u, n) {\n" + position);
  if (runs) {
    const std::size_t d = dims.size() - 1;
    stage.add(str("  const int f = ", from, ", t = ", to, ";\n  for (int j = 0; j < D", d, "; ++j) y[t + j * b", d,
                  "] = x[f + j * a", d, "];\n"));
  } else if (width == 4) {
    stage.add(str("  *(global int4*)(y + ", to, ") = *(global const int4*)(x + ", from, ");\n"));
  } else {
    stage.add(str("  y[", to, "] = x[", from, "];\n"));
  }
  stage.add("  }\n");
  return stage_or_launch(stage.finish(items, 0, 2.0 * static_cast<double>(elements * width)), elements * width, device);
}

std::vector<Work> prepare_reshape(const KernelContext& context) {
  if (context.input_spec(0).shape.elements() == 0) return {};
  return {copy_work(context.inputs[0], context.outputs[0], context.input_spec(0), context.device)};
}

std::vector<Work> prepare_transpose(const KernelContext& context) {
  const Spec& spec = context.input_spec(0);
  if (spec.shape.elements() == 0) return {};
  const Strides from = contiguous(spec.shape);
  Strides permuted;
  for (const std::int64_t axis : context.node.attrs.ints("order"))
    permuted.push_back(from[static_cast<std::size_t>(axis)]);
  const Shape& shape = context.output_spec(0).shape;
  Copy copy = make_copy(shape, permuted, contiguous(shape), size_of(spec.dtype));
  copy.from = context.inputs[0];
  copy.to = context.outputs[0];
  return {copy_work(copy, context.device)};
}

std::vector<Work> prepare_slice(const KernelContext& context) {
  const Spec& spec = context.input_spec(0);
  const Shape& shape = context.output_spec(0).shape;
  if (shape.elements() == 0) return {};
  const Strides from = contiguous(spec.shape);
  Copy copy = make_copy(shape, from, contiguous(shape), size_of(spec.dtype));
  copy.from = context.inputs[0];
  copy.to = context.outputs[0];
  copy.from_at = offset_of(context.node.attrs.ints("begin"), from);
  return {copy_work(copy, context.device)};
}

std::vector<Work> prepare_concat(const KernelContext& context) {
  const Spec& result = context.output_spec(0);
  const auto axis = static_cast<std::size_t>(context.node.attrs.integer("axis"));
  const Strides to = contiguous(result.shape);
  std::vector<Work> work;
  std::int64_t position = 0;
  for (int i = 0; i < static_cast<int>(context.inputs.size()); ++i) {
    const Shape& shape = context.input_spec(i).shape;
    Copy copy = make_copy(shape, contiguous(shape), to, size_of(result.dtype));
    copy.from = context.inputs[static_cast<std::size_t>(i)];
    copy.to = context.outputs[0];
    copy.to_at = position * to[axis];
    position += shape[static_cast<int>(axis)];
    if (shape.elements() > 0) work.push_back(copy_work(copy, context.device));
  }
  return work;
}

// The value's bits in the element type.
std::int64_t bits_of(DType dtype, float value) {
  switch (dtype) {
    case DType::f32: return std::bit_cast<std::int32_t>(value);
    case DType::b8: return value != 0.0F ? 1 : 0;
    case DType::f16:  // only zero, see supports_pad()
    case DType::i32:
    case DType::i64:
    case DType::u8: break;
  }
  return static_cast<std::int64_t>(value);
}

bool supports_pad(const Graph&, const Node& node, const Device&) {
  return node.outputs[0].dtype != DType::f16 || node.attrs.real("value") == 0.0;
}

// Every element of the result: within the block a copy, else the value.
std::vector<Work> prepare_pad(const KernelContext& context) {
  const Spec& spec = context.output_spec(0);
  const Shape& inside = context.input_spec(0).shape;
  const Ints& before = context.node.attrs.ints("before");
  const std::int64_t elements = spec.shape.elements();
  if (elements == 0) return {};
  StageBuilder stage;
  stage.bits("x", size_of(spec.dtype), context.inputs[0], false);
  stage.bits("y", size_of(spec.dtype), context.outputs[0], true);
  stage.integer("value", bits_of(spec.dtype, static_cast<float>(context.node.attrs.real("value"))));
  stage.integer("n", elements);
  std::string body = "  FOR_ITEMS(i, n) {\n  int rest = i, at = 0, in = 1, p = 0;\n";
  const Strides from = contiguous(inside);
  for (int d = spec.shape.rank() - 1; d >= 0; --d) {
    stage.integer(str("D", d), spec.shape[d]);
    stage.integer(str("S", d), inside[d]);
    stage.integer(str("B", d), before[static_cast<std::size_t>(d)]);
    stage.integer(str("a", d), from[static_cast<std::size_t>(d)]);
    body +=
        str("  p = rest % D", d, " - B", d, "; rest /= D", d, "; in &= p >= 0 && p < S", d, "; at += p * a", d, ";\n");
  }
  stage.add(body + "  if (in) y[i] = x[at]; else y[i] = value;\n  }\n");
  return {stage_or_launch(stage.finish(elements, 0, 2.0 * static_cast<double>(elements)), elements, context.device)};
}

}  // namespace

Work copy_work(const Place& from, const Place& to, const Spec& spec, const Device& device) {
  Copy copy = make_copy(Shape{spec.shape.elements()}, {1}, {1}, size_of(spec.dtype));
  copy.from = from;
  copy.to = to;
  return copy_work(copy, device);
}

std::span<const KernelDef> movement_kernels() {
  static constexpr std::array kKernels = {
      KernelDef{.op = "reshape", .prepare = prepare_reshape},
      KernelDef{.op = "transpose", .prepare = prepare_transpose},
      KernelDef{.op = "pad", .prepare = prepare_pad, .supports = supports_pad},
      KernelDef{.op = "slice", .prepare = prepare_slice},
      KernelDef{.op = "concat", .prepare = prepare_concat},
  };
  return kKernels;
}

}  // namespace stoker::opencl
