#include "backends/opencl/kernels/pointwise_domain.h"

#include <utility>

#include "passes/point_expr.h"

namespace stoker::opencl {
namespace {

// A dimension of the domain, and how far each argument moves with it.
struct Dim {
  std::int64_t size = 1;
  std::vector<std::int64_t> strides;
};

// The strides of `shape` in the dimensions of the larger `domain`; 0 where it is repeated.
std::vector<std::int64_t> strides_of(const Shape& shape, const Shape& domain) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(domain.rank()), 0);
  for (int i = 1; i <= shape.rank(); ++i) {
    if (shape[-i] != 1)
      strides[static_cast<std::size_t>(domain.rank() - i)] = shape.elements(shape.rank() - i + 1, shape.rank());
  }
  return strides;
}

// The dimensions with neighbours joined that run on for every argument; the innermost stays as it is if something is
// summed per channel.
std::vector<Dim> joined_dims(const Shape& domain, const std::vector<std::vector<std::int64_t>>& strides, bool sums) {
  std::vector<Dim> dims;
  for (int i = 0; i < domain.rank(); ++i) {
    const bool innermost = i == domain.rank() - 1;
    if (domain[i] == 1 && !(innermost && sums)) continue;
    Dim dim{.size = domain[i]};
    for (const std::vector<std::int64_t>& of : strides) dim.strides.push_back(of[static_cast<std::size_t>(i)]);
    bool join = !dims.empty() && !(innermost && sums);
    for (std::size_t k = 0; join && k < dim.strides.size(); ++k)
      join = dims.back().strides[k] == dim.strides[k] * dim.size;
    if (join) {
      dim.size *= dims.back().size;
      dims.back() = std::move(dim);
    } else {
      dims.push_back(std::move(dim));
    }
  }
  if (dims.empty()) dims.push_back({1, std::vector<std::int64_t>(strides.size(), 0)});
  return dims;
}

Access access_in(const std::vector<Dim>& dims, std::size_t arg) {
  bool moves = false;
  bool runs_on = true;
  std::int64_t run = dims.back().strides[arg] == 0 ? 1 : dims.back().size;
  for (std::size_t d = dims.size() - 1; d-- > 0;) {
    moves = moves || dims[d].strides[arg] != 0;
    runs_on = runs_on && dims[d].strides[arg] == run;
    run *= dims[d].size;
  }
  if (!moves) return dims.back().strides[arg] == 0 ? Access::scalar : dims.size() == 1 ? Access::full : Access::channel;
  if (!runs_on) return Access::broadcast;
  return dims.back().strides[arg] == 0 ? Access::row : Access::full;
}

}  // namespace

PointDomain point_domain(const Graph& graph, const Node& node) {
  PointDomain domain;
  NodeExpr code = expression_of(graph, node);
  domain.expr = std::move(code.expr);
  domain.results = std::move(code.results);
  for (const ResultKind kind : domain.results) domain.sums += kind == ResultKind::sum_channel ? 1 : 0;
  std::vector<std::vector<std::int64_t>> strides;
  for (const int input : code.inputs) {
    const Spec& spec = graph.spec(node.inputs[static_cast<std::size_t>(input)]);
    domain.args.push_back({.input = input, .dtype = spec.dtype});
    strides.push_back(strides_of(spec.shape, code.shape));
  }
  const std::vector<Dim> dims = joined_dims(code.shape, strides, domain.sums > 0);
  for (std::size_t d = 0; d + 1 < dims.size(); ++d) {
    domain.outer.push_back(dims[d].size);
    domain.rows *= dims[d].size;
  }
  domain.channels = dims.back().size;
  for (std::size_t k = 0; k < domain.args.size(); ++k) {
    PointArg& arg = domain.args[k];
    arg.access = access_in(dims, k);
    for (std::size_t d = 0; d + 1 < dims.size(); ++d) arg.strides.push_back(dims[d].strides[k]);
    arg.along_channels = dims.back().strides[k] != 0;
  }
  domain.flat = dims.size() == 1 && domain.sums == 0;
  return domain;
}

}  // namespace stoker::opencl
