// A ModelProfile as a Report: the same tables go to the terminal, to the page and into JSON.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "profile/model_profile.h"
#include "profile/roofline.h"

namespace stoker {
namespace {

const double kNone = std::numeric_limits<double>::quiet_NaN();

std::string formatted(const char* format, auto... values) {
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

const char* meaning(Activity activity) {
  switch (activity) {
    case Activity::kernel: return "a kernel runs";
    case Activity::copy: return "no kernel runs, but a transfer does";
    case Activity::wait: return "nothing runs on the device, and the host waits for it";
    case Activity::launch: return "nothing runs yet: the host is giving commands to the driver";
    case Activity::host: return "nothing runs: the host fills batches, keeps accounts, collects results";
  }
  return "";
}

std::string overlap_text(const ModelProfile& all) {
  const Breakdown& b = all.profile.breakdown;
  if (all.device.id == "cpu") return "Host and device are one thread here: nothing overlaps.";
  return formatted(
      "Beside the classes, not summed with them: the device is busy for %.3f ms of a step, the host for %.3f ms (waits "
      "left out), both at once for %.3f ms.",
      b.device_busy * 1e3, b.host_busy * 1e3, b.both_busy * 1e3);
}

Section breakdown_section(const ModelProfile& all) {
  const Breakdown& b = all.profile.breakdown;
  Table table{.title = "A step's wall time",
              .columns = {{"class"}, {"time", "ms", 4}, {"share", "%", 1, true}, {"meaning"}},
              .rows = {},
              .note = "Each instant has one class, the first of these that fits. The rest is what nobody measured."};
  Chart chart{.kind = Chart::Kind::stacked_bars,
              .title = "Where a step's time goes",
              .x = {},
              .y = {"Time", false, "ms"},
              .categories = {all.model + " on " + all.device.id},
              .series = {},
              .note = {}};
  const auto add = [&](std::string name, double seconds, const char* text) {
    table.rows.push_back({name, seconds * 1e3, percent(seconds, b.wall), text});
    chart.series.push_back({std::move(name), {{0, seconds * 1e3, ""}}});
  };
  for (int i = 0; i < kActivities; ++i) {
    const auto activity = static_cast<Activity>(i);
    add(std::string(to_string(activity)), b.of(activity), meaning(activity));
  }
  add("rest", b.rest, "not measured");
  table.rows.push_back({"step", b.wall * 1e3, 100.0, formatted("mean of %d steps", all.profile.steps)});
  return {"breakdown", "Step breakdown", {table, overlap_text(all), chart}};
}

Table work_table(const std::vector<WorkProfile>& list, const ModelProfile& all, const char* title, const char* what) {
  Table table{.title = title,
              .columns = {{what},
                          {"phase"},
                          {"calls", "", 1},
                          {"time", "ms", 4},
                          {"share", "%", 1, true},
                          {"speed", "GFLOP/s", 2},
                          {"moved", "GB/s", 2},
                          {"flops/byte", "", 2}},
              .rows = {},
              .note = {}};
  if (all.ceilings) table.columns.push_back({"held by"});
  for (const WorkProfile& work : list) {
    std::vector<Cell>& row = table.rows.emplace_back(
        std::vector<Cell>{work.name, work.phase, work.calls, work.seconds * 1e3, 100 * work.share,
                          work.flops_per_second() / 1e9, work.bytes_per_second() / 1e9, work.intensity()});
    if (all.ceilings) row.emplace_back(under_roofline(work, *all.ceilings).words);
  }
  return table;
}

Section ops_section(const ModelProfile& all) {
  std::vector<WorkProfile> ops = all.profile.ops;
  std::ranges::stable_sort(ops, std::ranges::greater{}, &WorkProfile::seconds);
  Table table = work_table(ops, all, "Ops, the longest first", "op");
  table.note =
      "An op is a step of the plan (`stoker plan`); time is the device's, of one training step. Where one launch works "
      "for several small ops, its time is shared out by their estimated work. Flops and bytes are what the op must do "
      "and move at least.";
  return {"ops", "Top ops", {table}};
}

Section kernels_section(const ModelProfile& all) {
  Table table = work_table(all.profile.kernels, all, "Kernels, the longest first", "kernel");
  table.note = "All launches of a kernel in one phase together.";
  return {"kernels", "Kernels", {table}};
}

std::string ceilings_text(const Ceilings& c) {
  std::string text = formatted("The device's own ceilings, measured here: %.1f GFLOP/s, %.1f GB/s, a launch %.1f us",
                               c.flops / 1e9, c.bandwidth / 1e9, c.launch_seconds * 1e6);
  if (c.to_device > 0)
    text += formatted("; to the device %.1f GB/s, to the host %.1f GB/s", c.to_device / 1e9, c.to_host / 1e9);
  return text + " (`stoker devices --measure`).";
}

Chart roofline_chart(const std::vector<WorkProfile>& ops, const Ceilings& ceilings) {
  Chart chart{.kind = Chart::Kind::lines,
              .title = "Roofline",
              .x = {"Arithmetic intensity", true, "flops/byte"},
              .y = {"Speed", true, "GFLOP/s"},
              .categories = {},
              .series = {},
              .note =
                  "A point is an op. Left of the bend memory holds it, right of it compute. Points above the slope "
                  "find their data in caches."};
  double low = ceilings.flops / ceilings.bandwidth;
  double high = low;
  for (const char* phase : {"forward", "backward", "update"}) {
    Series series{.name = phase, .points = {}, .line = false};
    for (const WorkProfile& op : ops) {
      if (op.phase != phase || op.intensity() <= 0 || op.seconds <= 0) continue;
      low = std::min(low, op.intensity());
      high = std::max(high, op.intensity());
      series.points.push_back(
          {op.intensity(), op.flops_per_second() / 1e9, op.name + ": " + under_roofline(op, ceilings).words});
    }
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  Series roof{.name = "ceilings", .points = {}};
  for (const double x : {low / 2, ceilings.flops / ceilings.bandwidth, high * 2})
    roof.points.push_back({x, attainable(ceilings, x) / 1e9, ""});
  chart.series.push_back(std::move(roof));
  return chart;
}

Section roofline_section(const ModelProfile& all) {
  Section section{"roofline", "Roofline", {}};
  if (!all.ceilings) {
    section.blocks.emplace_back("The device's ceilings are not known: there is no roofline.");
    return section;
  }
  section.blocks.emplace_back(ceilings_text(*all.ceilings));
  std::string list;
  for (const std::string& line : roofline_words(all.profile.ops, *all.ceilings)) list += "- " + line + "\n";
  section.blocks.emplace_back(list);
  section.blocks.emplace_back(roofline_chart(all.profile.ops, *all.ceilings));
  return section;
}

Section memory_section(const ModelProfile& all) {
  const MemoryProfile& memory = all.memory;
  Section section{"memory", "Memory over time", {}};
  const auto mega = [](std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; };
  Chart chart{.kind = Chart::Kind::lines,
              .title = "The arena over a step",
              .x = {"Step of the plan"},
              .y = {"Memory", false, "MB"},
              .categories = {},
              .series = {},
              .note = {}};
  Series alive{.name = "alive", .points = {}};
  Series extent{.name = "alive, with the gaps between", .points = {}, .line = true, .dashed = true};
  std::int64_t peak = 0;
  for (std::size_t i = 0; i < memory.moments.size(); ++i) {
    const MemoryProfile::Moment& moment = memory.moments[i];
    alive.points.push_back({static_cast<double>(i), mega(moment.alive), moment.op});
    extent.points.push_back({static_cast<double>(i), mega(moment.extent), moment.op});
    peak = std::max(peak, moment.alive);
  }
  chart.series = {std::move(alive), std::move(extent)};
  const std::string at = memory.moments.empty() ? "" : memory.moments[static_cast<std::size_t>(memory.peak_step)].op;
  section.blocks.emplace_back(
      formatted("The arena is %.2f MB. Most is alive at step %d of %zu (%s): %.2f MB. Besides it: state %.2f MB, a "
                "batch %.2f MB.",
                mega(memory.arena_bytes), memory.peak_step, memory.moments.size(), at.c_str(), mega(peak),
                mega(all.state_bytes), mega(all.input_bytes)));
  Table table{.title = "What is alive at the peak",
              .columns = {{"tensor"}, {"size", "MB", 3, true}, {"from step", "", 0}, {"to step", "", 0}},
              .rows = {},
              .note = {}};
  for (const MemoryProfile::Holder& holder : memory.holders) {
    table.rows.push_back(
        {holder.name, mega(holder.bytes), static_cast<double>(holder.first), static_cast<double>(holder.last)});
  }
  section.blocks.emplace_back(std::move(table));
  section.blocks.emplace_back(std::move(chart));
  return section;
}

Section movement_section(const ModelProfile& all) {
  const Profile& profile = all.profile;
  const Counters& c = profile.counters;
  Section section{"movement", "Movement", {}};
  if (all.device.id == "cpu") {
    section.blocks.emplace_back("Nothing crosses: the CPU works in the host's memory, on the host's threads.");
    return section;
  }
  Table table{.title = "What a step costs besides computing",
              .columns = {{"counted"}, {"a step", "", 2}, {"unit"}},
              .rows = {},
              .note =
                  "Counted at every OpenCL call, by us. For comparison MNN's own step of LeNet-5 with batch 64, as "
                  "counted in MNN: 153 kernels, 17 reads, 64 writes, 74 clFinish, 65 new buffers."};
  const auto add = [&](const char* name, std::int64_t count, const char* unit) {
    table.rows.push_back({name, profile.per_step(count), unit});
  };
  add("batch, filled in place (mapped)", c.mapped_in, "bytes");
  add("written to the device", c.written, "bytes");
  add("read from the device", c.read, "bytes");
  add("mapped for reading", c.mapped_out, "bytes");
  add("copied on the device", c.copied, "bytes");
  add("blocking calls", c.blocking_calls, "calls");
  add("waits for a free batch buffer", c.back_pressure, "calls");
  add("kernel launches", c.launches, "calls");
  add("flushes", c.flushes, "calls");
  add("objects created", c.objects_created, "objects");
  section.blocks.emplace_back(std::move(table));
  Table copies{.title = "Transfers",
               .columns = {{"command"},
                           {"calls", "", 2},
                           {"bytes", "", 0},
                           {"time of the transfer", "us", 2},
                           {"speed", "GB/s", 2}},
               .rows = {},
               .note =
                   "From start to end on the device: waiting for earlier kernels is not in it. A mapping moves "
                   "nothing where both sides share memory, and has no speed."};
  for (const CopyProfile& copy : profile.copies) {
    const bool is_copy = copy.seconds > 0 && copy.bytes > 0 && copy.name != "clEnqueueMapBuffer";
    copies.rows.push_back(
        {copy.name, copy.calls, copy.bytes, copy.seconds * 1e6, is_copy ? copy.bytes / copy.seconds / 1e9 : kNone});
  }
  section.blocks.emplace_back(std::move(copies));
  return section;
}

std::vector<Highlight> highlights(const ModelProfile& all) {
  const Breakdown& b = all.profile.breakdown;
  double flops = 0;
  for (const WorkProfile& op : all.profile.ops) flops += op.flops;
  const auto share = [&](double seconds) { return formatted("%.1f %%", percent(seconds, b.wall)); };
  return {{"A step", formatted("%.3f ms", b.wall * 1e3), formatted("mean of %d", all.profile.steps)},
          {"Speed", formatted("%.1f GFLOP/s", flops / b.wall / 1e9), formatted("%.2f MFLOP a step", flops / 1e6)},
          {"Compute", share(b.of(Activity::kernel)), "of the wall time"},
          {"Data movement", share(b.of(Activity::copy)), "of the wall time, transfers alone"},
          {"Waiting", share(b.of(Activity::wait)), "of the wall time, with an idle device"}};
}

std::vector<std::string> warnings(const ModelProfile& all) {
  std::vector<std::string> list;
  if (all.device.is_cpu && all.device.id != "cpu")
    list.emplace_back("This OpenCL device is a CPU: its figures tell nothing of GPUs.");
  if (all.profile.untimed > 0) {
    list.push_back(formatted(
        "The driver gave no times, or times that cannot be, for %lld commands: they are missing from compute and data "
        "movement.",
        static_cast<long long>(all.profile.untimed)));
  }
  return list;
}

}  // namespace

Report to_report(const ModelProfile& all) {
  Report report{.title = "Profile of " + all.model,
                .subtitle = formatted("batch %lld, %lld parameters, on %s: %s, %s", static_cast<long long>(all.batch),
                                      static_cast<long long>(all.parameters), all.device.id.c_str(),
                                      all.device.name.c_str(), all.device.details.c_str()),
                .warnings = warnings(all),
                .sections = {},
                .highlights = highlights(all)};
  report.sections = {breakdown_section(all), roofline_section(all), ops_section(all),
                     kernels_section(all),   memory_section(all),   movement_section(all)};
  return report;
}

}  // namespace stoker
