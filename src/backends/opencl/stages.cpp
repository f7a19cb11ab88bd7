#include "backends/opencl/stages.h"

#include <algorithm>

#include "backends/opencl/stage_launch.h"
#include "base/error.h"

namespace stoker::opencl {
namespace {

std::vector<Place> places_of(const Stage& stage, bool written) {
  std::vector<Place> places;
  for (std::size_t i = 0; i < stage.args.size(); ++i) {
    if (stage.args[i].kind == Arg::Kind::tensor && stage.written[i] == written) places.push_back(stage.args[i].place);
  }
  return places;
}

bool any_overlap(std::span<const Place> a, std::span<const Place> b) {
  return std::ranges::any_of(
      a, [&](const Place& x) { return std::ranges::any_of(b, [&](const Place& y) { return overlap(x, y); }); });
}

struct Access {
  std::vector<Place> reads;
  std::vector<Place> writes;
};

// Whether the order of the two matters.
bool conflict(const Access& a, const Access& b) {
  return any_overlap(a.writes, b.writes) || any_overlap(a.writes, b.reads) || any_overlap(a.reads, b.writes);
}

Access access_of(const Stage& stage) { return {places_of(stage, false), places_of(stage, true)}; }

class Merger {
 public:
  Merger(const Device& device, const std::function<int(const Place&)>& buffer_of, bool merge)
      : device_(device), buffer_of_(buffer_of), merge_(merge) {}

  void add(StepWork&& work) {
    if (auto* stage = std::get_if<Stage>(&work.work)) {
      DCHECK(stage->written.size() == stage->args.size());
      waiting_.push_back({.step = work.step, .stage = std::move(*stage)});
      accesses_.push_back(access_of(waiting_.back().stage));
      if (!merge_) flush();
      return;
    }
    const Access access{std::move(work.reads), std::move(work.writes)};
    if (std::ranges::any_of(accesses_, [&](const Access& other) { return conflict(access, other); })) flush();
    order_.push_back(static_cast<int>(large_.size()));
    large_.push_back({std::move(std::get<Launch>(work.work)), {work.step}});
  }

  std::vector<MergedLaunch> finish() {
    flush();
    std::vector<MergedLaunch> merged = stage_launches(groups_, device_);
    std::vector<MergedLaunch> launches;
    auto next = merged.begin();
    for (const int number : order_)
      launches.push_back(std::move(number == kMerged ? *next++ : large_[static_cast<std::size_t>(number)]));
    return launches;
  }

 private:
  static constexpr int kMerged = -1;

  // The stages by level: each one level after the last that it needs, but what nobody waits for (updates, large ones
  // among them) in the last, together.
  std::vector<std::vector<Waiting*>> find_levels() {
    std::vector<bool> needed(waiting_.size(), false);
    int deepest = 0;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      int& level = waiting_[i].level;
      for (std::size_t k = 0; k < i; ++k) {
        if (!conflict(accesses_[k], accesses_[i])) continue;
        needed[k] = true;
        level = std::max(level, waiting_[k].level + 1);
      }
      deepest = std::max(deepest, level);
    }
    std::vector<std::vector<Waiting*>> levels(static_cast<std::size_t>(deepest) + 1);
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (!needed[i]) waiting_[i].level = deepest;
      levels[static_cast<std::size_t>(waiting_[i].level)].push_back(&waiting_[i]);
    }
    return levels;
  }

  // A run of small levels is a chain; a large one is a launch of its own.
  void flush() {
    std::vector<Waiting*> chain;
    int chained = 0;  // levels
    const auto end_chain = [&] {
      emit(chain, chained > 1);
      chain.clear();
      chained = 0;
    };
    for (const std::vector<Waiting*>& level : find_levels()) {
      std::int64_t items = 0;
      double bytes = 0;
      for (const Waiting* waiting : level) {
        items += waiting->stage.items;
        bytes += waiting->stage.cost.bytes;
      }
      const StageCut cut = stage_cut(device_);
      const bool small = items <= cut.chain_items && bytes <= cut.chain_bytes;
      if (!small) end_chain();
      chain.insert(chain.end(), level.begin(), level.end());
      ++chained;
      if (!small) end_chain();
    }
    end_chain();
    waiting_.clear();
    accesses_.clear();
  }

  void emit(std::span<Waiting* const> stages, bool chain) {
    while (!stages.empty()) {
      StageGroup& group = groups_.emplace_back(buffer_of_, chain);
      std::size_t count = 0;
      do group.add(std::move(*stages[count++]));
      while (count < stages.size() && group.has_room(stages[count]->stage));
      order_.push_back(kMerged);
      stages = stages.subspan(count);
    }
  }

  const Device& device_;
  const StageGroup::BufferOf& buffer_of_;
  bool merge_;
  std::vector<Waiting> waiting_;
  std::vector<Access> accesses_;     // of each of waiting_
  std::vector<StageGroup> groups_;   // the merged launches to be
  std::vector<MergedLaunch> large_;  // the launches that came as such
  std::vector<int> order_;           // kMerged: the next of groups_; else a number in large_
};

}  // namespace

bool overlap(const Place& a, const Place& b) {
  if (a.kind != b.kind || a.kind == Place::Kind::none) return false;
  if (a.kind != Place::Kind::arena && a.index != b.index) return false;
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

std::vector<MergedLaunch> merge_stages(std::vector<StepWork> work, const Device& device,
                                       const std::function<int(const Place&)>& buffer_of, bool merge) {
  Merger merger(device, buffer_of, merge);
  for (StepWork& item : work) merger.add(std::move(item));
  return merger.finish();
}

}  // namespace stoker::opencl
