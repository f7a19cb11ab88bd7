// conv2d and depthwise, each with its two gradients: images [N, H, W, Cin], weights [KH, KW, Cin / groups, Cout].
// Depthwise is the case of one group a channel, with kernels of its own: weights [KH, KW, 1, C].
#include "base/error.h"
#include "ops/common.h"
#include "ops/registry.h"
#include "ops/window.h"

namespace stoker::ops {
namespace {

enum class Kind { conv2d, depthwise };
enum class Role { forward, input_grad, weight_grad };  // of (x, w), (dy, w), (x, dy)

struct Conv {
  Geometry g;
  std::int64_t groups, Cin, Cout;  // channels within a group

  [[nodiscard]] Shape output() const { return {g.N, g.OH, g.OW, Cout * groups}; }
};

std::string name_of(Kind kind, Role role) {
  const std::string name = kind == Kind::conv2d ? "conv2d" : "depthwise";
  return role == Role::forward ? name : name + (role == Role::input_grad ? "_input_grad" : "_weight_grad");
}

Conv conv_of(Kind kind, const char* op, const Shape& x, const Shape& w, const Attrs& attrs) {
  require(w.rank() == 4, Code::bad_argument, op, ": expected weights [KH, KW, Cin / groups, Cout], got ", w);
  const Geometry g = geometry_of(op, x, w[0], w[1], window_of(attrs));
  const std::int64_t groups = kind == Kind::depthwise ? g.C : attrs.integer("groups");
  require(kind == Kind::conv2d || (w[2] == 1 && w[3] == g.C), Code::bad_argument, op, ": expected weights [KH, KW, 1, ",
          g.C, "], got ", w);
  require(groups >= 1 && g.C % groups == 0 && w[3] % groups == 0, Code::bad_argument, op, ": ", groups,
          " groups do not divide ", g.C, " input and ", w[3], " output channels");
  require(w[2] * groups == g.C, Code::bad_argument, op, ": the weights ", w, " take ", w[2] * groups,
          " input channels, the images ", x, " have ", g.C);
  return {.g = g, .groups = groups, .Cin = w[2], .Cout = w[3] / groups};
}

// Which tensor plays x, w and y, by role.
template <typename T>
struct Parts {
  T x, w, y;
};

Parts<Shape> shapes_of(Role role, std::span<const Spec> inputs, const Attrs& attrs) {
  switch (role) {
    case Role::forward: return {inputs[0].shape, inputs[1].shape, {}};
    case Role::input_grad: return {to_shape(attrs.ints("input_shape")), inputs[1].shape, inputs[0].shape};
    case Role::weight_grad: break;
  }
  return {inputs[0].shape, to_shape(attrs.ints("weight_shape")), inputs[1].shape};
}

std::vector<Spec> infer(Kind kind, Role role, std::span<const Spec> inputs, const Attrs& attrs) {
  const std::string op = name_of(kind, role);
  require_f32(op.c_str(), inputs);
  const Parts<Shape> shapes = shapes_of(role, inputs, attrs);
  const Shape y = conv_of(kind, op.c_str(), shapes.x, shapes.w, attrs).output();
  require(role == Role::forward || shapes.y == y, Code::bad_argument, op, ": the output's gradient is ", shapes.y,
          ", expected ", y);
  return {{DType::f32, role == Role::forward ? y : role == Role::input_grad ? shapes.x : shapes.w}};
}

// Calls body(x, w, y) with the three element numbers of every multiplication.
template <typename Body>
void for_each_product(const Conv& conv, const Body& body) {
  for_each_tap(conv.g, [&](std::int64_t output, std::int64_t kh, std::int64_t kw, std::int64_t input) {
    for (std::int64_t group = 0; group < conv.groups; ++group) {
      for (std::int64_t ci = 0; ci < conv.Cin; ++ci) {
        const std::int64_t x = (input * conv.groups + group) * conv.Cin + ci;
        const std::int64_t w = (((kh * conv.g.KW + kw) * conv.Cin + ci) * conv.groups + group) * conv.Cout;
        const std::int64_t y = (output * conv.groups + group) * conv.Cout;
        for (std::int64_t co = 0; co < conv.Cout; ++co) {
          body(static_cast<std::size_t>(x), static_cast<std::size_t>(w + co), static_cast<std::size_t>(y + co));
        }
      }
    }
  });
}

void reference(Kind kind, Role role, std::span<const RefTensor> inputs, std::span<RefTensor> outputs,
               const Attrs& attrs) {
  const std::vector<double>& a = inputs[0].data;
  const std::vector<double>& b = inputs[1].data;
  std::vector<double>& result = outputs[0].data;
  const Shape& x = role == Role::input_grad ? outputs[0].shape : inputs[0].shape;
  const Shape& w = role == Role::weight_grad ? outputs[0].shape : inputs[1].shape;
  for_each_product(conv_of(kind, "reference", x, w, attrs), [&](std::size_t i, std::size_t k, std::size_t o) {
    switch (role) {
      case Role::forward: result[o] += a[i] * b[k]; break;
      case Role::input_grad: result[i] += a[o] * b[k]; break;
      case Role::weight_grad: result[k] += a[i] * b[o]; break;
    }
  });
}

// 2 * N * OH * OW * KH * KW * (Cin / groups) * Cout, in all three directions; positions on padding count, too.
Cost cost(Role role, std::span<const Spec> inputs, std::span<const Spec> outputs, const Attrs& attrs) {
  const Parts<Shape> shapes = shapes_of(role, inputs, attrs);
  const Shape& y = role == Role::forward ? outputs[0].shape : shapes.y;
  return {.flops = 2.0 * static_cast<double>(y.elements()) * static_cast<double>(shapes.w.elements(0, 3)),
          .bytes = bytes_of(inputs) + bytes_of(outputs)};
}

std::vector<Value> grad(Kind kind, GradContext& c) {
  B& b = c.builder;
  Attrs input_attrs = c.node.attrs;
  input_attrs.set("input_shape", to_ints(b.shape(c.inputs[0])));
  Attrs weight_attrs = c.node.attrs;
  weight_attrs.set("weight_shape", to_ints(b.shape(c.inputs[1])));
  const std::string dx = name_of(kind, Role::input_grad);
  const std::string dw = name_of(kind, Role::weight_grad);
  return {make(b, dx.c_str(), {c.cotangents[0], c.inputs[1]}, std::move(input_attrs)),
          make(b, dw.c_str(), {c.inputs[0], c.cotangents[0]}, std::move(weight_attrs))};
}

void register_kind(Kind kind, std::vector<OpDef>& table) {
  for (const Role role : {Role::forward, Role::input_grad, Role::weight_grad}) {
    OpDef op{.name = name_of(kind, role), .min_inputs = 2, .max_inputs = 2, .traits = {.kernel = true}};
    op.infer = [=](auto inputs, const Attrs& attrs) { return infer(kind, role, inputs, attrs); };
    op.no_grad = role != Role::forward;
    if (role == Role::forward) op.grad = [=](GradContext& c) { return grad(kind, c); };
    op.cost = [=](auto inputs, auto outputs, const Attrs& attrs) { return cost(role, inputs, outputs, attrs); };
    op.reference = [=](auto inputs, auto outputs, const Attrs& attrs) {
      reference(kind, role, inputs, outputs, attrs);
    };
    table.push_back(std::move(op));
  }
}

}  // namespace

void register_conv2d(std::vector<OpDef>& table) { register_kind(Kind::conv2d, table); }
void register_depthwise(std::vector<OpDef>& table) { register_kind(Kind::depthwise, table); }

Value conv2d(B& b, Value x, Value w, const Window& window, std::int64_t groups) {
  Attrs attrs;
  set_window(attrs, window);
  const Shape& images = b.shape(x);
  const Shape& weights = b.shape(w);
  const bool depthwise = groups > 1 && images.rank() == 4 && weights.rank() == 4 && images[3] == groups &&
                         weights[3] == groups && weights[2] == 1;
  if (depthwise) return make(b, "depthwise", {x, w}, std::move(attrs));
  attrs.set("groups", groups);
  return make(b, "conv2d", {x, w}, std::move(attrs));
}

}  // namespace stoker::ops
