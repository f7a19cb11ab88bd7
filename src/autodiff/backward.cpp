#include "autodiff/backward.h"

#include <algorithm>

#include "base/error.h"
#include "ops/ops.h"

namespace stoker {
namespace {

class Sweep {
 public:
  Sweep(GraphBuilder& b, std::span<const Value> wrt) : b_(b), count_(b.graph().nodes.size()) {
    cotangents_.resize(count_);
    depends_.resize(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      const Node& node = b.graph().nodes[i];
      cotangents_[i].resize(node.outputs.size());
      const bool any = std::ranges::any_of(node.inputs, [&](Value input) { return depends(input); });
      for (std::size_t k = 0; k < node.outputs.size(); ++k) {
        const Value value{static_cast<int>(i), static_cast<int>(k)};
        const DType type = node.outputs[k].dtype;
        const bool differentiable = type == DType::f32 || type == DType::f16;
        depends_[i].push_back(differentiable && (any || std::ranges::find(wrt, value) != wrt.end()));
      }
    }
  }

  // Whether a value depends on one of wrt.
  [[nodiscard]] bool depends(Value value) const {
    return depends_[static_cast<std::size_t>(value.node)][static_cast<std::size_t>(value.index)];
  }

  Value& cotangent(Value value) {
    return cotangents_[static_cast<std::size_t>(value.node)][static_cast<std::size_t>(value.index)];
  }

  void contribute(Value value, Value part) {
    Value& sum = cotangent(value);
    sum = sum.is_none() ? part : ops::add(b_, sum, part);
  }

  void run() {
    for (std::size_t i = count_; i-- > 0;) visit(i);
  }

 private:
  void visit(std::size_t number) {
    const std::vector<Value>& cotangents = cotangents_[number];
    if (std::ranges::all_of(cotangents, &Value::is_none)) return;
    const Node node = b_.graph().nodes[number];  // a copy: the list grows below
    if (std::ranges::none_of(node.inputs, [&](Value input) { return depends(input); })) return;
    require(!node.op->no_grad, Code::bad_argument, "backward: ", node.op->name,
            " has no gradient, but a gradient is asked for through it",
            node.name.empty() ? "" : " (in " + node.name + ")");
    b_.set_name(node.name);
    std::vector<Value> outputs;
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      outputs.push_back({static_cast<int>(number), static_cast<int>(k)});
    }
    GradContext context{b_, node, node.inputs, outputs, cotangents};
    const std::vector<Value> grads = node.op->grad(context);
    DCHECK(grads.size() == node.inputs.size());
    for (std::size_t k = 0; k < grads.size(); ++k) {
      if (!grads[k].is_none() && depends(node.inputs[k])) contribute(node.inputs[k], grads[k]);
    }
  }

  GraphBuilder& b_;
  std::size_t count_;
  std::vector<std::vector<Value>> cotangents_;  // by node and output
  std::vector<std::vector<bool>> depends_;
};

}  // namespace

std::vector<Value> backward(GraphBuilder& b, std::span<const Value> outputs, std::span<const Value> cotangents,
                            std::span<const Value> wrt) {
  require(outputs.size() == cotangents.size(), Code::bad_argument, "backward: ", outputs.size(), " outputs and ",
          cotangents.size(), " cotangents");
  const Phase phase = b.phase();
  const std::string name = b.name();
  b.set_phase(Phase::backward);
  Sweep sweep(b, wrt);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    require(b.shape(outputs[i]) == b.shape(cotangents[i]), Code::bad_argument, "backward: an output is ",
            b.shape(outputs[i]), ", its cotangent ", b.shape(cotangents[i]));
    if (sweep.depends(outputs[i])) sweep.contribute(outputs[i], cotangents[i]);
  }
  sweep.run();
  b.set_phase(phase);
  b.set_name(name);
  std::vector<Value> result;
  for (const Value value : wrt) result.push_back(sweep.cotangent(value));
  return result;
}

}  // namespace stoker
