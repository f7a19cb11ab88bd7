// Ops that read no tensor: the batch's inputs, state, and constants.
#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/registry.h"

namespace stoker::ops {
namespace {

std::vector<Spec> infer_from_attrs(std::span<const Spec>, const Attrs& attrs) {
  return {{static_cast<DType>(attrs.integer("dtype")), to_shape(attrs.ints("shape"))}};
}

std::vector<Spec> infer_constant(std::span<const Spec>, const Attrs& attrs) {
  const Shape shape = to_shape(attrs.ints("shape"));
  const auto count = static_cast<std::int64_t>(attrs.floats("values").size());
  require(count == shape.elements(), Code::bad_argument, "constant: ", count, " values for shape ", shape);
  return {{DType::f32, shape}};
}

void constant_reference(std::span<const RefTensor>, std::span<RefTensor> outputs, const Attrs& attrs) {
  const std::vector<float>& values = attrs.floats("values");
  outputs[0].data.assign(values.begin(), values.end());
}

// They stand where they are: whoever reads one pays for it.
Cost free_of_cost(std::span<const Spec>, std::span<const Spec>, const Attrs&) { return {}; }

}  // namespace

void register_sources(std::vector<OpDef>& table) {
  const Traits source{.source = true};
  // Their values come from outside, so these two have no reference: whoever evaluates a graph fills them in.
  for (const char* name : {"input", "state"}) {
    table.push_back(
        {.name = name, .traits = source, .infer = infer_from_attrs, .grad = no_gradient, .cost = free_of_cost});
  }
  table.push_back({.name = "constant",
                   .traits = source,
                   .infer = infer_constant,
                   .grad = no_gradient,
                   .cost = free_of_cost,
                   .reference = constant_reference});
}

Value input(B& b, const std::string& name, const Spec& spec) {
  const Value value =
      make(b, "input", {},
           {{"name", name}, {"dtype", static_cast<std::int64_t>(spec.dtype)}, {"shape", to_ints(spec.shape)}});
  b.declare_input(name, value);
  return value;
}

Value state(B& b, int state) {
  const auto count = static_cast<int>(b.graph().states.size());
  require(state >= 0 && state < count, Code::bad_argument, "state: number ", state, " of ", count, " states");
  const Spec spec = b.graph().states[static_cast<std::size_t>(state)].spec;
  return make(b, "state", {},
              {{"index", std::int64_t{state}},
               {"dtype", static_cast<std::int64_t>(spec.dtype)},
               {"shape", to_ints(spec.shape)}});
}

Value constant(B& b, float value) { return constant(b, {}, {value}); }

Value constant(B& b, const Shape& shape, std::vector<float> values) {
  return make(b, "constant", {}, {{"shape", to_ints(shape)}, {"values", std::move(values)}});
}

}  // namespace stoker::ops
