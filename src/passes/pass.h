// Passes: each takes a graph and gives a new one that computes the same. They run in a fixed order; each has a name,
// can be switched off, and is followed by the verifier.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/target.h"

namespace stoker {

struct PassOptions {
  std::vector<std::string> off;  // names of passes to leave out
  // Called after each pass with the graphs before and after it.
  std::function<void(std::string_view pass, const Graph& before, const Graph& after)> observe;

  [[nodiscard]] bool is_on(std::string_view name) const;
};

struct Pass {
  const char* name;
  const char* summary;  // one line for people
  bool required;        // cannot be switched off: the backends rely on it
  Graph (*run)(const Graph& graph, const Target& target, const PassOptions& options);
};

[[nodiscard]] std::span<const Pass> all_passes();

// Names that are switched off like passes but act elsewhere: in-place and early-update belong to the planner, winograd
// to the backends' convolutions.
inline constexpr const char* kInPlace = "in-place";
inline constexpr const char* kEarlyUpdate = "early-update";
inline constexpr const char* kWinograd = "winograd";

// An Error if `off` names no pass or one that is required.
[[nodiscard]] Graph run_passes(const Graph& graph, const Target& target, const PassOptions& options = {});

// The passes themselves, one file each.
[[nodiscard]] Graph expand(const Graph& graph, const Target& target, const PassOptions& options);
[[nodiscard]] Graph fold_constants(const Graph& graph, const Target& target, const PassOptions& options);
[[nodiscard]] Graph eliminate_common(const Graph& graph, const Target& target, const PassOptions& options);
[[nodiscard]] Graph eliminate_dead(const Graph& graph, const Target& target, const PassOptions& options);
[[nodiscard]] Graph fuse_pointwise(const Graph& graph, const Target& target, const PassOptions& options);
[[nodiscard]] Graph fuse_epilogue(const Graph& graph, const Target& target, const PassOptions& options);
[[nodiscard]] Graph fuse_prologue(const Graph& graph, const Target& target, const PassOptions& options);

}  // namespace stoker
