// OpDef: everything the engine knows of an op: shapes, gradient, cost, a plain reference, and traits that passes ask
// for. Declared here so that Graph and its builder can use it; the definitions stand in ops/, one file a family.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/shape.h"
#include "graph/attrs.h"
#include "graph/expr.h"
#include "graph/graph.h"

namespace stoker {

class GraphBuilder;

struct Cost {
  double flops = 0;  // additions and multiplications count one each
  double bytes = 0;  // what must be read and written at least once
};

// A tensor of the reference implementations.
struct RefTensor {
  Shape shape;
  std::vector<double> data;
};

// What a gradient rule sees. It returns one cotangent an input; none where nothing flows.
struct GradContext {
  GraphBuilder& builder;
  const Node& node;
  std::span<const Value> inputs;
  std::span<const Value> outputs;
  std::span<const Value> cotangents;  // of the outputs; a none Value where nothing depends on that output
};

struct Traits {
  bool pointwise = false;        // `emit` says what it computes; inputs broadcast
  bool source = false;           // reads no tensor: input, state, constant
  bool view = false;             // same elements in the same order: costs nothing
  bool kernel = false;           // may take a prologue for each operand and an epilogue (Fusion)
  bool composite = false;        // `expand` writes it in other ops before fusion
  bool couples_samples = false;  // an item's result depends on the others of the batch
  bool random = false;           // not to be merged with an equal node
};

struct OpDef {
  using Infer = std::function<std::vector<Spec>(std::span<const Spec> inputs, const Attrs& attrs)>;
  using Grad = std::function<std::vector<Value>(GradContext& context)>;
  using CostRule = std::function<Cost(std::span<const Spec> inputs, std::span<const Spec> outputs, const Attrs& attrs)>;
  using Reference =
      std::function<void(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, const Attrs& attrs)>;
  using Emit = std::function<int(ExprBuilder& expr, std::span<const int> arguments, const Attrs& attrs)>;
  using Expand =
      std::function<std::vector<Value>(GraphBuilder& builder, const Node& node, std::span<const Value> inputs)>;

  std::string name;
  int min_inputs = 0;
  int max_inputs = 0;
  Traits traits;
  Infer infer;
  Grad grad;             // empty only where no_grad says so
  bool no_grad = false;  // not differentiable (argmax, comparisons) or itself part of a backward pass
  CostRule cost;
  Reference reference;
  Emit emit;      // pointwise ops
  Expand expand;  // composite ops
};

}  // namespace stoker
