// Turns groups of stages into launches of kernels/stages.cl: their functions into programs that launches share, their
// arguments into tables.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "backends/opencl/stages.h"

namespace stoker::opencl {

// A stage with its place in the order.
struct Waiting {
  int step = 0;
  Stage stage;
  int level = 0;  // stages of one level do not need each other
};

// How a device's stages are cut.
struct StageCut {
  std::int64_t local = 1;        // work-items of a group
  std::int64_t group_items = 1;  // of Stage::items that one group takes on
  double group_bytes = 1;        // of Stage::cost
  std::int64_t most_groups = 1;  // of one stage
  std::int64_t chain_items = 1;  // a level of more Stage::items or bytes is too large for one group
  double chain_bytes = 1;
};
[[nodiscard]] StageCut stage_cut(const Device& device);

// Stages that become one launch.
class StageGroup {
 public:
  using BufferOf = std::function<int(const Place&)>;

  // A chain runs in one work-group; otherwise each stage has work-groups of its own.
  StageGroup(const BufferOf& buffer_of, bool chain) : buffer_of_(&buffer_of), chain_(chain) {}

  // Whether the launch has buffers left for the stage.
  [[nodiscard]] bool has_room(const Stage& stage) const;
  void add(Waiting waiting);

  [[nodiscard]] bool is_chain() const { return chain_; }
  [[nodiscard]] std::span<const Waiting> stages() const { return stages_; }
  [[nodiscard]] std::span<const Arg> buffers() const { return buffers_; }
  [[nodiscard]] int slot(const Place& place) const { return slots_.at((*buffer_of_)(place)); }

 private:
  const BufferOf* buffer_of_;
  bool chain_;
  std::vector<Waiting> stages_;
  std::map<int, int> slots_;  // by the buffer's number
  std::vector<Arg> buffers_;
};

// One launch for each group. Groups share programs where that leaves few enough functions in each.
[[nodiscard]] std::vector<MergedLaunch> stage_launches(std::span<const StageGroup> groups, const Device& device);

}  // namespace stoker::opencl
