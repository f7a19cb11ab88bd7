#include "backends/opencl/stage_launch.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

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

using Function = std::pair<std::string, std::string>;  // header, code

Function function_of(const Stage& stage) { return {stage.header, stage.code}; }

// A program that some launches share: it depends on a set of functions, not on their order or sizes.
struct SharedProgram {
  std::map<Function, int> functions;  // and their numbers
  std::size_t buffers = 2;            // 2, 4 or 8
  bool chain = false;

  [[nodiscard]] Program finish(const Device& device) {
    int next = 0;
    for (auto& [function, number] : functions) number = next++;
    std::string text = buffer_macros(static_cast<int>(buffers));
    text += kPrelude;
    text += for_items(device);
    std::set<std::string> headers;
    std::string calls = "#define STAGE_SWITCH";
    for (const auto& [function, number] : functions) {
      if (headers.insert(function.first).second) text += function.first;
      text += str("void stage_", number, "(STAGE_PARAMS) {\n", function.second, "}\n");
      calls += str(" case ", number, ": stage_", number, "(STAGE_PASS); break;");
    }
    return {.file = "stages",
            .header = text + calls + "\n",
            .defines = {{"LOCAL", static_cast<int>(stage_cut(device).local)}, {"CHAIN", chain ? 1 : 0}}};
  }
};

// Chooses programs. A GPU's registers are shared by its work-items: what runs in many groups gets a program of its own.
// Elsewhere every further program costs its building, and one too large costs more than several.
class ProgramChooser {
 public:
  explicit ProgramChooser(const Device& device) : device_(device) {}

  // The number of the program that `group` joins.
  std::size_t choose(const StageGroup& group) {
    constexpr std::size_t kMostFunctions = 24;
    std::set<Function> own;
    for (const Waiting& waiting : group.stages()) own.insert(function_of(waiting.stage));
    const bool chain = group.is_chain() || device_.is_cpu();  // which can do what the other kind does
    std::size_t best = programs.size();
    std::size_t least = kMostFunctions + 1;
    for (std::size_t i = 0; i < programs.size(); ++i) {
      if (programs[i].chain != chain) continue;
      const auto is_new = [&](const Function& function) { return !programs[i].functions.contains(function); };
      const auto added = static_cast<std::size_t>(std::ranges::count_if(own, is_new));
      const bool fits = added == 0 || (chain && programs[i].functions.size() + added <= kMostFunctions);
      if (!fits || (!chain && own.size() != programs[i].functions.size()) || added >= least) continue;
      best = i;
      least = added;
    }
    if (best == programs.size()) programs.push_back({.chain = chain});
    SharedProgram& program = programs[best];
    for (const Function& function : own) program.functions.emplace(function, 0);
    program.buffers = std::max(program.buffers, std::bit_ceil(group.buffers().size()));
    return best;
  }

  std::vector<SharedProgram> programs;

 private:
  const Device& device_;
};

// Writes the table of one group (kernels/stages.cl has its layout).
class TableWriter {
 public:
  TableWriter(const StageGroup& group, const std::map<Function, int>& functions, const StageCut& cut)
      : group_(group), functions_(functions), cut_(cut) {}

  Table run() {
    if (!group_.is_chain()) {
      for (const Waiting& waiting : group_.stages()) groups_ += groups_of(waiting.stage);
    } else {
      groups_ = 1;
    }
    table_.words.assign(static_cast<std::size_t>(groups_), 0);
    std::int64_t first = 0;
    std::size_t before = 0;
    for (std::size_t i = 0; i < group_.stages().size(); ++i) {
      const Waiting& waiting = group_.stages()[i];
      const std::size_t at = table_.words.size();
      if (group_.is_chain() && i > 0) {
        table_.words[before + 1] = static_cast<std::int32_t>(at);
        table_.words[before + 2] = waiting.level != group_.stages()[i - 1].level ? 1 : 0;
      } else {
        std::fill_n(table_.words.begin() + first, groups_of(waiting.stage), static_cast<std::int32_t>(at));
      }
      write_stage(waiting.stage, first);
      if (!group_.is_chain()) first += groups_of(waiting.stage);
      before = at;
    }
    return std::move(table_);
  }

  [[nodiscard]] std::int64_t groups() const { return groups_; }

 private:
  [[nodiscard]] std::int64_t groups_of(const Stage& stage) const {
    if (group_.is_chain() || stage.one_group) return 1;
    const auto by_bytes = static_cast<std::int64_t>(stage.cost.bytes / cut_.group_bytes);
    const std::int64_t groups = std::max({std::int64_t{1}, ceil_div(stage.items, cut_.group_items), by_bytes});
    // No more than have something to do.
    return std::min({groups, cut_.most_groups, ceil_div(stage.items, cut_.local)});
  }

  void write_stage(const Stage& stage, std::int64_t first_group) {
    add({functions_.at(function_of(stage)), 0, 0, static_cast<std::int32_t>(first_group),
         static_cast<std::int32_t>(groups_of(stage))});
    for (const Arg& arg : stage.args) write_arg(arg);
  }

  void write_arg(const Arg& arg) {
    const auto at = static_cast<int>(table_.words.size());
    switch (arg.kind) {
      case Arg::Kind::tensor:
        add({group_.slot(arg.place), 0});
        table_.patches.push_back({.word = at + 1, .place = arg.place, .element_bytes = arg.element_bytes});
        return;
      case Arg::Kind::integer: return add({static_cast<std::int32_t>(arg.number), 0});
      case Arg::Kind::real: return add({std::bit_cast<std::int32_t>(arg.value), 0});
      default: throw std::logic_error("stages: an argument is no tensor, integer or real");
    }
  }

  void add(std::initializer_list<std::int32_t> words) { table_.words.insert(table_.words.end(), words); }

  const StageGroup& group_;
  const std::map<Function, int>& functions_;
  const StageCut& cut_;
  std::int64_t groups_ = 0;
  Table table_;
};

MergedLaunch launch_of(const StageGroup& group, const SharedProgram& shared, const Program& program,
                       const StageCut& cut) {
  if (group.buffers().empty()) throw std::logic_error("stages: a stage has no tensor");
  MergedLaunch merged;
  Launch& launch = merged.launch;
  launch.kernel = "stages";
  launch.program = program;
  TableWriter writer(group, shared.functions, cut);
  launch.args.push_back(Arg::table(writer.run()));
  for (std::size_t i = 0; i < shared.buffers; ++i)
    launch.args.push_back(group.buffers()[i < group.buffers().size() ? i : 0]);
  launch.global = {static_cast<std::size_t>(writer.groups() * cut.local), 1, 1};
  launch.local = {static_cast<std::size_t>(cut.local), 1, 1};
  std::set<int> steps;
  for (const Waiting& waiting : group.stages()) {
    steps.insert(waiting.step);
    launch.cost.flops += waiting.stage.cost.flops;
    launch.cost.bytes += waiting.stage.cost.bytes;
  }
  merged.steps.assign(steps.begin(), steps.end());
  return merged;
}

}  // namespace

std::string_view for_items(const Device& device) { return device.is_cpu() ? kForItemsCpu : kForItemsGpu; }

StageCut stage_cut(const Device& device) {
  if (device.is_cpu()) {
    return {.local = 1,
            .group_items = 1 << 30,
            .group_bytes = 96 << 10,
            .most_groups = 64,
            .chain_items = 1 << 30,
            .chain_bytes = 640 << 10};
  }
  // 64: with 128 an Adreno 660 has too few registers for a long chain (Mesa's compiler: 4 spills), and Mali is advised
  // to stay at 64.
  return {.local = 64,
          .group_items = 512,
          .group_bytes = 64 << 10,
          .most_groups = 256,
          .chain_items = 4096,
          .chain_bytes = 128 << 10};
}

bool StageGroup::has_room(const Stage& stage) const {
  std::set<int> numbers;
  for (const auto& [number, slot] : slots_) numbers.insert(number);
  for (const Arg& arg : stage.args) {
    if (arg.kind == Arg::Kind::tensor) numbers.insert((*buffer_of_)(arg.place));
  }
  return numbers.size() <= kStageBuffers;
}

void StageGroup::add(Waiting waiting) {
  for (const Arg& arg : waiting.stage.args) {
    if (arg.kind != Arg::Kind::tensor) continue;
    if (slots_.emplace((*buffer_of_)(arg.place), static_cast<int>(buffers_.size())).second)
      buffers_.push_back(Arg::buffer(arg.place));
  }
  stages_.push_back(std::move(waiting));
}

std::vector<MergedLaunch> stage_launches(std::span<const StageGroup> groups, const Device& device) {
  const StageCut cut = stage_cut(device);
  ProgramChooser chooser(device);
  std::vector<std::size_t> chosen;
  for (const StageGroup& group : groups) chosen.push_back(chooser.choose(group));
  std::vector<Program> programs;
  for (SharedProgram& shared : chooser.programs) programs.push_back(shared.finish(device));
  std::vector<MergedLaunch> launches;
  for (std::size_t i = 0; i < groups.size(); ++i)
    launches.push_back(launch_of(groups[i], chooser.programs[chosen[i]], programs[chosen[i]], cut));
  return launches;
}

}  // namespace stoker::opencl
