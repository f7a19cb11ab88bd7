#include "backends/opencl/stages.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "base/error.h"

namespace stoker::opencl {
namespace {

// What stage functions are written with. An argument is two words behind the stage's own five: a tensor's buffer and
// its offset, or a number and nothing.
constexpr std::string_view kPrelude = R"(#define STAGE_PARAMS \
  global const int *stage_words, int stage_item, int stage_items, local float *stage_scratch, STAGE_BUFFERS
#define INT(k) (stage_words[5 + 2 * (k)])
#define REAL(k) as_float(stage_words[5 + 2 * (k)])
#define STAGE_TENSOR(type, k) ((global type *)STAGE_BUFFER(stage_words[5 + 2 * (k)]) + stage_words[6 + 2 * (k)])
#define F32(k) STAGE_TENSOR(float, k)
#define I32(k) STAGE_TENSOR(int, k)
#define U8(k) STAGE_TENSOR(uchar, k)
#define I64(k) STAGE_TENSOR(long, k)
#define F16(k) STAGE_TENSOR(half, k)
#define U16(k) STAGE_TENSOR(ushort, k)
#define ITEM stage_item
#define ITEMS stage_items
#define SCRATCH stage_scratch
)";
// A GPU's work-items side by side read side by side; a CPU's thread reads on, and its one work-item waits for nobody
// (PoCL copies all the code behind a barrier that stands in a branch).
constexpr std::string_view kForItemsGpu =
    R"(#define FOR_ITEMS(i, n) for (int i = ITEM; i < (n); i += ITEMS)
#define SYNC() barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE)
)";
constexpr std::string_view kForItemsCpu = R"(#define STAGE_SHARE(n) (((n) + ITEMS - 1) / ITEMS)
#define FOR_ITEMS(i, n) \
  for (int i = STAGE_SHARE(n) * ITEM, i##_end = min(STAGE_SHARE(n) * (ITEM + 1), (int)(n)); i < i##_end; ++i)
#define SYNC()
)";

// The buffers as parameters, as arguments, and chosen by number. A choice between few is cheaper.
std::string buffer_macros(int count) {
  std::string params;
  std::string pass;
  std::string choice = str("stage_b", count - 1);
  for (int i = 0; i < count; ++i) {
    params += str(i > 0 ? ", " : "", "global uchar* stage_b", i);
    pass += str(", stage_b", i);
  }
  for (int i = count - 2; i >= 0; --i) choice = str("((s) == ", i, " ? stage_b", i, " : ", choice, ")");
  return str("#define STAGE_BUFFERS ", params, "\n#define STAGE_PASS words, item, items, scratch", pass,
             "\n#define STAGE_BUFFER(s) ", choice, "\n");
}

// How a device's stages are cut.
struct Cut {
  std::int64_t local = 1;        // work-items of a group
  std::int64_t group_items = 1;  // of Stage::items that one group takes on
  std::int64_t most_groups = 1;  // of one stage
  std::int64_t chain_items = 1;  // a level of more of Stage::items is too large for one group
};

Cut cut_of(const Device& device) {
  if (device.is_cpu()) return {.local = 1, .group_items = 2048, .most_groups = 64, .chain_items = 8192};
  return {.local = 128, .group_items = 512, .most_groups = 256, .chain_items = 4096};
}

// A stage that waits for its launch.
struct Waiting {
  int step = 0;
  Stage stage;
  int level = 0;  // stages of one level do not need each other
};

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

using Function = std::pair<std::string, std::string>;  // header, code
using Functions = std::set<Function>;

// Builds one launch out of stages.
class LaunchBuilder {
 public:
  LaunchBuilder(const Cut& cut, const Device& device, const std::function<int(const Place&)>& buffer_of, bool chain)
      : cut_(cut), device_(device), buffer_of_(buffer_of), chain_(chain) {}

  // Whether the launch has buffers left for the stage.
  [[nodiscard]] bool has_room(const Stage& stage) const {
    std::set<int> numbers;
    for (const auto& [number, slot] : slots_) numbers.insert(number);
    for (const Arg& arg : stage.args) {
      if (arg.kind == Arg::Kind::tensor) numbers.insert(buffer_of_(arg.place));
    }
    return numbers.size() <= kStageBuffers;
  }

  void add(const Waiting& waiting) {
    for (const Arg& arg : waiting.stage.args) {
      if (arg.kind != Arg::Kind::tensor) continue;
      if (slots_.emplace(buffer_of_(arg.place), static_cast<int>(buffers_.size())).second)
        buffers_.push_back(Arg::buffer(arg.place));
    }
    functions_.emplace(waiting.stage.header, waiting.stage.code);
    entries_.push_back(waiting);
  }

  [[nodiscard]] const Functions& functions() const { return functions_; }
  // 2, 4 or 8, so that few programs differ in nothing else.
  [[nodiscard]] int buffer_count() const { return buffers_.size() <= 2 ? 2 : buffers_.size() <= 4 ? 4 : kStageBuffers; }

  // As a launch of a program that has `functions`, the launch's own among them.
  [[nodiscard]] MergedLaunch finish(const Functions& functions) {
    for (const Function& function : functions) number_of_.emplace(function, static_cast<int>(number_of_.size()));
    MergedLaunch merged;
    Launch& launch = merged.launch;
    launch.kernel = "stages";
    launch.program = {.file = "stages", .header = header()};
    launch.program.defines = {{"LOCAL", static_cast<int>(cut_.local)}};
    const std::int64_t groups = write_table();
    launch.args.push_back(Arg::table(std::move(table_)));
    if (buffers_.empty()) throw std::logic_error("stages: a stage has no tensor");
    for (int i = 0; i < buffer_count(); ++i)
      launch.args.push_back(buffers_[i < static_cast<int>(buffers_.size()) ? static_cast<std::size_t>(i) : 0]);
    launch.global = {static_cast<std::size_t>(groups * cut_.local), 1, 1};
    launch.local = {static_cast<std::size_t>(cut_.local), 1, 1};
    std::set<int> steps;
    for (const Waiting& entry : entries_) {
      steps.insert(entry.step);
      launch.cost.flops += entry.stage.cost.flops;
      launch.cost.bytes += entry.stage.cost.bytes;
    }
    merged.steps.assign(steps.begin(), steps.end());
    return merged;
  }

 private:
  [[nodiscard]] std::string header() const {
    std::string text = buffer_macros(buffer_count()) + std::string(kPrelude) + std::string(for_items(device_));
    std::set<std::string> headers;
    for (const auto& [function, number] : number_of_) {
      if (headers.insert(function.first).second) text += function.first;
    }
    std::string calls = "#define STAGE_SWITCH";
    for (const auto& [function, number] : number_of_) {
      text += str("void stage_", number, "(STAGE_PARAMS) {\n", function.second, "}\n");
      calls += str(" case ", number, ": stage_", number, "(STAGE_PASS); break;");
    }
    return text + calls + "\n";
  }

  [[nodiscard]] std::int64_t groups_of(const Stage& stage) const {
    if (chain_ || stage.one_group) return 1;
    return std::clamp<std::int64_t>(ceil_div(stage.items, cut_.group_items), 1, cut_.most_groups);
  }

  // Returns the number of groups.
  std::int64_t write_table() {
    std::int64_t groups = 0;
    for (const Waiting& entry : entries_) groups += groups_of(entry.stage);
    if (chain_) groups = 1;
    table_.words.assign(static_cast<std::size_t>(groups), 0);
    std::size_t group = 0;
    std::size_t before = 0;  // the entry before, in a chain
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const Stage& stage = entries_[i].stage;
      const std::size_t at = table_.words.size();
      if (chain_ && i > 0) {
        table_.words[before + 1] = static_cast<std::int32_t>(at);
        table_.words[before + 2] = entries_[i].level != entries_[i - 1].level ? 1 : 0;
      }
      before = at;
      const std::int64_t own = groups_of(stage);
      const std::size_t first = chain_ ? 0 : std::exchange(group, group + static_cast<std::size_t>(own));
      if (!chain_ || i == 0)
        std::fill_n(table_.words.begin() + static_cast<std::ptrdiff_t>(first), own, static_cast<std::int32_t>(at));
      const Function function{stage.header, stage.code};
      table_.words.insert(table_.words.end(), {number_of_.at(function), 0, 0, static_cast<std::int32_t>(first),
                                               static_cast<std::int32_t>(own)});
      for (const Arg& arg : stage.args) write_arg(arg);
    }
    return groups;
  }

  void write_arg(const Arg& arg) {
    const auto at = static_cast<int>(table_.words.size());
    switch (arg.kind) {
      case Arg::Kind::tensor:
        table_.words.insert(table_.words.end(), {slots_.at(buffer_of_(arg.place)), 0});
        table_.patches.push_back({.word = at + 1, .place = arg.place, .element_bytes = arg.element_bytes});
        return;
      case Arg::Kind::integer:
        table_.words.insert(table_.words.end(), {static_cast<std::int32_t>(arg.number), 0});
        return;
      case Arg::Kind::real:
        table_.words.insert(table_.words.end(), {std::bit_cast<std::int32_t>(arg.value), 0});
        return;
      default: throw std::logic_error("stages: an argument is no tensor, integer or real");
    }
  }

  const Cut& cut_;
  const Device& device_;
  const std::function<int(const Place&)>& buffer_of_;
  bool chain_;
  std::vector<Waiting> entries_;
  std::map<int, int> slots_;  // by the buffer's number
  std::vector<Arg> buffers_;
  Functions functions_;
  std::map<Function, int> number_of_;
  Table table_;
};

// Launches share programs, so that a function is compiled once or twice and not with every set that it occurs in. Some
// compilers take long over large programs.
class SharedPrograms {
 public:
  static constexpr std::size_t kMostFunctions = 16;

  // Largest sets first: the small ones fit in beside them.
  void add(int buffers, const Functions& functions) {
    Shared* best = nullptr;
    std::size_t least = 0;
    for (Shared& shared : shared_) {
      if (shared.buffers != buffers) continue;
      const auto missing = static_cast<std::size_t>(
          std::ranges::count_if(functions, [&](const Function& f) { return !shared.functions.contains(f); }));
      if (missing > 0 && shared.functions.size() + missing > kMostFunctions) continue;
      if (best == nullptr || missing < least) {
        best = &shared;
        least = missing;
      }
    }
    if (best == nullptr) best = &shared_.emplace_back(Shared{buffers, {}});
    best->functions.insert(functions.begin(), functions.end());
  }

  [[nodiscard]] const Functions& find(int buffers, const Functions& functions) const {
    const auto at = std::ranges::find_if(shared_, [&](const Shared& shared) {
      return shared.buffers == buffers && std::ranges::includes(shared.functions, functions);
    });
    DCHECK(at != shared_.end());
    return at->functions;
  }

 private:
  struct Shared {
    int buffers = 0;
    Functions functions;
  };
  std::vector<Shared> shared_;
};

class Merger {
 public:
  Merger(const Device& device, const std::function<int(const Place&)>& buffer_of)
      : cut_(cut_of(device)), device_(device), buffer_of_(buffer_of) {}

  void add(StepWork&& work) {
    if (auto* stage = std::get_if<Stage>(&work.work)) {
      DCHECK(stage->written.size() == stage->args.size());
      waiting_.push_back({.step = work.step, .stage = std::move(*stage)});
      accesses_.push_back(access_of(waiting_.back().stage));
      return;
    }
    const Access access{std::move(work.reads), std::move(work.writes)};
    if (std::ranges::any_of(accesses_, [&](const Access& other) { return conflict(access, other); })) flush();
    launches_.push_back({std::move(std::get<Launch>(work.work)), {work.step}});
  }

  std::vector<MergedLaunch> finish() {
    flush();
    std::vector<const LaunchBuilder*> by_size;
    for (const auto& [at, builder] : builders_) by_size.push_back(&builder);
    std::ranges::stable_sort(by_size, std::ranges::greater{},
                             [](const LaunchBuilder* b) { return b->functions().size(); });
    SharedPrograms programs;
    for (const LaunchBuilder* builder : by_size) programs.add(builder->buffer_count(), builder->functions());
    for (auto& [at, builder] : builders_)
      launches_[at] = builder.finish(programs.find(builder.buffer_count(), builder.functions()));
    return std::move(launches_);
  }

 private:
  // The stages by level, each stage one level after the last that it needs.
  std::vector<std::vector<const Waiting*>> find_levels() {
    std::vector<std::vector<const Waiting*>> levels;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      int& level = waiting_[i].level;
      for (std::size_t k = 0; k < i; ++k) {
        if (waiting_[k].level >= level && conflict(accesses_[k], accesses_[i])) level = waiting_[k].level + 1;
      }
      levels.resize(std::max(levels.size(), static_cast<std::size_t>(level) + 1));
      levels[static_cast<std::size_t>(level)].push_back(&waiting_[i]);
    }
    return levels;
  }

  // A run of small levels is a chain; a large one is a launch of its own.
  void flush() {
    std::vector<const Waiting*> chain;
    int chained = 0;  // levels
    const auto end_chain = [&] {
      emit(chain, chained > 1);
      chain.clear();
      chained = 0;
    };
    for (const std::vector<const Waiting*>& level : find_levels()) {
      std::int64_t items = 0;
      for (const Waiting* waiting : level) items += waiting->stage.items;
      const bool small = items <= cut_.chain_items;
      if (!small) end_chain();
      chain.insert(chain.end(), level.begin(), level.end());
      ++chained;
      if (!small) end_chain();
    }
    end_chain();
    waiting_.clear();
    accesses_.clear();
  }

  void emit(std::span<const Waiting* const> stages, bool chain) {
    while (!stages.empty()) {
      LaunchBuilder builder(cut_, device_, buffer_of_, chain);
      std::size_t count = 0;
      do builder.add(*stages[count++]);
      while (count < stages.size() && builder.has_room(stages[count]->stage));
      builders_.emplace_back(launches_.size(), std::move(builder));
      launches_.emplace_back();
      stages = stages.subspan(count);
    }
  }

  Cut cut_;
  const Device& device_;
  const std::function<int(const Place&)>& buffer_of_;
  std::vector<Waiting> waiting_;
  std::vector<Access> accesses_;  // of each of waiting_
  std::vector<MergedLaunch> launches_;
  std::vector<std::pair<std::size_t, LaunchBuilder>> builders_;  // of which launch
};

}  // namespace

std::string_view for_items(const Device& device) { return device.is_cpu() ? kForItemsCpu : kForItemsGpu; }

bool overlap(const Place& a, const Place& b) {
  if (a.kind != b.kind || a.kind == Place::Kind::none) return false;
  if (a.kind != Place::Kind::arena && a.index != b.index) return false;
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

std::vector<MergedLaunch> merge_stages(std::vector<StepWork> work, const Device& device,
                                       const std::function<int(const Place&)>& buffer_of) {
  Merger merger(device, buffer_of);
  for (StepWork& item : work) merger.add(std::move(item));
  return merger.finish();
}

}  // namespace stoker::opencl
