#include "profile/roofline.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace stoker {
namespace {

std::string formatted(const char* format, auto... values) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

// Below this share the ceiling is not what holds the kernel.
constexpr double kFarBelow = 0.1;
constexpr double kNotWorthALine = 0.005;  // of the time on the device

std::string words_of(const RooflinePoint& point, const WorkProfile& work, const Ceilings& ceilings) {
  const double percent = 100 * point.share();
  std::string words;
  switch (point.held_by) {
    case Ceiling::compute: words = formatted("compute: %.0f %% of %.1f GFLOP/s", percent, ceilings.flops / 1e9); break;
    case Ceiling::memory:
      if (point.share() > 1) {
        return formatted("memory, but from caches: %.1f times the %.1f GB/s of main memory", point.share(),
                         ceilings.bandwidth / 1e9);
      }
      words = formatted("memory: %.0f %% of %.1f GB/s", percent, ceilings.bandwidth / 1e9);
      break;
    case Ceiling::launch:
      return formatted("launch: %.1f us of its %.1f us are what %s costs on this device", point.floor_seconds * 1e6,
                       work.seconds * 1e6, work.launches > 1.5 ? "launching" : "a launch");
  }
  if (point.share() < kFarBelow) words += ": far below, the kernel itself is the limit";
  return words;
}

const char* phrase(Ceiling ceiling) {
  switch (ceiling) {
    case Ceiling::compute: return "ops that the compute ceiling holds";
    case Ceiling::memory: return "ops that the memory ceiling holds";
    case Ceiling::launch: return "ops smaller than a launch";
  }
  return "";
}

}  // namespace

double attainable(const Ceilings& ceilings, double intensity) {
  return std::min(ceilings.flops, ceilings.bandwidth * intensity);
}

RooflinePoint under_roofline(const WorkProfile& work, const Ceilings& ceilings) {
  const std::array<double, 3> floors{ceilings.flops > 0 ? work.flops / ceilings.flops : 0,
                                     ceilings.bandwidth > 0 ? work.bytes / ceilings.bandwidth : 0,
                                     work.launches * ceilings.launch_seconds};
  const auto highest = std::ranges::max_element(floors);
  RooflinePoint point{.held_by = static_cast<Ceiling>(highest - floors.begin()),
                      .floor_seconds = *highest,
                      .seconds = work.seconds,
                      .words = {}};
  point.words = words_of(point, work, ceilings);
  return point;
}

std::vector<std::string> roofline_words(const std::vector<WorkProfile>& ops, const Ceilings& ceilings) {
  std::array<double, 3> seconds{};
  std::array<double, 3> floors{};
  double all = 0;
  const WorkProfile* most = nullptr;
  double gain = 0;
  for (const WorkProfile& op : ops) {
    const RooflinePoint point = under_roofline(op, ceilings);
    const auto held_by = static_cast<std::size_t>(point.held_by);
    seconds[held_by] += op.seconds;
    floors[held_by] += std::min(point.floor_seconds, op.seconds);
    all += op.seconds;
    if (op.seconds - point.floor_seconds <= gain) continue;
    gain = op.seconds - point.floor_seconds;
    most = &op;
  }
  std::vector<std::string> words;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    if (seconds[i] < kNotWorthALine * all || seconds[i] <= 0) continue;
    words.push_back(
        formatted("%.0f %% of the time on the device goes to %s; at it they would take %.0f %% of that time.",
                  100 * seconds[i] / all, phrase(static_cast<Ceiling>(i)), 100 * floors[i] / seconds[i]));
  }
  if (most != nullptr) {
    words.push_back(formatted("Most to gain: %s (%s), %.3f ms a step, of which %.3f ms are above its ceiling.",
                              most->name.c_str(), most->phase.c_str(), most->seconds * 1e3, gain * 1e3));
  }
  return words;
}

}  // namespace stoker
