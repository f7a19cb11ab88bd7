#include "ops/registry.h"

#include <algorithm>

#include "base/error.h"

namespace stoker {
namespace {

std::vector<OpDef> build_table() {
  std::vector<OpDef> table;
  ops::register_sources(table);
  ops::register_pointwise(table);
  ops::register_reductions(table);
  ops::register_matmul(table);
  ops::register_conv2d(table);
  ops::register_depthwise(table);
  ops::register_pooling(table);
  ops::register_norm(table);
  ops::register_softmax(table);
  ops::register_gather(table);
  ops::register_movement(table);
  ops::register_fused(table);
  std::ranges::sort(table, {}, &OpDef::name);
  DCHECK(std::ranges::adjacent_find(table, {}, &OpDef::name) == table.end());
  return table;
}

}  // namespace

std::span<const OpDef> all_ops() {
  static const std::vector<OpDef> table = build_table();
  return table;
}

const OpDef& find_op(std::string_view name) {
  const std::span<const OpDef> table = all_ops();
  const auto at = std::ranges::lower_bound(table, name, {}, [](const OpDef& op) { return std::string_view(op.name); });
  require(at != table.end() && at->name == name, Code::bad_argument, "there is no op named '", name, "'");
  return *at;
}

}  // namespace stoker
