#include "backends/opencl/single.h"

#include <algorithm>

#include "backends/opencl/stages.h"
#include "base/error.h"

namespace stoker::opencl {
namespace {

constexpr std::string_view kMacros = R"(#define F32(k) ((global float*)single_##k + single_##k##_at)
#define I32(k) ((global int*)single_##k + single_##k##_at)
#define I64(k) ((global long*)single_##k + single_##k##_at)
#define F16(k) ((global half*)single_##k + single_##k##_at)
#define U16(k) ((global ushort*)single_##k + single_##k##_at)
#define U8(k) (single_##k + single_##k##_at)
#define INT(k) single_##k
#define REAL(k) single_##k
#define ITEM ((int)get_global_id(0))
#define ITEMS ((int)get_global_size(0))
#define SCRATCH single_scratch
)";

// A body as the one line that a macro is. Line comments would swallow what follows.
std::string one_line(std::string code) {
  DCHECK(code.find("//") == std::string::npos);
  std::ranges::replace(code, '\n', ' ');
  return code;
}

std::string parameters(const Stage& stage) {
  std::string text;
  for (std::size_t k = 0; k < stage.args.size(); ++k) {
    if (k > 0) text += ", ";
    switch (stage.args[k].kind) {
      case Arg::Kind::tensor: text += str("global uchar* single_", k, ", int single_", k, "_at"); break;
      case Arg::Kind::integer: text += str("int single_", k); break;
      case Arg::Kind::real: text += str("float single_", k); break;
      default: throw std::logic_error("single: an argument is no tensor, integer or real");
    }
  }
  return text;
}

}  // namespace

Launch single_launch(const Stage& stage, const Device& device) {
  constexpr std::int64_t kMostRuns = 64;           // of a CPU; enough for any number of cores
  constexpr std::int64_t kMostItems = 256 * 1024;  // of a GPU; beyond it items loop
  const std::int64_t local = device.is_cpu() ? 1 : stage.one_group ? 128 : 64;
  std::int64_t global =
      device.is_cpu() ? std::min(stage.items, kMostRuns) : round_up(std::min(stage.items, kMostItems), local);
  if (stage.one_group) global = local;
  Launch launch{.kernel = "single", .args = stage.args, .cost = stage.cost};
  const char* scratch = stage.one_group ? "local float single_scratch[LOCAL];" : "";
  launch.program = {
      .file = "single",
      .header = str(kMacros, for_items(device), stage.header, "#define SINGLE_PARAMS ", parameters(stage),
                    "\n#define SINGLE_SCRATCH ", scratch, "\n#define SINGLE_BODY ", one_line(stage.code), "\n"),
      .defines = {{"LOCAL", static_cast<int>(local)}}};
  launch.global = {static_cast<std::size_t>(global), 1, 1};
  launch.local = {static_cast<std::size_t>(local), 1, 1};
  return launch;
}

Work stage_or_launch(Stage stage, std::int64_t elements, const Device& device) {
  if (elements > kSmallElements) return single_launch(stage, device);
  return stage;
}

}  // namespace stoker::opencl
