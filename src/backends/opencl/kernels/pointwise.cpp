// Pointwise nodes: one loop rendered from the node's expression. A small node is a stage, a large one a launch; both
// run the same code, in vectors along channels: 4 wide on GPUs, as wide as float registers go on CPUs.
#include <algorithm>
#include <array>

#include "backends/opencl/kernels/pointwise_domain.h"
#include "backends/opencl/render.h"
#include "backends/opencl/single.h"
#include "backends/opencl/stage_builder.h"
#include "backends/opencl/tuning.h"
#include "base/error.h"

namespace stoker::opencl {
namespace {

// How the rows are cut. Each chunk of rows has its own partial sums; a node with one chunk writes its sums itself.
struct RowCut {
  std::int64_t rows = 1;  // of a chunk
  std::int64_t chunks = 1;
};

RowCut cut_rows(const PointDomain& domain, const Device& device) {
  const std::int64_t channels = std::max<std::int64_t>(1, domain.channels);
  std::int64_t rows = 1;
  if (device.is_cpu()) {
    rows = std::max(ceil_div(4096, channels), ceil_div(domain.rows, 64));
  } else if (domain.sums > 0) {
    // Few rows of partials, yet some thousand work-items, each with a vector of channels.
    rows = std::max<std::int64_t>(8, ceil_div(domain.rows, std::clamp<std::int64_t>(16384 / channels, 1, 256)));
  }
  return {.rows = rows, .chunks = std::max<std::int64_t>(1, ceil_div(domain.rows, rows))};
}

// Writes the code of one node.
class PointCode {
 public:
  PointCode(const KernelContext& context, const PointDomain& domain, const RowCut& cut)
      : context_(context), domain_(domain), cut_(cut), aligned_(!context.device.is_cpu()) {}

  Stage run(const std::vector<int>& widths) {
    declare_inputs();
    declare_outputs();
    std::vector<int> rendered = widths;
    rendered.push_back(1);  // what is left over
    stage_.header(render_prelude(domain_.expr, rendered));
    if (domain_.flat) {
      flat(widths);
    } else {
      rows(widths);
    }
    const auto elements = static_cast<double>(domain_.elements());
    const auto tensors = static_cast<double>(domain_.args.size() + domain_.results.size());
    return stage_.finish(items_, elements * static_cast<double>(domain_.expr.code.size()), elements * tensors);
  }

 private:
  // Declares a tensor; returns the text that code uses for its pointer.
  std::string declare(const std::string& name, DType dtype, const Place& place, bool written) {
    constexpr std::size_t kMostVariables = 12;
    const bool few_registers = context_.device.family == Family::mali;  // 32 for full occupancy
    if (few_registers || domain_.args.size() + domain_.results.size() > kMostVariables)
      return stage_.pointer(dtype, place, written);
    stage_.tensor(name, dtype, place, written);
    return name;
  }

  void declare_inputs() {
    const std::vector<bool> used = used_operands(domain_.expr);
    bool broadcasts = false;
    for (std::size_t k = 0; k < domain_.args.size(); ++k) {
      const PointArg& arg = domain_.args[k];
      inputs_.emplace_back();
      if (k >= used.size() || !used[k]) continue;
      inputs_[k] = declare(str("x", k), arg.dtype, context_.inputs[static_cast<std::size_t>(arg.input)], false);
      if (arg.access != Access::broadcast) continue;
      broadcasts = true;
      for (std::size_t d = 0; d < arg.strides.size(); ++d) stage_.integer(str("s", k, "_", d), arg.strides[d]);
    }
    for (std::size_t d = 1; broadcasts && d < domain_.outer.size(); ++d) stage_.integer(str("D", d), domain_.outer[d]);
  }

  void declare_outputs() {
    int sum = 0;
    const bool partial = domain_.sums > 0 && cut_.chunks > 1;
    for (std::size_t j = 0; j < domain_.results.size(); ++j) {
      const bool stored = domain_.results[j] == ResultKind::store;
      outputs_.emplace_back();
      if (stored || !partial) {
        const std::string name = stored ? str("y", j) : str("sums", sum++);
        outputs_[j] = declare(name, context_.node.outputs[j].dtype, context_.outputs[j], true);
        if (!stored) sums_.push_back(outputs_[j]);
      }
    }
    if (partial) stage_.tensor("sums", DType::f32, context_.scratch, true);
  }

  [[nodiscard]] std::vector<OperandText> operands(int width) const {
    std::vector<OperandText> texts;
    for (std::size_t k = 0; k < domain_.args.size(); ++k) {
      const PointArg& arg = domain_.args[k];
      const std::string& x = inputs_[k];
      const auto spread = [&](const std::string& index) {
        const std::string value = load_text(arg.dtype, x, index, 1, false);
        return width == 1 ? value : str("(float", width, ")(", value, ")");
      };
      const bool whole = arg.dtype == DType::i32 || arg.dtype == DType::i64;
      switch (arg.access) {
        case Access::full: texts.push_back({load_text(arg.dtype, x, "i", width, aligned_), {}}); break;
        case Access::channel: texts.push_back({load_text(arg.dtype, x, "c", width, aligned_), {}}); break;
        case Access::row: texts.push_back({spread("row"), {}}); break;
        case Access::scalar: texts.push_back({spread("0"), whole ? x + "[0]" : ""}); break;
        case Access::broadcast:
          texts.push_back(
              {arg.along_channels ? load_text(arg.dtype, x, str("o", k, " + c"), width, aligned_) : spread(str("o", k)),
               {}});
          break;
      }
    }
    return texts;
  }

  // Where the arguments that broadcast stand in this row.
  [[nodiscard]] std::string offsets() const {
    std::string text;
    std::string index;
    for (std::size_t d = domain_.outer.size(); d-- > 1;) {
      const std::string from = d + 1 == domain_.outer.size() ? "row" : str("q", d + 1);
      index += str("  const int q", d, " = ", from, " / D", d, ", d", d, " = ", from, " - q", d, " * D", d, ";\n");
    }
    const std::vector<bool> used = used_operands(domain_.expr);
    for (std::size_t k = 0; k < domain_.args.size() && k < used.size(); ++k) {
      if (!used[k] || domain_.args[k].access != Access::broadcast) continue;
      text += str("  const int o", k, " = ");
      for (std::size_t d = 0; d < domain_.outer.size(); ++d) {
        const std::string position = d > 0 ? str("d", d) : domain_.outer.size() > 1 ? "q1" : "row";
        text += str(d > 0 ? " + " : "", position, " * s", k, "_", d);
      }
      text += ";\n";
    }
    return text.empty() ? "" : index + text;
  }

  [[nodiscard]] HoistedText expression(int width) const {
    // A GPU has few registers: vectors of channels are kept in them only where a loop over rows makes up for that.
    const auto channels = std::ranges::count(domain_.args, Access::channel, &PointArg::access);
    const bool keep = context_.device.is_cpu() || (domain_.sums > 0 && channels + domain_.sums <= 3);
    std::vector<bool> fixed;
    for (const PointArg& arg : domain_.args)
      fixed.push_back(arg.access == Access::scalar || (keep && arg.access == Access::channel));
    std::vector<std::string> results;
    std::string stores;
    int sum = 0;
    for (std::size_t j = 0; j < domain_.results.size(); ++j) {
      results.push_back(str("const ", vector_type("float", width), " r", j));
      if (domain_.results[j] == ResultKind::store) {
        stores +=
            "  " + store_text(context_.node.outputs[j].dtype, outputs_[j], "i", str("r", j), width, aligned_) + "\n";
      } else {
        stores += str("  sum", sum++, " += r", j, ";\n");
      }
    }
    HoistedText text = render_hoisted(domain_.expr, operands(width), fixed, results, width, "i");
    text.body = offsets() + text.body + stores;
    return text;
  }

  // All elements as one row: vectors, then what is left. A work-item without elements does not look at the scalars
  // either: another one may be writing a result over them.
  void flat(const std::vector<int>& widths) {
    stage_.integer("n", domain_.elements());
    const int width = widths.front();
    const HoistedText wide = expression(width);
    stage_.add(str("  if (ITEM < n / ", width, ") {\n", wide.head, "  FOR_ITEMS(v, n / ", width,
                   ") {\n  const int i = v * ", width, ";\n", wide.body, "  }\n  }\n"));
    items_ = std::max<std::int64_t>(1, domain_.elements() / width);
    if (width == 1 || domain_.elements() % width == 0) return;
    const HoistedText rest = expression(1);
    stage_.add(str("  if (ITEM < n % ", width, ") {\n", rest.head, "  for (int i = n / ", width, " * ", width,
                   " + ITEM; i < n; i += ITEMS) {\n", rest.body, "  }\n  }\n"));
  }

  // The rows of chunk k in a vector of channels c.
  [[nodiscard]] std::string column(int width) const {
    const HoistedText text = expression(width);
    const std::string type = vector_type("float", width);
    std::string clear;
    std::string store;
    for (int j = 0; j < domain_.sums; ++j) {
      clear += str("  ", type, " sum", j, " = 0.0f;\n");
      const std::string to = cut_.chunks > 1 ? "sums" : sums_[static_cast<std::size_t>(j)];
      const std::string index = cut_.chunks > 1 ? str("(k * ", domain_.sums, " + ", j, ") * C + c") : "c";
      store += "  " + store_text(DType::f32, to, index, str("sum", j), width, aligned_) + "\n";
    }
    return str(text.head, clear, "  for (int row = k * P; row < last; ++row) {\n  const int i = row * C + c;\n",
               text.body, "  }\n", store);
  }

  void rows(const std::vector<int>& widths) {
    stage_.integer("R", domain_.rows);
    stage_.integer("C", domain_.channels);
    stage_.integer("P", cut_.rows);
    stage_.integer("K", cut_.chunks);
    const std::string last = "  const int last = min(k * P + P, R);\n";
    if (!context_.device.is_cpu()) {  // an item has a vector of channels of a chunk
      const int width = widths.front();
      stage_.add(str("  const int Q = C / ", width,
                     ";\n  FOR_ITEMS(u, K * Q) {\n  const int k = u / Q, c = (u - k * Q) * ", width, ";\n", last,
                     column(width), "  }\n"));
      items_ = cut_.chunks * (domain_.channels / width);
      return;
    }
    stage_.add(str("  FOR_ITEMS(k, K) {\n", last, "  int c = 0;\n"));  // an item has chunks
    for (const int width : widths)
      stage_.add(str("  for (; c + ", width, " <= C; c += ", width, ") {\n", column(width), "  }\n"));
    stage_.add("  }\n");
    items_ = cut_.chunks;
  }

  const KernelContext& context_;
  const PointDomain& domain_;
  const RowCut& cut_;
  bool aligned_;
  StageBuilder stage_;
  std::vector<std::string> inputs_;   // pointers by operand
  std::vector<std::string> outputs_;  // by result; empty for sums that are partial
  std::vector<std::string> sums_;     // of sums that are written at once
  std::int64_t items_ = 1;
};

// A GPU's work-items have few registers: the more tensors (addresses and values), the narrower the vectors. Small nodes
// are short of work-items, not of width.
int gpu_width(const PointDomain& domain, const Device& device) {
  if (domain.elements() <= 4096) return 1;
  std::int64_t registers = static_cast<std::int64_t>(domain.results.size()) + domain.sums;
  const std::vector<bool> used = used_operands(domain.expr);
  for (std::size_t k = 0; k < used.size(); ++k) {
    if (!used[k]) continue;
    registers += domain.args[k].access == Access::scalar ? 1 : domain.args[k].access == Access::broadcast ? 3 : 2;
  }
  // Mali's 32 for full occupancy are used up sooner (Mesa's compiler: two tensors in, two out fit with vectors of 2).
  const int room = device.family == Family::mali ? 5 : 12;
  return registers <= room ? 4 : registers <= room + 4 ? 2 : 1;
}

// The vector widths that the channels need, the widest first.
std::vector<int> widths_for(const KernelContext& context, const PointDomain& domain) {
  if (context.tuning.is_plain("pointwise")) return {1};
  const bool cpu = context.device.is_cpu();
  const int widest = cpu ? std::clamp(context.device.native_width, 4, 16) : gpu_width(domain, context.device);
  if (domain.flat) return {domain.channels >= widest ? widest : 1};
  if (!cpu) return {domain.channels % widest == 0 ? widest : 1};
  std::vector<int> widths;
  std::int64_t left = domain.channels;
  for (const int width : {widest, 4, 1}) {
    if (left >= width && (widths.empty() || width < widths.back())) {
      widths.push_back(width);
      left %= width;
    }
  }
  return widths;
}

std::int64_t workspace_pointwise(const KernelContext& context) {
  const PointDomain domain = point_domain(context.graph, context.node);
  const RowCut cut = cut_rows(domain, context.device);
  return domain.sums > 0 && cut.chunks > 1 ? 4 * cut.chunks * domain.sums * domain.channels : 0;
}

// Updates wait for each other's checks, not for each other: together they are one launch, however large some are.
bool joins_updates(const KernelContext& context, const PointDomain& domain) {
  constexpr std::int64_t kMostElements = 512 * 1024;
  return context.node.phase == Phase::update && domain.flat && domain.elements() <= kMostElements;
}

std::vector<Work> prepare_pointwise(const KernelContext& context) {
  const PointDomain domain = point_domain(context.graph, context.node);
  if (domain.channels == 0 || (domain.rows == 0 && domain.sums == 0)) return {};
  const RowCut cut = cut_rows(domain, context.device);
  std::vector<Work> work;
  Stage stage = PointCode(context, domain, cut).run(widths_for(context, domain));
  if (joins_updates(context, domain)) return {std::move(stage)};
  work.push_back(stage_or_launch(std::move(stage), domain.elements(), context.device));
  if (domain.sums > 0 && cut.chunks > 1)
    work.emplace_back(combine_sums(context, context.scratch, cut.chunks, domain.channels));
  return work;
}

}  // namespace

std::span<const KernelDef> pointwise_kernels() {
  static constexpr std::array kKernels = {
      KernelDef{.op = "pointwise", .prepare = prepare_pointwise, .workspace = workspace_pointwise}};
  return kKernels;
}

}  // namespace stoker::opencl
