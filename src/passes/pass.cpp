#include "passes/pass.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "graph/op_def.h"

namespace stoker {
namespace {

constexpr std::array kPasses = {
    Pass{"expand", "write composite ops (batch norm, layer norm) in simpler ones", true, expand},
    Pass{"fold-constants", "compute what depends on constants alone", false, fold_constants},
    Pass{"cse", "compute equal values once", false, eliminate_common},
    Pass{"dce", "drop what nothing needs", false, eliminate_dead},
    Pass{"fuse-pointwise", "join pointwise ops into expressions, recomputing cheap ones where they are used", false,
         fuse_pointwise},
    Pass{"fuse-epilogue", "let the op that makes a tensor do the pointwise work and the channel sums that follow",
         false, fuse_epilogue},
    Pass{"fuse-prologue", "let the op that reads a tensor do the pointwise work before it while loading", false,
         fuse_prologue},
};

// Convolutions without a `winograd` attribute leave the choice to the kernel.
Graph without_winograd(Graph graph) {
  for (Node& node : graph.nodes) {
    if (node.op->name.starts_with("conv2d")) node.attrs.set("winograd", std::int64_t{0});
  }
  return graph;
}

}  // namespace

bool PassOptions::is_on(std::string_view name) const { return std::ranges::find(off, name) == off.end(); }

std::span<const Pass> all_passes() { return kPasses; }

Graph run_passes(const Graph& graph, const Target& target, const PassOptions& options) {
  for (const std::string& name : options.off) {
    if (name == kInPlace || name == kEarlyUpdate || name == kWinograd) continue;
    std::string known;
    for (const Pass& pass : kPasses) {
      if (!pass.required) known += std::string(pass.name) + ", ";
    }
    const auto at = std::ranges::find(kPasses, name, [](const Pass& pass) { return std::string(pass.name); });
    require(at != kPasses.end() && !at->required, Code::bad_argument, "no pass named '", name,
            "' can be switched off; there are: ", known, kInPlace, ", ", kEarlyUpdate, ", ", kWinograd);
  }
  Graph current = graph;
  verify(current);
  for (const Pass& pass : kPasses) {
    if (!options.is_on(pass.name)) continue;
    Graph next = pass.run(current, target, options);
    verify(next);
    if (options.observe) options.observe(pass.name, current, next);
    current = std::move(next);
  }
  return options.is_on(kWinograd) ? current : without_winograd(std::move(current));
}

}  // namespace stoker
